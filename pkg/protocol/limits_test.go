package protocol

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// changed is one of the golden messages with a change.
func changed[M Message](t *testing.T, name string, change func(*M)) Message {
	t.Helper()
	m, is := goldenMessages()[name].(M)
	if !is {
		t.Fatalf("%s is a %T", name, goldenMessages()[name])
	}
	change(&m)
	return m
}

func manyAttempts(n int) []grid.AttemptID {
	all := make([]grid.AttemptID, n)
	for i := range all {
		all[i] = grid.AttemptID{
			Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: uint32(i)}, Token: 1,
		}
	}
	return all
}

func awardedTasks(n int) []AwardedTask {
	all := make([]AwardedTask, n)
	for i := range all {
		all[i] = AwardedTask{Index: uint32(i), Token: 1}
	}
	return all
}

// TestEachLimitIsExact has, for each limit of a message, the last value that is taken and the
// first that is not.
func TestEachLimitIsExact(t *testing.T) {
	hello := func(c func(*Hello)) Message { return changed(t, "hello", c) }
	nothing := func(*Hello) {}
	run := func(c func(*Hello)) Message { return changed(t, "hellorun", c) }
	announce := func(c func(*Announce)) Message { return changed(t, "announce", c) }
	award := func(c func(*Award)) Message { return changed(t, "award", c) }
	keyed := func(n int) Message {
		return award(func(m *Award) { m.Spec.Encrypted, m.Key = true, make([]byte, n) })
	}
	lease := func(d time.Duration) Message {
		return changed(t, "lease", func(m *Lease) { m.Duration = d })
	}
	vacancy := func(n int) Message {
		return changed(t, "vacancy", func(m *Vacancy) {
			m.Jobs = repeated(grid.JobID("mfrggzdfmztwq2lk"), n)
		})
	}
	accepted := func(n int) Message { return Accepted{Attempts: manyAttempts(n)} }
	progress := func(c func(*Progress)) Message { return changed(t, "progress", c) }
	exited := func(c func(*Exited)) Message { return changed(t, "exited", c) }
	hold := func(c func(*HoldOffer)) Message { return changed(t, "hold", c) }
	clearOf := func(k ClearKind) Message {
		return changed(t, "clear", func(m *Clear) { m.Kind = k })
	}
	join := func(secret, name int) Message {
		return JoinRequest{Secret: make([]byte, secret), Name: strings.Repeat("n", name)}
	}
	long := strings.Repeat("a", maxAddrBytes)
	for name, c := range map[string]struct{ last, first Message }{
		"hello name": {
			hello(func(m *Hello) { m.Name = strings.Repeat("n", maxHelloName) }),
			hello(func(m *Hello) { m.Name = strings.Repeat("n", maxHelloName+1) }),
		},
		"hello lowest version": {
			hello(func(m *Hello) { m.MinVersion = 1 }), hello(func(m *Hello) { m.MinVersion = 0 }),
		},
		"hello versions": {
			hello(func(m *Hello) { m.MinVersion, m.MaxVersion = 2, 2 }),
			hello(func(m *Hello) { m.MinVersion, m.MaxVersion = 3, 2 }),
		},
		"hello incarnation": {
			hello(func(m *Hello) { m.Incarnation = 1 }), hello(func(m *Hello) { m.Incarnation = 0 }),
		},
		"hello clock": {
			hello(func(m *Hello) { m.WallMS = 0 }), hello(func(m *Hello) { m.WallMS = -1 }),
		},
		"hello peers": {
			hello(func(m *Hello) { m.Peers = repeated("a", MaxHelloPeers) }),
			hello(func(m *Hello) { m.Peers = repeated("a", MaxHelloPeers+1) }),
		},
		"hello address": {
			hello(func(m *Hello) { m.Peers = []string{long} }),
			hello(func(m *Hello) { m.Peers = []string{long + "a"} }),
		},
		"hello empty address": {
			hello(func(m *Hello) { m.Peers = []string{"a"} }),
			hello(func(m *Hello) { m.Peers = []string{""} }),
		},
		"run signature": {
			run(func(m *Hello) { m.Run.Signature = make([]byte, maxRunSignature) }),
			run(func(m *Hello) { m.Run.Signature = make([]byte, maxRunSignature+1) }),
		},
		"run start": {
			run(func(m *Hello) { m.Newer.SinceMS = 0 }), run(func(m *Hello) { m.Newer.SinceMS = -1 }),
		},
		"run number": {
			run(func(m *Hello) { m.Run.Number = m.Incarnation }),
			run(func(m *Hello) { m.Run.Number = m.Incarnation + 1 }),
		},
		"run nonce":       {hello(nothing), hello(func(m *Hello) { m.Newer.Nonce = 1 })},
		"run line":        {hello(nothing), hello(func(m *Hello) { m.Newer.Line = 1 })},
		"run begin":       {hello(nothing), hello(func(m *Hello) { m.Newer.SinceMS = 1 })},
		"run of nobody's": {hello(nothing), hello(func(m *Hello) { m.Newer.Signature = []byte{1} })},
		"announce addresses": {
			announce(func(m *Announce) { m.Addrs = repeated("a", MaxAddrs) }),
			announce(func(m *Announce) { m.Addrs = repeated("a", MaxAddrs+1) }),
		},
		"announce address": {
			announce(func(m *Announce) { m.Addrs = []string{long} }),
			announce(func(m *Announce) { m.Addrs = []string{long + "a"} }),
		},
		"announce sample": {
			announce(func(m *Announce) { m.Sample = 1 }),
			announce(func(m *Announce) { m.Sample = math.Nextafter(1, 2) }),
		},
		"announce no sample": {
			announce(func(m *Announce) { m.Sample = math.SmallestNonzeroFloat64 }),
			announce(func(m *Announce) { m.Sample = 0 }),
		},
		"announce theta": {
			announce(func(m *Announce) { m.Theta = math.MaxFloat64 }),
			announce(func(m *Announce) { m.Theta = math.Inf(1) }),
		},
		"announce negative theta": {
			announce(func(m *Announce) { m.Theta = 0 }),
			announce(func(m *Announce) { m.Theta = -math.SmallestNonzeroFloat64 }),
		},
		"announce nearer": {
			announce(func(m *Announce) { m.Nearer = math.MaxFloat64 }),
			announce(func(m *Announce) { m.Nearer = math.Inf(1) }),
		},
		"announce negative nearer": {
			announce(func(m *Announce) { m.Nearer = 0 }),
			announce(func(m *Announce) { m.Nearer = -math.SmallestNonzeroFloat64 }),
		},
		"announce part": {
			announce(func(m *Announce) { m.Part = 1 }),
			announce(func(m *Announce) { m.Part = math.Nextafter(1, 2) }),
		},
		"announce negative part": {
			announce(func(m *Announce) { m.Part = 0 }),
			announce(func(m *Announce) { m.Part = -math.SmallestNonzeroFloat64 }),
		},
		"announce sequence": {
			announce(func(m *Announce) { m.Seq = 1 }), announce(func(m *Announce) { m.Seq = 0 }),
		},
		"announce tasks": {
			announce(func(m *Announce) { m.Count = grid.MaxTasks }),
			announce(func(m *Announce) { m.Count = grid.MaxTasks + 1 }),
		},
		"announce no task": {
			announce(func(m *Announce) { m.Count = 1 }), announce(func(m *Announce) { m.Count = 0 }),
		},
		"announce short": {
			announce(func(m *Announce) { m.TTL = grid.MinTTL }),
			announce(func(m *Announce) { m.TTL = grid.MinTTL - 1 }),
		},
		"announce long": {
			announce(func(m *Announce) { m.TTL = grid.MaxTTL }),
			announce(func(m *Announce) { m.TTL = grid.MaxTTL + 1 }),
		},
		"vacancies":  {vacancy(MaxVacancies), vacancy(MaxVacancies + 1)},
		"no vacancy": {vacancy(1), vacancy(0)},
		"award tasks": {
			award(func(m *Award) { m.Tasks = awardedTasks(MaxAwardTasks) }),
			award(func(m *Award) { m.Tasks = awardedTasks(MaxAwardTasks + 1) }),
		},
		"award item": {
			award(func(m *Award) { m.Tasks = awardedTasks(1) }),
			award(func(m *Award) {
				m.Tasks = awardedTasks(1)
				m.Tasks[0].Item.Inputs = []grid.Input{{Path: "../x"}}
			}),
		},
		"award nobody": {
			award(func(m *Award) { m.Tasks = awardedTasks(1) }), award(func(m *Award) { m.Tasks = nil }),
		},
		"award key":             {keyed(grid.MaxWrappedKey), keyed(grid.MaxWrappedKey + 1)},
		"award without its key": {keyed(1), keyed(0)},
		"award with a key for nothing": {
			award(func(m *Award) { m.Key = nil }), award(func(m *Award) { m.Key = []byte{1} }),
		},
		"award offer": {award(func(m *Award) { m.OfferID = 1 }), award(func(m *Award) { m.OfferID = 0 })},
		"award quoted": {
			award(func(m *Award) { m.Quoted = 0 }),
			award(func(m *Award) { m.Quoted = -math.SmallestNonzeroFloat64 }),
		},
		"award runner-up": {
			award(func(m *Award) { m.RunnerUp = math.MaxFloat64 }),
			award(func(m *Award) { m.RunnerUp = math.Inf(1) }),
		},
		"award number": {
			award(func(m *Award) { m.Quoted = 1 }), award(func(m *Award) { m.Quoted = math.NaN() }),
		},
		"award token": {
			award(func(m *Award) { m.Tasks = awardedTasks(1) }),
			award(func(m *Award) { m.Tasks = awardedTasks(1); m.Tasks[0].Token = 0 }),
		},
		"award index": {
			award(func(m *Award) { m.Tasks = awardedTasks(1); m.Tasks[0].Index = grid.MaxTasks - 1 }),
			award(func(m *Award) { m.Tasks = awardedTasks(1); m.Tasks[0].Index = grid.MaxTasks }),
		},
		"award order": {
			award(func(m *Award) { m.Tasks = awardedTasks(2) }),
			award(func(m *Award) { m.Tasks = awardedTasks(2); m.Tasks[1].Index = 0 }),
		},
		"attempts":    {accepted(MaxAttempts), accepted(MaxAttempts + 1)},
		"no attempt":  {accepted(1), accepted(0)},
		"lease":       {lease(maxLease), lease(maxLease + 1)},
		"no lease":    {lease(1), lease(0)},
		"clear kinds": {clearOf(ClearWithdrawn), clearOf(ClearWithdrawn + 1)},
		"clear kind":  {clearOf(ClearPlaced), clearOf(ClearPlaced - 1)},
		"progress first phase": {
			progress(func(m *Progress) { m.Phase = grid.PhaseStaging }),
			progress(func(m *Progress) { m.Phase = grid.PhaseStaging - 1 }),
		},
		"progress last phase": {
			progress(func(m *Progress) { m.Phase = grid.PhaseFrozen }),
			progress(func(m *Progress) { m.Phase = grid.PhaseFrozen + 1 }),
		},
		"progress done": {
			progress(func(m *Progress) { m.Done = 0 }), progress(func(m *Progress) { m.Done = -1 }),
		},
		"progress total": {
			progress(func(m *Progress) { m.Total = 0 }), progress(func(m *Progress) { m.Total = -1 }),
		},
		"progress start": {
			progress(func(m *Progress) { m.StartsIn = grid.MaxRuntime }),
			progress(func(m *Progress) { m.StartsIn = grid.MaxRuntime + 1 }),
		},
		"progress start past": {
			progress(func(m *Progress) { m.StartsIn = 0 }), progress(func(m *Progress) { m.StartsIn = -1 }),
		},
		"progress started": {
			progress(func(m *Progress) { m.StartedAgo = maxAgo }),
			progress(func(m *Progress) { m.StartedAgo = maxAgo + 1 }),
		},
		"exited start": {
			exited(func(m *Exited) { m.StartedAgo = 0 }), exited(func(m *Exited) { m.StartedAgo = -1 }),
		},
		"exited end": {
			exited(func(m *Exited) { m.EndedAgo = maxAgo }),
			exited(func(m *Exited) { m.EndedAgo = maxAgo + 1 }),
		},
		"hold offer": {
			hold(func(m *HoldOffer) { m.OfferID = 1 }), hold(func(m *HoldOffer) { m.OfferID = 0 }),
		},
		"hold tasks": {
			hold(func(m *HoldOffer) { m.Tasks = grid.MaxTasks }),
			hold(func(m *HoldOffer) { m.Tasks = grid.MaxTasks + 1 }),
		},
		"hold none": {
			hold(func(m *HoldOffer) { m.Tasks = 1 }), hold(func(m *HoldOffer) { m.Tasks = 0 }),
		},
		"join secret":       {join(SecretBytes, 1), join(SecretBytes+1, 1)},
		"join short secret": {join(SecretBytes, 1), join(SecretBytes-1, 1)},
		"join name":         {join(SecretBytes, maxHelloName), join(SecretBytes, maxHelloName+1)},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

func repeated[T any](v T, n int) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// Each refusal has words of its own, and one of a later version a number.
func TestJoinRefusalsHaveWords(t *testing.T) {
	seen := map[string]JoinRefusal{}
	for r := JoinAdmitted; r <= JoinRefusals; r++ {
		text := r.String()
		if other, twice := seen[text]; twice || strings.HasPrefix(text, "refusal ") {
			t.Errorf("%d is %q, as %d", r, text, other)
		}
		seen[text] = r
	}
	later := JoinRefusals + 1
	if got := later.String(); got != fmt.Sprintf("refusal %d", later) {
		t.Errorf("of a later version: %q", got)
	}
}

// A newcomer hears a refusal that it has words for. The first builds did not say which they
// have, and took any but the first six for a damaged answer.
func TestRefusalsThatAreUnderstood(t *testing.T) {
	for r := JoinAdmitted; r <= JoinRefusals; r++ {
		want := r
		if r > JoinBroken {
			want = JoinExpired
		}
		if got := r.For(0); got != want {
			t.Errorf("%s becomes %s for an old newcomer, want %s", r, got, want)
		}
		if got := r.For(JoinRefusals); got != r {
			t.Errorf("%s becomes %s for a newcomer that knows it", r, got)
		}
		if got := r.For(JoinRefusals + 1); got != r {
			t.Errorf("%s becomes %s for a newcomer of a later version", r, got)
		}
	}
}
