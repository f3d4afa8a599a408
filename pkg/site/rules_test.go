package site

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An offer is held for its own job and submitter: theirs by its number, or a later one of theirs
// if the request to hold it came twice; and never one of another.
func TestAnOfferIsHeldForWhomItWasMade(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.bid(announcement(job2, bob))
	for _, c := range []struct {
		number uint64
		job    grid.JobID
		from   grid.SiteID
		want   uint64
	}{
		{offer.ID, job1, alice, offer.ID},
		{offer.ID + 100, job1, alice, offer.ID}, // one from before
		{offer.ID, job1, bob, 0},
		{offer.ID, job2, alice, 0},
		{offer.ID, job2, bob, offer.ID + 1},
		{offer.ID, job3, alice, 0},
		{0, job3, bob, 0},
	} {
		if got := r.m.heldOffer(c.number, c.job, c.from); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A machine is not made of settings that cannot be.
func TestNewRefusesWrongSettings(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a limit below 0": func(c *Config) { c.MaxRuntime = -1 },
		"no cache":        func(c *Config) { c.CacheEntries = 0 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a machine was made", name)
				}
			}()
			cfg := Default(self, fourCores())
			change(&cfg)
			New(cfg)
		}()
	}
}

// Work that was refused may fit when the owner allows longer work than before, and only then is
// it told that there may be room.
func TestLongerWorkMakesAVacancy(t *testing.T) {
	for _, c := range []struct {
		before, after time.Duration
		room          bool
	}{
		{time.Minute, 2 * time.Minute, true},
		{time.Minute, 0, true}, // no limit
		{time.Minute, time.Minute, false},
		{2 * time.Minute, time.Minute, false},
		{0, time.Minute, false},
		{0, 0, false},
	} {
		r := newRig(t, func(cfg *Config) { cfg.MaxRuntime = c.before })
		r.receive(alice, announcement(job1, alice))
		r.advance(time.Hour) // whatever was noted before
		terms := termsOf(r.m.cfg)
		terms.MaxRuntime, terms.Price, terms.Priced = c.after, 1, true
		noted := false
		for _, e := range only[step.SetTimer](r.step(terms)) {
			noted = noted || e.Key.Name == timerVacancy
		}
		if noted != c.room {
			t.Errorf("%+v: noted = %t", c, noted)
		}
	}
}

// An item's text must not blow a task up, wherever it is put: as much text as a template may have
// is taken, and a byte more is not.
func TestItemsDoNotBlowPathsUp(t *testing.T) {
	const length = 2_048
	for n, ok := range map[int]bool{
		grid.MaxSpecText / length: true, grid.MaxSpecText/length + 1: false,
	} {
		r := newRig(t)
		a := award(job1, r.bid(announcement(job1, alice)), 1, 1, func(s *grid.Spec) {
			s.Args = nil
			for range n {
				s.Inputs = append(s.Inputs, grid.Input{Path: "/{{item}}", CID: "bdata"})
			}
		})
		a.Tasks[0].Item.Value = strings.Repeat("x", length)
		_, taken := r.m.expand(a, a.Tasks[0])
		if taken != ok {
			t.Errorf("%d paths: taken = %t", n, taken)
		}
	}
}

// Facts of attempts are the same if they say the same, however JSON writes it; of others the
// texts are compared.
func TestFactsAreComparedByWhatTheySay(t *testing.T) {
	value := attemptFact{Attempt: attemptID(job1, 0, 1), Submitter: alice, Phase: "exited"}
	fact := step.NewFact(kindAttempt, "k", value)
	spaced, other := fact, fact
	spaced.Value = []byte(strings.Replace(string(fact.Value), "{", "{ ", 1))
	other.Value = []byte(strings.Replace(string(fact.Value), "alice", "bob", 1))
	if !equalValues(fact, spaced) || equalValues(fact, other) {
		t.Error("an attempt's fact: want it equal with a space, and not of another submitter")
	}
	fact.Kind, spaced.Kind = "paused", "paused"
	if equalValues(fact, spaced) || !equalValues(fact, fact) {
		t.Error("another fact: want the texts compared")
	}
}

// The times of a place move together; one that is not set stays so.
func TestTimesOfAPlaceMoveTogether(t *testing.T) {
	f := promisedFact{StartMS: 5_000, EndMS: 1, StartByMS: -7}
	f.shift(2 * time.Second)
	if f.StartMS != 7_000 || f.EndMS != 2_001 || f.StartByMS != 1_993 {
		t.Errorf("%+v", f)
	}
	if f.NotBeforeMS != 0 || f.DeadlineMS != 0 || f.LatestStartMS != 0 || f.ZeroMS != 0 {
		t.Errorf("what was not set has a time: %+v", f)
	}
	all := promisedFact{
		StartMS: 1, EndMS: 2, NotBeforeMS: 3, DeadlineMS: 4, LatestStartMS: 5, StartByMS: 6,
		anchor: anchor{ZeroMS: 7},
	}
	all.shift(-time.Second)
	want := promisedFact{
		StartMS: -999, EndMS: -998, NotBeforeMS: -997, DeadlineMS: -996, LatestStartMS: -995,
		StartByMS: -994, anchor: anchor{ZeroMS: -993},
	}
	if all.StartMS != want.StartMS || all.EndMS != want.EndMS || all.NotBeforeMS != want.NotBeforeMS ||
		all.DeadlineMS != want.DeadlineMS || all.LatestStartMS != want.LatestStartMS ||
		all.StartByMS != want.StartByMS || all.ZeroMS != want.ZeroMS {
		t.Errorf("%+v, want %+v", all, want)
	}
}
