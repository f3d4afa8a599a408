package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// While the next segment is made, however long that takes, the machine goes on: what it is told
// and what becomes durable meanwhile is in the one before, and the next begins after it.
func TestTheMachineGoesOnWhileASegmentIsMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := OpenWith(dir, Options{SegmentBytes: 2000}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	s.db.NoSync = true // this test pulls no plug
	j, err := s.Begin(Header{Build: "test", Machine: "site"})
	if err != nil {
		t.Fatal(err)
	}
	var facts []step.Fact
	live := func() {
		for n := range 100 {
			err = j.Record(time.Unix(int64(n), 0).UTC(), step.OwnerAway{}, nil)
			if err != nil {
				t.Error(err)
			}
			changed := []step.Fact{step.NewFact("n/1", fmt.Sprint(n%3), n), {Kind: "n/1", Key: "1"}}
			if err = s.Apply("site", changed); err != nil {
				t.Error(err)
			}
			facts = append(facts, changed...)
		}
	}
	s.counting.Lock() // a segment's number is not to be had
	done := make(chan struct{})
	go func() { defer close(done); live() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the machine waits for the next segment")
	}
	s.counting.Unlock()
	<-done
	j.turning.Wait()
	live()
	if err = j.flush(); err != nil {
		t.Fatal(err)
	}
	list := runs(t, dir)
	if len(list) != 1 || len(list[0].Files) < 2 {
		t.Fatalf("%d runs, the first of %d segments", len(list), len(list[0].Files))
	}
	if _, err = segmentsAgree(dir); err != nil {
		t.Error(err)
	}
	want := step.NewFacts()
	for _, f := range facts {
		want.Apply(f)
	}
	got, err := list[0].finalFacts()
	if err != nil || !cmp.Equal(got.All(), want.All()) {
		t.Errorf("facts at the end = %v, %v, want %v", got.All(), err, want.All())
	}
}

// A segment whose making was cut off, wherever, is none: the one before goes on being the last.
func TestASegmentThatWasNeverBegunIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := start(t, dir, Options{SegmentBytes: 2000})
	for i := range 50 {
		l.tell(t, step.ClockStepped{By: time.Duration(i)})
	}
	closed(t, l.store)
	before := runs(t, dir)[0]
	last := before.Files[len(before.Files)-1]
	header, err := readHeader(last)
	if err != nil || len(before.Files) < 3 {
		t.Fatalf("%d segments, %v", len(before.Files), err)
	}
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	begun := frameEnd(t, last, 2)
	for size := range begun {
		if err := os.WriteFile(last, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		run := runs(t, dir)[0]
		if !slices.Equal(run.Files, before.Files[:len(before.Files)-1]) {
			t.Fatalf("cut at %d of %d: segments %q", size, begun, run.Files)
		}
		result, err := Replay(run, newCounter, nil)
		if err != nil || result.Records != header.FirstRecord-1 {
			t.Fatalf("cut at %d: %+v, %v, want the %d records before", size, result, err,
				header.FirstRecord-1)
		}
	}
}

// frameEnd gives where the n-th frame of a segment ends.
func frameEnd(t *testing.T, path string, n int) int64 {
	t.Helper()
	file, frames, err := openSegment(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size := frames.left
	for range n {
		if _, _, err := frames.next(); err != nil {
			t.Fatal(err)
		}
	}
	return size - frames.left
}
