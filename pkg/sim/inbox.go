package sim

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// inbox holds the inputs that wait for one machine of a host that does not take each input as it
// comes: its disk is slow, or its loop takes them in batches.
type inbox struct {
	inputs  []step.Input
	called  bool          // the loop is about to take them
	pending []step.Effect // of the last batch; they wait for its facts to be written
	writing bool
}

// Batch lets a site's loops take what has come together every so often; 0 ends that.
func (w *World) Batch(id grid.SiteID, every time.Duration) {
	w.hosts[id].batch = every
}

// holdsBack reports whether an input has to wait for what came before it.
func (h *host) holdsBack(r role) bool {
	box := &h.inboxes[r]
	return h.batch > 0 || h.disk.slow > 0 || box.writing || len(box.inputs) > 0
}

func (h *host) enqueue(r role, in step.Input) {
	box := &h.inboxes[r]
	box.inputs = append(box.inputs, in)
	if box.called || box.writing {
		return
	}
	box.called = true
	h.after(h.batch, func() { h.takeBatch(r) })
}

// takeBatch gives a machine all that waits for it. The facts of all are written together,
// before anything else is done; a timer that one of them sets anew does not fire for what
// was set before.
func (h *host) takeBatch(r role) {
	box := &h.inboxes[r]
	box.called = false
	if box.writing {
		return
	}
	inputs := box.inputs
	box.inputs = nil
	var effects, rest []step.Effect
	overtaken := make(map[step.TimerKey]bool)
	for _, in := range inputs {
		if fired, is := in.(step.TimerFired); is && overtaken[fired.Key] {
			continue
		}
		wanted := h.think(r, in)
		effects = append(effects, wanted...)
		noteTimers(overtaken, wanted)
	}
	if h.dying && len(effects) > 0 {
		h.dieAmid(r, effects)
		return
	}
	facts := false
	for _, e := range effects {
		if _, is := e.(step.Persist); !is {
			rest = append(rest, e)
			continue
		}
		facts = true
		if h.carryOut(r, e); !h.up {
			return
		}
	}
	box.pending = rest
	if !facts || h.disk.slow == 0 {
		h.finish(r)
		return
	}
	box.writing = true
	h.after(h.disk.slow, func() { h.finish(r) })
}

func noteTimers(overtaken map[step.TimerKey]bool, effects []step.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case step.SetTimer:
			overtaken[e.Key] = true
		case step.StopTimer:
			overtaken[e.Key] = true
		}
	}
}

// finish does what a batch wanted besides its facts, and takes what has come since.
func (h *host) finish(r role) {
	box := &h.inboxes[r]
	effects := box.pending
	box.pending, box.writing = nil, false
	for _, e := range effects {
		if h.up {
			h.carryOut(r, e)
		}
	}
	if h.up {
		h.judge(r, step.TimerFired{})
	}
	if h.up && len(box.inputs) > 0 && !box.called {
		box.called = true
		h.after(h.batch, func() { h.takeBatch(r) })
	}
}

// command gives the submitter's machine what a person waits for: it is answered immediately.
func (h *host) command(in step.Input) {
	batch, slow := h.batch, h.disk.slow
	h.batch, h.disk.slow = 0, 0
	h.step(roleBroker, in)
	h.batch, h.disk.slow = batch, slow
}

// flush immediately does all that a machine has been given.
func (h *host) flush(r role) {
	for box := &h.inboxes[r]; h.up && (box.writing || len(box.inputs) > 0); {
		if box.writing {
			h.finish(r)
			continue
		}
		h.takeBatch(r)
	}
}
