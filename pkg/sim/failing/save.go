package failing

import "github.com/mrsmesh/mrsmesh/pkg/ckpt"

// ahead returns the seconds of work that a task does before it saves its state or asks whether to;
// all that is left or more: it asks no more.
func (w *world) ahead(t *task, left float64) float64 {
	switch w.policy.Save {
	case SaveKnown:
		return w.segment(left, t.resource.mean)
	case SaveLearned:
		return w.segment(left, 1/w.belief(t.resource, w.all()).Rate())
	case SaveDaly:
		interval, err := ckpt.Daly(w.jobs.Cost, t.resource.mean)
		w.note(err)
		return interval
	case SaveMFCA:
		return w.adapt(t, left)
	default:
		return w.policy.Interval
	}
}

// segment is the first of the equal segments into which work is best cut.
func (w *world) segment(left, mtbf float64) float64 {
	n, err := ckpt.Execution{
		WorkSeconds: left, CostSeconds: w.jobs.Cost, MTBFSeconds: mtbf,
	}.Segments()
	w.note(err)
	return left / float64(max(n, 1))
}

// adapt is MFCA's interval, which changes after each checkpoint and begins anew on each resource.
func (w *world) adapt(t *task, left float64) float64 {
	rule := w.policy.mfca(w.jobs.Cost, t.Work)
	if t.interval == 0 {
		t.interval = max(w.policy.Interval, rule.MinSeconds)
		return t.interval
	}
	next, err := rule.Next(t.interval, left, t.resource.interval(w.now))
	w.note(err)
	t.interval = next
	return next
}

// start begins with LFCA on a resource, which failed when it did.
func (w *world) start(t *task) {
	t.lfca = ckpt.LFCA{ExecutionSeconds: t.Work, MaxOmissions: w.policy.Omit}
	w.note(t.lfca.Failed(t.resource.last))
}

// takes reports whether LFCA takes the checkpoint for which a task asks.
func (w *world) takes(t *task) bool {
	decision, err := t.lfca.Request(w.now)
	w.note(err)
	return decision != ckpt.Omit
}
