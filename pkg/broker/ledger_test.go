package broker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The ledger records what the broker did in many random runs, as hashes. After the
// broker is rebuilt it shows whether it still does the same, effect by effect. To compare
// two versions in more runs than the golden file holds, write the lines of both and compare
// them:
//
//	go test ./pkg/broker -run TestLedger -ledger.runs 2500 -ledger.out FILE
var (
	updateLedger = flag.Bool("update", false, "write the golden ledger anew")
	ledgerRuns   = flag.Int("ledger.runs", 0,
		"how many runs to write, instead of comparing the golden ones")
	ledgerOut   = flag.String("ledger.out", "", "the file that these are written to")
	ledgerTrace = flag.Int("ledger.trace", -1,
		"a run whose effects are logged, to see where two versions part")
)

const (
	goldenRuns   = 200
	ledgerActs   = 240
	goldenLedger = "testdata/ledger.txt"
)

func TestLedger(t *testing.T) {
	if *ledgerTrace >= 0 {
		t.Log(playLedger(t, uint64(*ledgerTrace)))
		return
	}
	runs, out := goldenRuns, goldenLedger
	if *ledgerRuns > 0 && *ledgerOut != "" {
		runs, out = *ledgerRuns, *ledgerOut
	}
	var text strings.Builder
	for seed := range runs {
		fmt.Fprintln(&text, playLedger(t, uint64(seed)))
	}
	if *updateLedger || out != goldenLedger {
		if err := os.WriteFile(filepath.FromSlash(out), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(filepath.FromSlash(goldenLedger))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"),
		strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("the broker does something else than before (-before +now).\n"+
			"Each line: run, hash of all effects, hash with each Step's effects sorted, Steps.\n%s", diff)
	}
}

// ledgerRun is one run: the sites mostly do what they are asked.
type ledgerRun struct {
	*rig
	src     randSource
	inbox   []heard
	log     func(string, ...any)
	number  uint64
	tight   bool // hardly anything fits anywhere
	ordered uint64
	sorted  uint64
}

// heard is a message on its way to the broker.
type heard struct {
	from grid.SiteID
	msg  protocol.Message
}

type randSource struct{ *rand.Rand }

func (s randSource) n(limit int) int { return s.IntN(limit) }

func playLedger(t *testing.T, seed uint64) string {
	t.Helper()
	l := &ledgerRun{src: randSource{step.NewRand(seed, "ledger", 0)}, log: t.Logf}
	l.rig = newRig(t, l.tune)
	l.onStep = l.enter
	for _, site := range sites[:3] {
		l.do(step.PeerSeen{Site: site, Name: string(site), Capability: l.capability()})
	}
	l.tight = seed%8 == 0
	for act := range ledgerActs {
		l.next()
		if act%40 == 39 {
			l.look()
		}
	}
	return fmt.Sprintf("%d %016x %016x %d", seed, l.ordered, l.sorted, l.steps)
}

func (l *ledgerRun) tune(c *Config) {
	c.Seed = l.src.Uint64()
	c.ReplyTarget, c.ExplainUpTo, c.UnicastUpTo = max(0, l.src.n(6)-3), l.src.n(5), l.src.n(5)
	c.HoldTop, c.MaxTries, c.Requote = 1+l.src.n(3), 2+l.src.n(5), l.src.n(4) > 0
	c.MaxJobs, c.CollectGiveUp, c.CollectDead = 4+l.src.n(8), 4*time.Second, 2*time.Second
	if c.Policy = grid.AvailPolicy(max(0, l.src.n(8)-4)); !c.Policy.Orders() {
		c.Choice = Choice(l.src.n(2))
	}
	c.Capability = l.capability()
}

func (l *ledgerRun) capability() grid.Capability {
	if l.src.n(3) == 0 {
		return grid.Capability{}
	}
	rate := int64(1+l.src.n(4)) * 10_000_000
	return grid.Capability{
		Total: grid.Resources{
			MilliCPUs: int64(1+l.src.n(4)) * 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 8000,
		},
		UpBps: rate, DownBps: 2 * rate, CoreMFLOPS: 1000, OS: "linux", Arch: "amd64",
		Kinds: []grid.WorkKind{grid.KindWasm, grid.KindReservation},
	}
}

// look folds what the broker shows into the hashes.
func (l *ledgerRun) look() {
	shown := []any{l.m.Members(), l.m.Jobs()}
	for _, id := range l.m.enquiryIDs() {
		state, _ := l.m.Job(id)
		shown = append(shown, state, l.m.Data(id), l.m.jobs.boundTo(id))
	}
	text, err := json.Marshal(shown)
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	if *ledgerTrace >= 0 {
		l.log("\tshown: %s", text)
	}
	view := []step.Effect{step.Persist{Fact: step.Fact{Kind: "view", Value: text}}}
	l.ordered, l.sorted = step.HashEffects(l.ordered, view), step.HashEffects(l.sorted, view)
}

// enter folds the effects of a Step into the run's hashes, and lets the sites hear what
// is said to them.
func (l *ledgerRun) enter(effects []step.Effect) {
	l.ordered = step.HashEffects(l.ordered, effects)
	if *ledgerTrace >= 0 {
		l.trace(effects)
	}
	each := make([][]byte, 0, len(effects))
	for _, e := range effects {
		each = append(each, binary.BigEndian.AppendUint64(nil, step.HashEffects(0, []step.Effect{e})))
	}
	slices.SortFunc(each, bytes.Compare)
	fact := step.Fact{Kind: "step", Value: bytes.Join(each, nil)}
	l.sorted = step.HashEffects(l.sorted, []step.Effect{step.Persist{Fact: fact}})
	for _, e := range effects {
		l.deliver(e)
	}
}

func (l *ledgerRun) trace(effects []step.Effect) {
	l.log("Step %d at %s", l.steps, l.now.Format("15:04:05.000"))
	for _, e := range effects {
		if p, is := e.(step.Persist); is {
			l.log("\tPersist %s %s %s", p.Fact.Kind, p.Fact.Key, p.Fact.Value)
			continue
		}
		l.log("\t%T %+v", e, e)
	}
}

func (l *ledgerRun) deliver(e step.Effect) {
	switch e := e.(type) {
	case step.Broadcast:
		for _, site := range sites[:4] {
			l.hearOf(site, e.Message)
		}
	case step.Send:
		l.hearOf(e.To, e.Message)
	case step.Collect:
		l.inbox = append(l.inbox, heard{msg: collect{e.Attempt}})
	}
	if over := len(l.inbox) - 60; over > 0 { // the rest is lost
		l.inbox = slices.Delete(l.inbox, 0, over)
	}
}

// collect stands in the inbox for outputs that are being fetched.
type collect struct{ attempt grid.AttemptID }

func (collect) Validate() error { return nil }

// hearOf puts what a good site says to a message into the inbox.
func (l *ledgerRun) hearOf(site grid.SiteID, msg protocol.Message) {
	say := func(m protocol.Message) { l.inbox = append(l.inbox, heard{site, m}) }
	switch msg := msg.(type) {
	case protocol.Announce:
		say(l.offerOf(msg.Job, msg.Seq))
	case protocol.Reannounce:
		if l.src.n(8) == 0 {
			say(protocol.NeedRequirements{Job: msg.Job, Seq: msg.Seq})
		}
		say(l.offerOf(msg.Job, msg.Seq))
	case protocol.HoldOffer:
		l.number++
		o := offer(l.number, float64(l.src.n(12))/4, max(msg.Tasks, uint32(l.src.n(3))))
		o.Firm = true
		say(protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: o})
	case protocol.Award:
		for _, task := range msg.Tasks {
			l.takeTask(attemptOf(msg.Job, task.Index, task.Token), msg.AskFirst, say)
		}
	case protocol.Lease:
		for _, id := range msg.Attempts {
			l.runTask(id, say)
		}
	}
}

func (l *ledgerRun) offerOf(job grid.JobID, seq uint32) protocol.Message {
	if l.src.n(6) == 0 || l.tight && l.src.n(12) > 0 {
		refusal := grid.Refusal{Reason: grid.ReasonCPUs, Never: l.tight || l.src.n(3) == 0}
		return protocol.Refuse{Job: job, Seq: seq, Refusal: refusal}
	}
	l.number++
	o := offer(l.number, float64(l.src.n(12))/4, uint32(l.src.n(4)))
	o.Parts.Wait, o.Parts.Run = time.Duration(l.src.n(4))*time.Second, time.Minute
	o.Parts.Z = float64(l.src.n(4)) / 8
	o.Finish, o.CoreMFLOPS = o.Parts.Wait+o.Parts.Run, int64(l.src.n(3))*100
	return protocol.Bid{Job: job, Seq: seq, Offer: o}
}

func (l *ledgerRun) takeTask(id grid.AttemptID, askFirst bool, say func(protocol.Message)) {
	ids := []grid.AttemptID{id}
	if l.src.n(8) == 0 {
		refused := protocol.Declined{Attempts: ids, Refusal: grid.Refusal{Reason: grid.ReasonCPUs}}
		if l.src.n(2) == 0 {
			l.number++
			o := offer(l.number, float64(l.src.n(20))/4, 1)
			refused.Quote = &o
		}
		say(refused)
		return
	}
	l.number++
	say(protocol.Accepted{Attempts: ids, Renewal: l.number})
	if askFirst {
		l.number++
		say(protocol.MayStart{Attempts: ids, Renewal: l.number})
	}
}

func (l *ledgerRun) runTask(id grid.AttemptID, say func(protocol.Message)) {
	if l.src.n(3) == 0 {
		say(protocol.Progress{
			Attempt: id, Phase: grid.PhaseStaging, Done: 1, Total: 3,
			StartsIn: time.Duration(l.src.n(5)) * time.Second,
		})
	}
	say(protocol.Progress{Attempt: id, Phase: grid.PhaseRunning})
	switch l.src.n(6) {
	case 0, 1, 2:
		l.number++
		say(protocol.Renew{Attempts: []grid.AttemptID{id}, Renewal: l.number})
	case 3: // silent from here on
	case 4:
		causes := []grid.ExitCause{
			grid.CauseStopped, grid.CauseSandbox, grid.CauseData, grid.CauseSiteRestart,
		}
		say(protocol.Exited{Attempt: id, Exit: grid.Exit{Cause: causes[l.src.n(4)]}})
	default:
		exit := grid.Exit{Cause: grid.CauseExited, Code: max(0, l.src.n(4)-2)}
		if l.src.n(2) == 0 {
			exit.Stdout = grid.Produced{Path: "/out", CID: "bout", Bytes: 3}
		}
		say(protocol.Exited{Attempt: id, Exit: exit})
	}
}

// next lets one thing happen: a quarter of the time anything.
func (l *ledgerRun) next() {
	switch at := l.src.n(16); {
	case at < 4:
		l.act(l.src)
	case at < 13 && len(l.inbox) > 0:
		l.answer()
	case at == 13:
		l.do(step.Submit{Command: 1, Job: l.drawJob(l.src), NoWait: l.src.n(6) == 0})
	case at == 14:
		l.do(step.PeerSeen{
			Site: sites[l.src.n(3)], Capability: l.capability(),
			RoundTrip: time.Duration(l.src.n(3)) * time.Millisecond,
			Skew:      time.Duration(l.src.n(3)-1) * time.Second,
		})
		l.do(step.BandwidthMeasured{Peer: sites[l.src.n(3)], UpBps: int64(l.src.n(3)) * 1_000_000})
	default:
		l.pass(time.Duration(l.src.n(80)) * 50 * time.Millisecond)
	}
}

// answer lets the broker hear what was said first, as a rule; one in six is spoiled.
func (l *ledgerRun) answer() {
	at := 0
	if l.src.n(4) == 0 {
		at = l.src.n(len(l.inbox))
	}
	said := l.inbox[at]
	l.inbox = slices.Delete(l.inbox, at, at+1)
	spoiled := l.src.n(6) == 0
	if c, fetched := said.msg.(collect); fetched {
		problem := ""
		if spoiled {
			problem = "unreachable"
		}
		l.do(step.Collected{Attempt: c.attempt, Problem: problem})
		return
	}
	if spoiled {
		switch l.src.n(3) {
		case 0:
			return // lost
		case 1:
			said.from = sites[l.src.n(len(sites))]
		default:
			said.msg = l.drawMessage(l.src)
		}
	}
	l.hear(said.from, said.msg)
}
