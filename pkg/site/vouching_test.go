package site

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// signer signs as minisign does.
type signer struct {
	id     string
	secret ed25519.PrivateKey
}

func signerOf(letter byte) signer {
	seed := slices.Repeat([]byte{letter}, ed25519.SeedSize)
	return signer{id: fmt.Sprintf("key-ID-%c", letter), secret: ed25519.NewKeyFromSeed(seed)}
}

func (s signer) listed(kinds ...grid.WorkKind) grid.Signer {
	public := s.secret.Public().(ed25519.PublicKey) //nolint:forcetypeassert // it is
	return grid.Signer{
		Key:   base64.StdEncoding.EncodeToString([]byte("Ed" + s.id + string(public))),
		Kinds: kinds,
	}
}

// digest signs what has a digest.
func (s signer) digest(t tester, digest string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(digest)
	if err != nil {
		t.Fatalf("digest: %v", err)
	}
	sig := ed25519.Sign(s.secret, raw)
	const comment = "test"
	whole := ed25519.Sign(s.secret, append(slices.Clone(sig), comment...))
	return fmt.Appendf(nil, "untrusted comment: x\n%s\ntrusted comment: %s\n%s\n",
		base64.StdEncoding.EncodeToString([]byte("ED"+s.id+string(sig))), comment,
		base64.StdEncoding.EncodeToString(whole))
}

// signs puts a signature on the template of a job with these items, and returns their proofs.
func (s signer) signs(
	t tester, items []grid.Item, change ...func(*grid.Spec),
) (func(*grid.Spec), []grid.Item) {
	t.Helper()
	j := grid.Job{Spec: spec(), Count: 1, TTL: time.Second, Items: items}
	for _, c := range change {
		c(&j.Spec)
	}
	p, err := signed.Prepare(j)
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	j, err = p.Attach(s.digest(t, signed.Digest(p.Text)))
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	return func(to *grid.Spec) { to.Signature = j.Spec.Signature }, j.Items
}

// module puts a signature of a module on a job.
func (s signer) module(t tester) func(*grid.Spec) {
	t.Helper()
	digest := signed.Digest("the module's bytes")
	text := string(s.digest(t, digest))
	return func(to *grid.Spec) {
		to.Signature = grid.Signature{Of: grid.SignedModule, Digest: digest, Text: text}
	}
}

func ofCommand(s *grid.Spec) {
	s.Kind, s.Module = grid.KindCommand, grid.Input{}
	s.Args = []string{"true"}
}

// listing is the configuration of a site that runs the work of signers.
func listing(list ...grid.Signer) func(*Config) {
	return func(c *Config) { c.Signers = list }
}

// What nobody listed has signed for its kind is refused, and its submitter is told why.
func TestOnlyTheWorkOfListedSignersIsOffered(t *testing.T) {
	t.Parallel()
	ada, bob := signerOf('a'), signerOf('b')
	wasm, _ := ada.signs(t, nil)
	command, _ := ada.signs(t, nil, ofCommand)
	byBob, _ := bob.signs(t, nil)
	onlyWasm := listing(ada.listed(grid.KindWasm))
	for name, c := range map[string]struct {
		site   func(*Config)
		change []func(*grid.Spec)
		want   grid.Reason
	}{
		"no list":           {listing(), nil, grid.ReasonNone},
		"no list, signed":   {listing(), []func(*grid.Spec){byBob}, grid.ReasonNone},
		"signed":            {onlyWasm, []func(*grid.Spec){wasm}, grid.ReasonNone},
		"a signed module":   {onlyWasm, []func(*grid.Spec){ada.module(t)}, grid.ReasonNone},
		"not signed":        {onlyWasm, nil, grid.ReasonUnsigned},
		"signed by another": {onlyWasm, []func(*grid.Spec){byBob}, grid.ReasonSigner},
		"a command": {
			onlyWasm, []func(*grid.Spec){ofCommand, command}, grid.ReasonSignerKind,
		},
		"a command, allowed": {listing(ada.listed()), []func(*grid.Spec){ofCommand, command}, 0},
		"a module, a command": {
			listing(ada.listed()),
			[]func(*grid.Spec){ofCommand, ada.module(t)},
			grid.ReasonSignature,
		},
	} {
		r := newRig(t, c.site)
		a := announcement(job1, alice, c.change...)
		a.Explain = true
		r.receive(alice, a)
		if c.want == grid.ReasonNone {
			one[protocol.Bid](r, alice)
			continue
		}
		want := grid.Refusal{Reason: c.want, Never: true}
		if got := one[protocol.Refuse](r, alice).Refusal; got != want {
			t.Errorf("%s: %s, want %s", name, got.Explain(), want.Explain())
		}
	}
	hold := func(s *grid.Spec) {
		*s = grid.Spec{
			Kind: grid.KindReservation, Need: s.Need, Runtime: time.Hour, Weights: s.Weights,
			Window: grid.Window{At: epoch().Add(time.Hour)},
		}
	}
	r := newRig(t, onlyWasm)
	r.receive(alice, announcement(job1, alice, hold))
	one[protocol.Bid](r, alice)
}

// An award of something else than was signed is declined: by a signature of another job, or of
// the same with another command, an item that was not signed or one in another place.
func TestAnAwardIsWhatWasSigned(t *testing.T) {
	t.Parallel()
	ada := signerOf('a')
	signature, items := ada.signs(t, []grid.Item{{Value: "one"}, {Value: "two"}})
	same := func(*grid.Spec) {}
	swapped := func(s *grid.Spec) { s.Args = []string{"x"} }
	other := func(s *grid.Spec) { s.Module.CID = "bother" }
	const bad = grid.ReasonSignature
	for name, c := range map[string]struct {
		change func(*grid.Spec)
		item   grid.Item
		list   bool
		want   grid.Reason
	}{
		"itself":          {same, items[0], true, grid.ReasonNone},
		"other arguments": {swapped, items[0], true, bad},
		"another module":  {other, items[0], true, bad},
		"another item":    {same, grid.Item{Value: "x", Proof: items[0].Proof}, true, bad},
		"another place":   {same, items[1], true, bad},
		"another time":    {func(s *grid.Spec) { s.Priority = 7 }, items[0], true, grid.ReasonNone},
		"while nobody is listed": {
			swapped, items[0], false, bad,
		},
	} {
		r := newRig(t)
		if c.list {
			r = newRig(t, listing(ada.listed()))
		}
		r.receive(alice, announcement(job1, alice, signature))
		a := award(job1, one[protocol.Bid](r, alice).Offer, 1, 1, signature, c.change)
		a.Tasks[0].Item = c.item
		r.receive(alice, a)
		if c.want == grid.ReasonNone {
			one[protocol.Accepted](r, alice)
			continue
		}
		if got := one[protocol.Declined](r, alice).Refusal.Reason; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if len(only[step.Stage](r.out)) != 0 {
			t.Errorf("%s: its data is fetched all the same", name)
		}
	}
	// The award has to bring the signature that was announced.
	r := newRig(t, listing(ada.listed()))
	r.receive(alice, announcement(job1, alice, signature))
	r.receive(alice, award(job1, one[protocol.Bid](r, alice).Offer, 1, 1))
	if got := one[protocol.Declined](r, alice).Refusal.Reason; got != grid.ReasonInvalid {
		t.Errorf("without its signature: %s", got)
	}
}

func termsWith(list ...grid.Signer) step.TermsChanged {
	d := Default(self, fourCores())
	return step.TermsChanged{
		Patience: d.OwnerPatience, MoveAfter: d.MoveAfter, Ahead: d.Planning.Ahead,
		Longest: d.Planning.Longest, Signers: list,
	}
}

// What a list covers no more is stopped, whether it runs or waits, and its submitter is told.
func TestASignerLeavesTheList(t *testing.T) {
	t.Parallel()
	ada, bob := signerOf('a'), signerOf('b')
	byAda, _ := ada.signs(t, nil)
	byBob, _ := bob.signs(t, nil)
	r := newRig(t, listing(ada.listed(), bob.listed()))
	runs := r.running(job1, alice, 1, byAda)[0]
	waits := r.accepted(job2, alice, 1, byAda)[0]
	stays := r.running(job3, alice, 1, byBob)[0]
	r.step(termsWith(ada.listed(), bob.listed()))
	if got := only[step.StopAttempt](r.out); len(got) != 0 {
		t.Fatalf("the same list stops %v", got)
	}
	r.step(termsWith(bob.listed()))
	var stopped []grid.AttemptID
	for _, e := range only[step.StopAttempt](r.out) {
		stopped = append(stopped, e.Attempt)
	}
	slices.SortFunc(
		stopped,
		func(a, b grid.AttemptID) int { return int(a.Task.Job[0]) - int(b.Task.Job[0]) },
	)
	if !slices.Equal(stopped, []grid.AttemptID{runs, waits}) {
		t.Fatalf("stops %v, want %v and %v but not %v", stopped, runs, waits, stays)
	}
	r.step(step.AttemptExited{Attempt: runs, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if got := one[protocol.Exited](r, alice); got.Attempt != runs {
		t.Errorf("told of %v, want %v", got.Attempt, runs)
	}
	r.step(termsWith())
	if got := only[step.StopAttempt](r.out); len(got) != 0 {
		t.Errorf("a list that ends stops %v", got)
	}
}

// When a list begins, running attempts end, signed or not: nobody has compared them with what was
// signed. What has not started goes on, and is compared then.
func TestAListBegins(t *testing.T) {
	t.Parallel()
	ada := signerOf('a')
	byAda, _ := ada.signs(t, nil)
	r := newRig(t)
	runs := r.running(job1, alice, 1, byAda)[0]
	waits := r.accepted(job2, alice, 1, byAda)
	unsigned := r.accepted(job3, alice, 1)[0]
	r.step(termsWith(ada.listed()))
	var stopped []grid.AttemptID
	for _, e := range only[step.StopAttempt](r.out) {
		stopped = append(stopped, e.Attempt)
	}
	if len(stopped) != 2 || !slices.Contains(stopped, runs) || !slices.Contains(stopped, unsigned) {
		t.Fatalf("stops %v, want %v and %v", stopped, runs, unsigned)
	}
	r.lease(alice, waits, lease)
	r.step(step.Staged{Attempt: waits[0]})
	if got := only[step.StartAttempt](r.out); len(got) != 1 || !got[0].Vouched {
		t.Errorf("starts %+v, want %v compared", got, waits[0])
	}
}

// Where nobody is listed nothing is compared.
func TestWithoutAListNothingIsCompared(t *testing.T) {
	r := newRig(t)
	list := r.accepted(job1, alice, 1)
	r.lease(alice, list, lease)
	r.step(step.Staged{Attempt: list[0]})
	if got := only[step.StartAttempt](r.out); len(got) != 1 || got[0].Vouched {
		t.Errorf("starts %+v", got)
	}
	n := testing.AllocsPerRun(100, func() {
		if r.m.vouching.refuses(grid.KindWasm, grid.Signature{}) != grid.ReasonNone {
			t.Error("refused")
		}
	})
	if n != 0 {
		t.Errorf("judging nothing allocates %v times", n)
	}
}

// An attempt that outlived a restart with another list does not start.
func TestAListThatChangesBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	ada, bob := signerOf('a'), signerOf('b')
	at := func(s *grid.Spec) { s.Window.At = epoch().Add(time.Minute) }
	byAda, _ := ada.signs(t, nil)
	r := newRig(t, listing(ada.listed()))
	r.receive(alice, announcement(job1, alice, byAda, at))
	r.receive(alice, award(job1, one[protocol.Bid](r, alice).Offer, 1, 1, byAda, at))
	for _, v := range only[step.Verify](r.out) {
		r.step(step.Verified{Attempt: v.Attempt})
	}
	id := one[protocol.Accepted](r, alice).Attempts[0]
	r.m.cfg.Signers = []grid.Signer{bob.listed()}
	r = r.restart(2)
	r.step(step.Staged{Attempt: id})
	started := 0
	for range 300 {
		r.lease(alice, []grid.AttemptID{id}, lease)
		started += len(only[step.StartAttempt](r.advance(time.Second)))
	}
	if started != 0 {
		t.Error("it starts")
	}
	if got := r.m.roster.all[id]; got != nil && got.isLive() && got.phase != phaseStopping {
		t.Errorf("it is %s still", got.phase)
	}
}

// The memory of a command that was saved whole is signed by nobody: the task begins anew.
func TestAMemoryIsNotSigned(t *testing.T) {
	t.Parallel()
	ada := signerOf('a')
	whole := func(s *grid.Spec) { ofCommand(s); s.Checkpoint.Whole = true }
	signature, _ := ada.signs(t, nil, whole)
	saves := func(c *Config) { c.Capability.Saves = true }
	saved := []grid.Checkpoint{{Number: 1, CID: "bstate", Bytes: 9}}
	for name, c := range map[string]struct {
		list []grid.Signer
		want int
	}{"a list": {[]grid.Signer{ada.listed()}, 0}, "none": {nil, 1}} {
		r := newRig(t, saves, listing(c.list...))
		r.receive(alice, announcement(job1, alice, whole, signature))
		a := award(job1, one[protocol.Bid](r, alice).Offer, 1, 2, whole, signature)
		a.Tasks[0].Saved = saved
		r.receive(alice, a)
		got := only[step.Stage](r.out)
		if len(got) != 1 || len(got[0].Saved) != c.want {
			t.Errorf("%s: stages %+v, want %d states", name, got, c.want)
		}
		if c.list == nil {
			r.step(termsWith(ada.listed()))
			if len(only[step.StopAttempt](r.out)) != 1 {
				t.Error("one that has such a state already is not stopped")
			}
		}
	}
}

// What was judged is remembered, within bounds, and a new list forgets it.
func TestJudgementsAreBounded(t *testing.T) {
	t.Parallel()
	ada := signerOf('a')
	v := newVouching([]grid.Signer{ada.listed()})
	for i := range 3 * maxClaims {
		sig := grid.Signature{Of: grid.SignedModule, Text: fmt.Sprint(i)}
		if v.refuses(grid.KindWasm, sig) != grid.ReasonSignature {
			t.Fatal("nonsense is good")
		}
		if len(v.known) > maxClaims {
			t.Fatalf("%d are remembered", len(v.known))
		}
	}
}
