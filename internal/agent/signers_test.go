package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// signers are a mesh of a submitter that gives nothing, a site that runs modules of ada's, one that
// runs commands of hers as well, and one that runs what anybody has signed or not.
func signers(t *testing.T, ada agent.Pen) (submitter, wasm, both, anyone *node) {
	t.Helper()
	c := agent.Plans(t, 4)
	for i := range c[1:] {
		c[i+1].Capability.Kinds = []grid.WorkKind{grid.KindWasm, grid.KindCommand}
		c[i+1].Adapters[grid.KindCommand] = fake.New(fake.Config{Kind: grid.KindCommand})
	}
	c[1].Signers = []grid.Signer{{Key: ada.Public, Kinds: []grid.WorkKind{grid.KindWasm}}}
	c[2].Signers = []grid.Signer{{Name: "ada", Key: ada.Public}}
	submitter = start(t, c[0])
	wasm, both, anyone = start(
		t,
		c[1],
		submitter,
	), start(
		t,
		c[2],
		submitter,
	), start(
		t,
		c[3],
		submitter,
	)
	submitter.awaitPeers(t, 3)
	return submitter, wasm, both, anyone
}

// answers says what each site answers to a job: an empty text where it offers.
func (n *node) answers(t *testing.T, job grid.Job) map[grid.SiteID]string {
	t.Helper()
	got := make(map[grid.SiteID]string)
	agent.Eventually(t, "all sites answer", func() bool {
		offers, err := n.Plan(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		clear(got)
		for _, row := range offers.Rows {
			got[row.Site] = row.Refusal
		}
		return len(got) >= 4
	})
	return got
}

// Jobs that are signed by ada, by bob or by nobody go where they may, are refused elsewhere with a
// reason, and a signature of one job is good for no other.
func TestSignedWorkGoesWhereItsSignerIsListed(t *testing.T) {
	t.Parallel()
	ada, bob := agent.NewPen(t), agent.NewPen(t)
	submitter, wasm, both, anyone := signers(t, ada)
	plain := submitter.job(t, "print=hello")
	plain.TTL = 2 * time.Second
	command := plain
	command.Spec.Kind, command.Spec.Module = grid.KindCommand, grid.Input{}
	stolen := plain
	stolen.Spec.Signature = ada.Job(t, submitter.job(t, "print=another")).Spec.Signature
	const unsigned, unlisted = "the job is not signed", "signer is not on its list"
	for _, c := range []struct {
		name       string
		job        grid.Job
		wasm, both string // why these two refuse it; empty: they offer
		where      []*node
	}{
		{"a module, by ada", ada.Job(t, plain), "", "", []*node{wasm, both, anyone}},
		{"a command, by ada", ada.Job(t, command), "other kinds", "", []*node{both, anyone}},
		{"by nobody", plain, unsigned, unsigned, []*node{anyone}},
		{"by bob", bob.Job(t, plain), unlisted, unlisted, []*node{anyone}},
	} {
		got := submitter.answers(t, c.job)
		for site, want := range map[*node]string{wasm: c.wasm, both: c.both, anyone: ""} {
			if (got[site.Self()] == "") != (want == "") ||
				!strings.Contains(got[site.Self()], want) {
				t.Errorf(
					"%s: %s answers %q, want %q",
					c.name,
					site.cfg.Name,
					got[site.Self()],
					want,
				)
			}
		}
		done := submitter.await(t, submitter.submit(t, c.job), view.PhaseDone)
		ran := false
		for _, site := range c.where {
			ran = ran || done.Site == site.Self()
		}
		if !ran {
			t.Errorf("%s: it ran at %s", c.name, done.Site)
		}
	}
	// The announcement of a stolen signature is good, the award is not.
	if err := anyone.Pause(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	id := submitter.submit(t, stolen)
	agent.Eventually(t, "both sites decline the stolen signature", func() bool {
		return statusOf(t, wasm).Counters["declined"] > 0 &&
			statusOf(t, both).Counters["declined"] > 0
	})
	if got := submitter.task(t, id); got.Phase == view.PhaseDone || got.Phase == view.PhaseRunning {
		t.Errorf("a job with another one's signature is %s", got.Phase)
	}
}

// A key that leaves the list ends what it has signed, and the task goes elsewhere.
func TestAKeyThatLeavesTheListEndsItsWork(t *testing.T) {
	t.Parallel()
	ada := agent.NewPen(t)
	submitter, wasm, both, anyone := signers(t, ada)
	for _, n := range []*node{both, anyone} {
		if err := n.Pause(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	id := submitter.submit(t, ada.Job(t, submitter.job(t, "run=1h")))
	if at := submitter.await(t, id, view.PhaseRunning).Site; at != wasm.Self() {
		t.Fatalf("it runs at %s", at)
	}
	terms := wasm.Terms()
	terms.Owner.Patience = time.Minute // the plans of tests leave it to the machine
	terms.Signers = []grid.Signer{{Key: agent.NewPen(t).Public}}
	if err := wasm.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	if err := anyone.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	agent.Eventually(t, "it runs at the site that takes anything", func() bool {
		got := submitter.task(t, id)
		return got.Phase == view.PhaseRunning && got.Site == anyone.Self()
	})
	if got := statusOf(t, wasm); got.Signers != 1 {
		t.Errorf("the status says %d signers", got.Signers)
	}
}
