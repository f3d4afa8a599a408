package obs

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How much one cause may say. A burst is written in full; beyond, one line in each
// pause, which says how many were left out.
const (
	calmBurst  = 200              // lines of one cause in a row
	calmPause  = time.Second      // between two lines of it in the long run
	calmCauses = 1024             // causes told apart; beyond, all others are one
	calmIdle   = 10 * time.Minute // a cause that is quiet for so long may be forgotten for another
)

// calm is the logger with a bound on how much one cause can write, so that a peer
// that makes this site complain cannot fill its disk. Records of the same level and
// message, and for reports of the same event, have one cause. Debug records pass
// unbounded: a reader who asks for them wants them all. The clock is that of the
// records.
func calm(log *slog.Logger) *slog.Logger {
	return slog.New(calmHandler{
		Handler: Or(log).Handler(), causes: &causes{all: make(map[cause]*volume)},
	})
}

// calmHandler passes on what is not too much.
type calmHandler struct {
	slog.Handler
	causes *causes
}

type cause struct {
	level          slog.Level
	message, event string
}

// causes counts what each cause says. It is shared by all handlers made from one.
type causes struct {
	mu  sync.Mutex
	all map[cause]*volume
}

// volume is a bucket of lines, and how many did not fit.
type volume struct {
	lines   float64
	at      time.Time
	leftOut int
}

// Handle implements slog.Handler.
func (h calmHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r)
	}
	c := cause{level: r.Level, message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "event" {
			c.event = a.Value.String()
		}
		return a.Key != "event"
	})
	leftOut, ok := h.causes.take(c, r.Time)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h calmHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calmHandler{Handler: h.Handler.WithAttrs(attrs), causes: h.causes}
}

// WithGroup implements slog.Handler.
func (h calmHandler) WithGroup(name string) slog.Handler {
	return calmHandler{Handler: h.Handler.WithGroup(name), causes: h.causes}
}

// take reports whether the cause may write a line, and how many were left out
// since its last one.
func (cs *causes) take(c cause, now time.Time) (leftOut int, ok bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	v := cs.all[c]
	if v == nil {
		if len(cs.all) >= calmCauses {
			cs.forget(now)
		}
		if len(cs.all) >= calmCauses {
			c = cause{}
			v = cs.all[c]
		}
	}
	if v == nil {
		v = &volume{lines: calmBurst, at: now}
		cs.all[c] = v
	}
	if since := now.Sub(v.at); since > 0 {
		v.lines = min(v.lines+since.Seconds()/calmPause.Seconds(), calmBurst)
		v.at = now
	}
	if v.lines < 1 {
		v.leftOut++
		return 0, false
	}
	v.lines--
	leftOut, v.leftOut = v.leftOut, 0
	return leftOut, true
}

// forget drops the causes that were quiet for long.
func (cs *causes) forget(now time.Time) {
	for c, v := range cs.all {
		if now.Sub(v.at) > calmIdle {
			delete(cs.all, c)
		}
	}
}
