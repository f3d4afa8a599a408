package agent_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// heard keeps what a member is told, as it comes over the wire.
type heard struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (h *heard) take(_ grid.SiteID, m protocol.Message) {
	text, err := protocol.Encode(m)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.all.Write(text)
	}
}

func (h *heard) has(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.all.String(), text)
}

// gets reports how much of some data a member is given by others, which have it.
func (n *node) gets(t *testing.T, cid grid.CID, holders ...*node) int64 {
	t.Helper()
	var sites []grid.SiteID
	for _, h := range holders {
		sites = append(sites, h.Self())
	}
	result, err := n.Stores().Data.Fetch(t.Context(), cid, sites, nil)
	if err == nil {
		t.Errorf("%s was fetched", cid)
	}
	return result.Bytes
}

// A member that is neither given a job's work nor keeps its data is told of no CID in what all
// hear, and if it learns them all nevertheless it gets no byte: of the module and the inputs
// before, while and after the task runs, nor of what it left. Who runs it gets all.
func TestAnOnlookerGetsNothingOfAJob(t *testing.T) {
	t.Parallel()
	var h heard
	c := agent.Plans(t, 3)
	c[2].Taps.Received = h.take
	submitter := start(t, c[0])
	worker, onlooker := start(t, c[1], submitter), start(t, c[2], submitter)
	for _, n := range []*node{submitter, worker, onlooker} {
		n.awaitPeers(t, 2)
	}
	for _, n := range []*node{submitter, onlooker} {
		if err := n.Pause(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	job := submitter.job(t, "run=2s", "print=seen", "put=/out:result")
	input := submitter.store(t, strings.Repeat("secret", 200_000))
	job.Spec.Inputs = []grid.Input{{Path: "/in", CID: input.CID, Bytes: input.Bytes}}
	job.Spec.Outputs = []grid.Output{{Path: "/out", To: "out"}}
	secrets := []grid.CID{job.Spec.Module.CID, input.CID}
	nothing := func(when string, holders ...*node) {
		t.Helper()
		for _, cid := range secrets {
			if got := onlooker.gets(t, cid, holders...); got != 0 {
				t.Errorf("%s it gets %d bytes of %s", when, got, cid)
			}
			if h.has(string(cid)) {
				t.Errorf("%s it has been told of %s", when, cid)
			}
		}
	}
	nothing("before the job", submitter)
	id := submitter.submit(t, job)
	submitter.await(t, id, view.PhaseRunning)
	if !worker.Stores().Data.Has(input.CID) {
		t.Error("who runs it has not got its input")
	}
	nothing("while it runs", submitter, worker)
	done := submitter.await(t, id, view.PhaseDone)
	for _, out := range done.Outputs {
		secrets = append(secrets, out.CID)
	}
	if len(secrets) != 3 || h.all.Len() == 0 {
		t.Fatalf("%d secrets, and %d bytes heard", len(secrets), h.all.Len())
	}
	nothing("after its end", submitter, worker)
}
