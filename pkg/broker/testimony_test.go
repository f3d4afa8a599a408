package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// says makes a testimony of sites, with so many faults each.
func (b *bench) says(
	author grid.SiteID, number uint64, index float64, about ...grid.SiteID,
) protocol.Testimony {
	m := protocol.Testimony{Author: author, Sequence: number, IssuedMS: b.now.UnixMilli()}
	for _, site := range about {
		m.Said = append(m.Said, protocol.Statement{About: site, Index: index, Tried: 9})
	}
	return m
}

func (b *bench) exits(site grid.SiteID, id grid.JobID, index uint32, cause grid.ExitCause) {
	b.hear(site, protocol.Exited{
		Attempt: attemptOf(id, index, 1), Exit: grid.Exit{Cause: cause},
	})
}

func testimonies(effects []step.Effect) map[grid.SiteID]protocol.Testimony {
	all := map[grid.SiteID]protocol.Testimony{}
	for _, e := range effects {
		if s, is := e.(step.Send); is {
			if m, is := s.Message.(protocol.Testimony); is {
				all[s.To] = m
			}
		}
	}
	return all
}

func about(m protocol.Testimony) (sites []grid.SiteID) {
	for _, s := range m.Said {
		sites = append(sites, s.About)
	}
	return sites
}

// As long as nobody fails, nobody says anything. A fault is told to all within five minutes, except
// to the site that it is about, and not again.
func TestFaultsAreToldToOthers(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	id := b.bothRun()
	b.exits("b", id, 1, grid.CauseExited)
	if _, set := b.timers[step.TimerKey{Name: timerTestify}]; set {
		t.Error("there is something to tell before anything has failed")
	}
	b.exits("a", id, 0, grid.CauseSandbox)
	told := testimonies(b.pass(testifyEvery))
	if len(told) != 3 || !slices.Equal(about(told["c"]), []grid.SiteID{"a", "b"}) ||
		!slices.Equal(about(told["b"]), []grid.SiteID{"a"}) ||
		!slices.Equal(about(told["a"]), []grid.SiteID{"b"}) {
		t.Fatalf("told %+v", told)
	}
	first := told["c"].Said[0]
	if first.Index < .99 || first.Tried != 1 || first.Over < testifyEvery-time.Second ||
		first.Causes[fault.Failed] != 1 || told["c"].Said[1].Index != 0 {
		t.Errorf("it says %+v", told["c"].Said)
	}
	if again := testimonies(b.pass(time.Hour)); len(again) != 0 {
		t.Errorf("without news it says %+v", again)
	}
	b.do(step.PeerSeen{Site: "d", Name: "d"})
	came := testimonies(b.pass(testifySoon))
	if len(came) != 1 || len(came["d"].Said) != 2 || came["d"].Sequence <= told["c"].Sequence {
		t.Errorf("one that comes is told %+v", came)
	}
	before := came["d"].Sequence
	b.restart("a", "b", "c", "d")
	after := testimonies(b.pass(testifyEvery))
	if len(after) == 0 || after["c"].Sequence <= before {
		t.Errorf("after a restart it says %+v", after)
	}
}

// Who hears that a site is accused says what it has seen itself.
func TestAnAccusationIsAnswered(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	id := b.bothRun()
	b.exits("b", id, 1, grid.CauseExited)
	b.exits("a", id, 0, grid.CauseExited)
	b.hear("c", b.says("c", 1, 0, "a"))
	if said := testimonies(b.pass(testifyEvery)); len(said) != 0 {
		t.Errorf("nobody is accused, and it says %+v", said)
	}
	b.hear("c", b.says("c", 2, 3, "b"))
	said := testimonies(b.pass(testifyEvery))
	if !slices.Equal(about(said["c"]), []grid.SiteID{"a", "b"}) {
		t.Errorf("b is accused, and it says %+v", said)
	}
}

// What others say counts besides what was seen here, as far as it goes, and fades.
func TestWhatOthersSayCounts(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c", "d")
	for number, author := range []grid.SiteID{"b", "c", "d"} {
		b.hear(author, b.says(author, uint64(number+1), 20, "a"))
		b.now = b.now.Add(weighEvery)
	}
	b.now = b.now.Add(weighAgain)
	b.m.now = b.now
	now := b.m.peers.index("a")
	state := b.m.Members()[0].Fault
	if !(now > .5 && now < 8) || state.Shared != now || state.Own != 0 || state.Says != 3 {
		t.Fatalf("three say 20 faults, and it counts %v; %+v", now, state)
	}
	b.now = b.now.Add(b.m.cfg.FaultHalfLife)
	b.m.now = b.now
	if later := b.m.peers.index("a"); !(later < now && later > 0) {
		t.Errorf("a half-life later it counts %v, was %v", later, now)
	}
	b.now = b.now.Add(testimonyKept)
	b.m.now = b.now
	if later := b.m.peers.index("a"); later != 0 || len(b.m.peers.said.by) != 0 {
		t.Errorf("after two weeks more it counts %v of %v", later, b.m.peers.said.by)
	}
}

// Each testimony that is not heard, by the one thing that is wrong with it.
func TestTestimoniesThatAreNotHeard(t *testing.T) {
	for name, c := range map[string]struct {
		from   grid.SiteID
		change func(*bench, *protocol.Testimony)
		reason grid.Reason
	}{
		"hearsay": {"c", func(*bench, *protocol.Testimony) {}, grid.ReasonInvalid},
		"no member": {
			"x", func(_ *bench, m *protocol.Testimony) { m.Author = "x" }, grid.ReasonNotMember,
		},
		"replayed": {"b", func(b *bench, m *protocol.Testimony) {
			b.now = b.now.Add(time.Hour)
			m.Sequence = 4
		}, grid.ReasonStale},
		"too often": {"b", func(*bench, *protocol.Testimony) {}, grid.ReasonQuota},
		"from the future": {"b", func(b *bench, m *protocol.Testimony) {
			b.now = b.now.Add(time.Hour)
			m.IssuedMS = b.now.Add(protocol.MaxSkew + time.Second).UnixMilli()
		}, grid.ReasonClock},
		"too old": {"b", func(b *bench, _ *protocol.Testimony) {
			b.now = b.now.Add(testimonyKept + time.Hour)
		}, grid.ReasonStale},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b", "c")
			b.hear("b", b.says("b", 4, 1, "a"))
			m := b.says("b", 5, 50, "a")
			c.change(b, &m)
			effects := b.hear(c.from, m)
			r := reportOf(t, effects, eventTestimonyRefused)
			if r.Reason != c.reason || r.Site != c.from {
				t.Errorf("%+v, want %s", r, c.reason)
			}
			for _, heard := range b.m.peers.said.by {
				if heard.said[0].Index != 1 {
					t.Errorf("it is heard: %+v", heard)
				}
			}
		})
	}
}

func reportOf(t *testing.T, effects []step.Effect, event string) step.Report {
	t.Helper()
	for _, e := range effects {
		if r, is := e.(step.Report); is && r.Event == event {
			return r
		}
	}
	t.Fatalf("no %s in %v", event, effects)
	return step.Report{}
}

// Nobody speaks of itself, of the listener, or of sites that are not known.
func TestStatementsThatDoNotCount(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.hear("b", b.says("b", 1, 9, "a", "b", self, "x"))
	if got := b.m.peers.said.by["b"].said; len(got) != 1 || got[0].About != "a" {
		t.Errorf("heard %+v", got)
	}
	if r := reportOf(t, b.last, eventStatementsIgnored); r.Value != 3 {
		t.Errorf("%+v, want 3 ignored", r)
	}
}

// With placing.statements: own nobody is told and nobody heard.
func TestOwnFaultsOnly(t *testing.T) {
	b := newBench(t, func(c *Config) { c.OwnFaultsOnly = true }, "a", "b", "c")
	b.hear("c", b.says("c", 1, 20, "a"))
	id := b.bothRun()
	b.exits("b", id, 1, grid.CauseSandbox)
	b.do(step.PeerSeen{Site: "d", Name: "d"})
	if said := testimonies(b.pass(2 * testifyEvery)); len(said) > 0 || len(b.m.peers.said.by) > 0 {
		t.Errorf("told %v, heard %v", said, b.m.peers.said.by)
	}
}

// What is remembered is bounded: the authors that were silent longest go first, and a member that
// is forgotten takes its word along.
func TestTestimoniesAreBounded(t *testing.T) {
	b := newBench(t, nil, "a")
	for i := range maxAuthors + 5 {
		author := grid.SiteID(fmt.Sprintf("m%03d", i))
		b.do(step.PeerSeen{Site: author, Name: "m"})
		b.hear(author, b.says(author, 1, 9, "a"))
		b.now = b.now.Add(time.Millisecond)
	}
	if n := len(b.m.peers.said.by); n != maxAuthors {
		t.Errorf("%d authors are remembered, want %d", n, maxAuthors)
	}
	if _, known := b.m.peers.said.by["m004"]; known {
		t.Error("the oldest are remembered")
	}
	b.do(step.BansChanged{Banned: []grid.SiteID{"m100"}})
	if _, known := b.m.peers.said.by["m100"]; known {
		t.Error("the word of a banned site counts")
	}
}

// Of very many sites the worst are told.
func TestTheWorstAreTold(t *testing.T) {
	b := newBench(t, nil, "b")
	for i := range protocol.MaxStatements + 20 {
		site := grid.SiteID(fmt.Sprintf("m%03d", i))
		b.do(step.PeerSeen{Site: site, Name: "m"})
		b.m.peers.faults.Put(site, fault.Record{Index: float64(i), At: b.now, Tried: 1})
	}
	b.m.now = b.now
	said := b.m.peers.testimonyFor("b")
	if len(said) != protocol.MaxStatements || said[0].About != "m020" {
		t.Errorf("%d are told, the first is %s", len(said), said[0].About)
	}
	if err := (protocol.Testimony{Author: self, Sequence: 1, Said: said}).Validate(); err != nil {
		t.Error(err)
	}
}
