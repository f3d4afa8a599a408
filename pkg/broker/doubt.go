package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A word that is read after this machine slept, or had no processor for a while, may have waited
// meanwhile: what it tells of seems to be later than it was. When it says that a promise was not
// kept, and this machine's absence would explain it, the site's next words are heard as well,
// until two agree. Sites repeat an end until it is acknowledged.

// pause is the longest time of late in which this machine did nothing.
type pause struct {
	length time.Duration
	end    time.Time
}

// doubt is about the end of a task: it was perhaps not as late as was said.
type doubt struct {
	until   time.Time // the doubt ends then, if no word ends it before; zero: there is none
	ended   time.Time // the earliest end that was told of
	heard   time.Time // when
	fetched bool      // what the attempt left is here: the task waits for nothing else
}

// step takes it that the next Step is at a time.
func (p *pause) step(last, now time.Time) {
	length := now.Sub(last)
	if !last.IsZero() && (length >= p.length || now.Sub(p.end) > resultWait) {
		p.length, p.end = length, now
	}
}

// explains reports whether a word that is read now may have waited for so long.
func (p *pause) explains(late time.Duration, now time.Time) bool {
	return late > 0 && late <= p.length+PromiseTolerance && now.Sub(p.end) < resultWait
}

// doubtful reports whether a task awaits another word about its end.
func (r *run) doubtful(t *task) bool { return r.now.Before(t.doubt.until) }

// hearAgain takes another word about an end that is in doubt. Of all that is told the earliest
// is the nearest: a word comes late, and never early.
func (r *run) hearAgain(j *job, t *task, msg protocol.Exited) {
	if !r.doubtful(t) {
		return
	}
	before := t.doubt
	t.reopenPledge()
	r.judge(j, t, msg)
	const near = PromiseTolerance / 2 // two that were read together were perhaps said apart
	agree := r.now.Sub(before.heard) >= near && r.ago(t, msg.EndedAgo).Sub(before.ended).Abs() < near
	if agree || t.promise != grid.PromiseLate {
		t.doubt.until = timeZero
	}
	r.saveTask(j, msg.Attempt.Task.Index)
}
