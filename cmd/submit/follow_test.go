package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The end of a job is looked at when it is told, and other changes after a pause.
func TestWhenAJobIsLookedAt(t *testing.T) {
	const pause = 20 * time.Millisecond
	for name, c := range map[string]struct {
		before, during []bool // news: whether it is an end
		want           time.Duration
	}{
		"nothing":              {nil, nil, pause + pollEvery},
		"a change before":      {[]bool{false}, nil, pause},
		"a change meanwhile":   {nil, []bool{false}, pause},
		"an end before":        {[]bool{true}, nil, 0},
		"an end meanwhile":     {nil, []bool{true}, pause / 2},
		"a change and an end":  {[]bool{false}, []bool{true}, pause / 2},
		"many changes and one": {[]bool{false, false, false}, []bool{false}, pause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNews()
				for _, ends := range c.before {
					n.tell(ends)
				}
				began := time.Now()
				time.AfterFunc(pause/2, func() {
					for _, ends := range c.during {
						n.tell(ends)
					}
				})
				err := n.await(t.Context(), pause)
				if took := time.Since(began); err != nil || took != c.want {
					t.Errorf("after %s, %v, want %s", took, err, c.want)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newNews().await(ctx, pause); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
