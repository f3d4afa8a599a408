package baseline

import "time"

// links says until when the ways between sites are in use: one transfer at a time on each
// way, the others wait for it in the order in which they were asked for. A site's own disk
// serves all at the same time.
type links struct {
	grid Grid
	busy [][]time.Duration
}

func newLinks(g Grid) *links {
	l := &links{grid: g, busy: make([][]time.Duration, len(g.Sites))}
	for i := range l.busy {
		l.busy[i] = make([]time.Duration, len(g.Sites))
	}
	return l
}

// arrival is when bytes that are sent now will have come.
func (l *links) arrival(now time.Duration, bytes int64, from, to int) time.Duration {
	begin := now
	if from != to && bytes > 0 {
		begin = max(now, l.busy[from][to])
	}
	return begin + l.grid.transfer(bytes, from, to)
}

// send sends them, and tells when they will have come.
func (l *links) send(now time.Duration, bytes int64, from, to int) time.Duration {
	at := l.arrival(now, bytes, from, to)
	if from != to && bytes > 0 {
		l.busy[from][to] = at
	}
	return at
}
