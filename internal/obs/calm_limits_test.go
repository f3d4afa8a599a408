package obs

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A cause has its burst, then a line for each pause; what it saves up is no more than the
// burst. What was left out is told once, with the next line.
func TestWhatACauseMayWrite(t *testing.T) {
	cs := &causes{all: make(map[cause]*volume)}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one := cause{message: "one"}
	for i := range calmBurst {
		if left, ok := cs.take(one, now); !ok || left != 0 {
			t.Fatalf("line %d of the burst: %d left out, written: %t", i, left, ok)
		}
	}
	if _, ok := cs.take(one, now); ok {
		t.Error("one more than the burst is written")
	}
	if _, ok := cs.take(one, now.Add(calmPause/2)); ok {
		t.Error("half a pause later one more is written")
	}
	if left, ok := cs.take(one, now.Add(calmPause)); !ok || left != 2 {
		t.Errorf("a pause later: %d left out, written: %t, want 2", left, ok)
	}
	if _, ok := cs.take(one, now); ok {
		t.Error("a clock that goes back gives lines")
	}
	later, written := now.Add(10*calmBurst*calmPause), 0
	for range 3 * calmBurst {
		left, ok := cs.take(one, later)
		if !ok {
			continue
		}
		if written++; (left != 0) != (written == 1) {
			t.Errorf("line %d says that %d were left out", written, left)
		}
	}
	if written != calmBurst {
		t.Errorf("%d lines are saved up, want the burst of %d", written, calmBurst)
	}
}

// Only where there are too many causes is one forgotten, and only one that was quiet; what
// comes then is one cause together.
func TestWhichCausesAreForgotten(t *testing.T) {
	cs := &causes{all: make(map[cause]*volume)}
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	name := func(i int) cause { return cause{message: fmt.Sprint(i)} }
	cs.take(name(0), begin)
	recent := begin.Add(time.Nanosecond) // quiet for no longer than it may be, below
	for i := 1; i < calmCauses; i++ {
		cs.take(name(i), recent)
	}
	if len(cs.all) != calmCauses || cs.all[name(0)] == nil {
		t.Fatalf("%d causes, want %d with the first", len(cs.all), calmCauses)
	}
	now := recent.Add(calmIdle)
	cs.take(name(calmCauses), now)
	if cs.all[name(0)] != nil || cs.all[name(1)] == nil || cs.all[name(calmCauses)] == nil {
		t.Error("want the quiet one forgotten for the new one, and no other")
	}
	cs.take(name(calmCauses+1), now)
	cs.take(name(calmCauses+2), now)
	if v := cs.all[cause{}]; v == nil || v.lines != calmBurst-2 || len(cs.all) != calmCauses+1 {
		t.Errorf("without room: %+v in %d causes, want both in one", v, len(cs.all))
	}
}

// kept remembers what it is given, as a handler may.
type kept struct {
	slog.Handler
	records []slog.Record
}

func (k *kept) Enabled(context.Context, slog.Level) bool { return true }

func (k *kept) Handle(_ context.Context, r slog.Record) error {
	k.records = append(k.records, r)
	return nil
}

// The record of the caller stays as it was, though it may have room for one attribute more:
// another handler may hold it.
func TestTheCallersRecordIsLeftAlone(t *testing.T) {
	k := &kept{}
	h := calm(slog.New(k)).Handler()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range calmBurst + 1 {
		_ = h.Handle(context.Background(), slog.NewRecord(now, slog.LevelWarn, "m", 0))
	}
	r := slog.NewRecord(now.Add(time.Minute), slog.LevelWarn, "m", 0)
	for i := range 8 { // more than a record holds without a list, where one more fits
		r.AddAttrs(slog.Int(fmt.Sprint("a", i), i))
	}
	if err := h.Handle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	r.AddAttrs(slog.Int("own", 1))
	keys := func(r slog.Record) (names []string) {
		r.Attrs(func(a slog.Attr) bool {
			names = append(names, a.Key)
			return true
		})
		return names
	}
	own := []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "own"}
	handed := append(slices.Clone(own[:8]), "left_out")
	if diff := cmp.Diff(own, keys(r)); diff != "" {
		t.Errorf("the caller's record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(handed, keys(k.records[len(k.records)-1])); diff != "" {
		t.Errorf("what was handed on (-want +got):\n%s", diff)
	}
}
