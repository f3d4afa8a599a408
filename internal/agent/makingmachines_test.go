package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// made gives the machines' configurations as they are in the journals, which a replay reads.
func made(t *testing.T, c Config) (*bench, site.Config, broker.Config) {
	t.Helper()
	b := newBenchOf(t, c)
	if err := b.broker.ask(t.Context(), func() {}); err != nil { // its machine has booted
		t.Fatal(err)
	}
	runs, err := store.Runs(c.StateDir)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d journals, %v", len(runs), err)
	}
	var s site.Config
	var o broker.Config
	for _, run := range runs {
		into := map[string]any{siteName: &s, brokerName: &o}[run.Machine]
		if err := json.Unmarshal(run.Config, into); err != nil {
			t.Fatal(err)
		}
		if run.Build != c.Version || run.Seed != c.Seed {
			t.Errorf("the journal of %s is of build %q, seed %d", run.Machine, run.Build, run.Seed)
		}
		if _, err := NewMachine(run.Header); err != nil {
			t.Errorf("the %s machine is not made again: %v", run.Machine, err)
		}
	}
	return b, s, o
}

// What the owner decided is in the machines' configurations, and what was left open is theirs.
func TestWhatTheMachinesAreMadeFrom(t *testing.T) {
	left := plans(t, 2)[1]
	left.Lease, left.LeaseMargin = 0, 0
	b, s, o := made(t, left)
	wantSite, wantBroker := site.Default(b.Self(), left.Capability), broker.Default(b.Self())
	wantSite.Seed, wantBroker.Seed, wantBroker.Name = left.Seed, left.Seed, left.Name
	wantSite.Domain, wantBroker.Domain = left.P2P.Domain, left.P2P.Domain
	wantSite.DataBytes = left.Data.QuotaBytes
	if !lrm.Continuous {
		wantSite.LongestLease = shortLease
	}
	wantBroker.Addrs, wantBroker.Capability = b.Addrs(), left.Capability
	wantBroker.NoFencing = noFencing
	if diff := cmp.Diff(wantSite, s); diff != "" {
		t.Errorf("the site's machine by default (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantBroker, o); diff != "" {
		t.Errorf("the submitter's machine by default (-want +got):\n%s", diff)
	}

	own := plans(t, 2)[1]
	own.Lease, own.LeaseMargin, own.MaxRuntime = 5*time.Second, time.Second, time.Hour
	own.Priced, own.Price, own.WasmOnly, own.HoldAll = true, 3, true, true
	own.Replies, own.Policy, own.Gossip = 7, grid.AvailPolicy(1), true
	own.SoftMin, own.FIBR = true, true
	own.OwnFaults, own.FaultHalf = true, time.Hour
	own.Owner.Patience, own.Planning = time.Minute, Planning{Promised: 50}
	b, s, o = made(t, own)
	wantSite.Self, wantSite.Planning = b.Self(), site.Planning{
		Promised: 50, Policy: grid.PolicyFCFS, Backfill: grid.BackfillConservative,
	}
	wantSite.MaxRuntime, wantSite.OwnerPatience = time.Hour, time.Minute
	wantSite.Priced, wantSite.Price, wantSite.WasmOnly, wantSite.HoldAll = true, 3, true, true
	wantBroker.Owner, wantBroker.Here, wantBroker.Addrs = b.Self(), b.Self(), b.Addrs()
	wantBroker.Lease, wantBroker.LeaseMargin = 5*time.Second, time.Second
	wantBroker.ReplyTarget, wantBroker.Policy = 7, grid.AvailPolicy(1)
	wantBroker.UnicastUpTo, wantBroker.Choice = 0, broker.ChoiceSoftMin
	wantBroker.FIBR = true
	wantBroker.OwnFaultsOnly, wantBroker.FaultHalfLife = true, time.Hour
	if diff := cmp.Diff(wantSite, s); diff != "" {
		t.Errorf("the site's machine as its owner wants it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantBroker, o); diff != "" {
		t.Errorf("the submitter's machine as its owner wants it (-want +got):\n%s", diff)
	}
}

// A word that the owner leaves out stands for the default, and the other one counts.
func TestTheOrderThatIsLeftOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want Planning }{
		{Planning{}, Planning{Policy: "fcfs", Backfill: "conservative"}},
		{Planning{Policy: "edf"}, Planning{Policy: "edf", Backfill: "conservative"}},
		{Planning{Backfill: "easy"}, Planning{Policy: "fcfs", Backfill: "easy"}},
	} {
		got := c.given.now()
		if got.Policy != c.want.Policy || got.Backfill != c.want.Backfill {
			t.Errorf("%+v becomes %+v", c.given, got)
		}
	}
}

// A submitter's machine is made again from its journal, the own one and that of an owner for whom
// this agent has acted.
func TestMachinesOfOtherOwnersAreMadeAgain(t *testing.T) {
	b, _, own := made(t, plans(t, 2)[0])
	text, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	const other = "12D3KooWA4DjUqW9N15ubWMGTmsZA7HNko2A5vnvtn83qYhffUa7"
	for _, owner := range []grid.SiteID{b.Self(), other} {
		name := b.groupName(owner)
		m, err := NewMachine(store.Header{Machine: name, Config: text})
		if _, is := m.(*broker.Machine); err != nil || !is {
			t.Errorf("%s: %T, %v", name, m, err)
		}
	}
}

// A journal whose header makes no sense is refused, with the machine's name.
func TestHeadersThatMakeNoMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ machine, config, want string }{
		{siteName, "rubbish", "configuration of the site machine"},
		{siteName, "{}", "configuration of the site machine"},
		{brokerName, "rubbish", "configuration of the submitter machine"},
		{brokerName, "{}", "configuration of the submitter machine"},
		{"printer", "{}", `there is no machine "printer"`},
	} {
		h := store.Header{Machine: c.machine, Config: json.RawMessage(c.config)}
		if m, err := NewMachine(h); err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, %v", c.machine, c.config, m, err)
		}
	}
}
