package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// counter is a machine that sums up what it is told, persists the sum, and
// draws a number for each step.
type counter struct {
	sum   int64
	seed  uint64
	boots uint64
	draw  func() uint64
	bias  int64 // makes it another machine
}

func newCounter(h Header) (step.Machine, error) {
	c := &counter{seed: h.Seed}
	if len(h.Config) > 0 {
		if err := json.Unmarshal(h.Config, &c.bias); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *counter) Step(now time.Time, in step.Input) []step.Effect {
	switch in := in.(type) {
	case step.Boot:
		c.boots = in.Incarnation
		c.draw = step.NewRand(c.seed, "counter", in.Incarnation).Uint64
	case step.ClockStepped:
		c.sum += int64(in.By) + c.bias
	}
	return []step.Effect{
		step.Persist{Fact: step.NewFact("sum/1", "", c.sum)},
		step.SetTimer{Key: step.TimerKey{ID: fmt.Sprint(c.draw())}, At: now.Add(time.Second)},
	}
}

func (c *counter) Snapshot() []byte {
	return step.EncodeFacts([]step.Fact{step.NewFact("sum/1", "", c.sum)})
}
func (c *counter) Check() error { return nil }
func (c *counter) Restore(facts []byte) error {
	rows, err := step.DecodeFacts(facts)
	for _, f := range rows {
		c.sum, err = strconv.ParseInt(string(f.Value), 10, 64)
	}
	return err
}

// live drives a counter as an agent does.
type live struct {
	store   *Store
	journal *Journal
	machine step.Machine
	now     time.Time
}

func start(t *testing.T, dir string, options Options) *live {
	t.Helper()
	s, err := OpenWith(dir, options, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	s.db.NoSync = true // these tests pull no plug
	j, err := s.Begin(
		Header{Build: "test", Machine: "counter", Seed: 42, Config: json.RawMessage(`0`)},
	)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newCounter(Header{Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := s.Load("counter")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(step.EncodeFacts(facts)); err != nil {
		t.Fatal(err)
	}
	l := &live{store: s, journal: j, machine: m, now: time.Unix(1_900_000_000, 0).UTC()}
	l.tell(t, step.Boot{Incarnation: s.Incarnation()})
	return l
}

func (l *live) tell(t *testing.T, in step.Input) {
	t.Helper()
	l.now = l.now.Add(time.Millisecond)
	effects := l.machine.Step(l.now, in)
	if err := l.journal.Record(l.now, in, effects); err != nil {
		t.Fatal(err)
	}
	l.journal.turning.Wait() // so that a test knows how many segments there are
	for _, e := range effects {
		if p, ok := e.(step.Persist); ok {
			if err := l.store.Apply("counter", []step.Fact{p.Fact}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func runs(t *testing.T, dir string) []Run {
	t.Helper()
	list, err := Runs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestReplayGivesTheSameEffectsOverSegmentsAndStarts(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		l := start(t, dir, Options{SegmentBytes: 2000})
		for i := range 50 {
			l.tell(t, step.ClockStepped{By: time.Duration(i)})
		}
		closed(t, l.store)
	}
	list := runs(t, dir)
	if len(list) != 2 || len(list[0].Files) < 3 {
		t.Fatalf("%d runs, the first of %d segments", len(list), len(list[0].Files))
	}
	for _, run := range list {
		first, last, err := run.Times()
		if want := 50 * time.Millisecond; err != nil || last.Sub(first) != want {
			t.Errorf("start %d: from %s to %s, %v, want %s", run.Incarnation, first, last, err, want)
		}
		visited := 0
		result, err := Replay(run, newCounter, func(Entry, []step.Effect) { visited++ })
		if err != nil || result.Divergence != nil || result.Records != 51 || visited != 51 {
			t.Errorf("start %d: %+v, %d visited, %v", run.Incarnation, result, visited, err)
		}
	}
	want := []step.Fact{step.NewFact("sum/1", "", 2*49*50/2)}
	if got, err := list[1].finalFacts(); err != nil || !cmp.Equal(got.All(), want) {
		t.Errorf("facts at the end = %v, %v, want %v", got.All(), err, want)
	}
}

func TestReplayFindsTheFirstDivergence(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{})
	for range 5 {
		l.tell(t, step.Resume{})
	}
	at := l.now.Add(time.Millisecond)
	l.tell(t, step.ClockStepped{By: 1})
	l.tell(t, step.Resume{})
	closed(t, l.store)
	other := func(h Header) (step.Machine, error) {
		h.Config = json.RawMessage(`7`)
		return newCounter(h)
	}
	result, err := Replay(runs(t, dir)[0], other, nil)
	if err != nil || result.Divergence == nil {
		t.Fatalf("%+v, %v, want a divergence", result, err)
	}
	d := result.Divergence
	if d.Number != 7 || !d.Time.Equal(at) || d.Input != (step.ClockStepped{By: 1}) ||
		d.Recorded == d.Derived {
		t.Errorf("divergence %+v", d)
	}
	if d.String() == "" {
		t.Error("a divergence without words")
	}
}

func TestAJournalMayBeTornAnywhere(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{})
	for i := range 4 {
		l.tell(t, step.ClockStepped{By: time.Duration(i)})
	}
	closed(t, l.store)
	path := runs(t, dir)[0].Files[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	most := uint64(0)
	for size := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs(t, dir) { // none as long as the header is torn
			result, err := Replay(run, newCounter, nil)
			if err != nil || result.Divergence != nil || result.Records < most {
				t.Fatalf("torn at %d of %d: %+v, %v", size, len(whole), result, err)
			}
			most = result.Records
		}
	}
	if most != 5 {
		t.Errorf("%d records in the whole journal, want 5", most)
	}
}

func TestDamageBeforeTheEndIsReported(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{SegmentBytes: 500})
	for range 20 {
		l.tell(t, step.ClockStepped{By: 1})
	}
	closed(t, l.store)
	run := runs(t, dir)[0]
	raw, err := os.ReadFile(run.Files[1])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-3] ^= 1
	if err := os.WriteFile(run.Files[1], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(run, newCounter, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Replay = %v, want %v", err, ErrCorrupt)
	}
	if err := os.Remove(run.Files[1]); err != nil {
		t.Fatal(err)
	}
	list := runs(t, dir)
	if len(list) != 2 || list[1].Part != 2 {
		t.Fatalf("without its second segment a run is %+v", list)
	}
	if _, err := Replay(list[1], newCounter, nil); !errors.Is(err, errTruncated) {
		t.Errorf("Replay of the rest = %v, want %v", err, errTruncated)
	}
}

func TestOldSegmentsMakeRoom(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{SegmentBytes: 1000, JournalBytes: 5000})
	for i := range 200 {
		l.tell(t, step.ClockStepped{By: time.Duration(i)})
	}
	closed(t, l.store)
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, n := range names {
		sum += n.bytes
	}
	if sum > 7000 || len(names) < 3 { // the limit, and the segment being written
		t.Errorf("%d segments with %d bytes are left", len(names), sum)
	}
	want := []step.Fact{step.NewFact("sum/1", "", 199*200/2)}
	if got, err := runs(t, dir)[0].finalFacts(); err != nil || !cmp.Equal(got.All(), want) {
		t.Errorf("facts at the end = %v, %v, want %v", got.All(), err, want)
	}
}

// TestManyFactsDoNotMakeASegmentOfEachRecord: each segment begins with all facts,
// and these alone may be larger than a segment is meant to be.
func TestManyFactsDoNotMakeASegmentOfEachRecord(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenWith(dir, Options{SegmentBytes: 4000}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var facts []step.Fact
	for i := range 500 {
		facts = append(facts, step.NewFact("sum/1", strconv.Itoa(i), strings.Repeat("x", 100)))
	}
	if err = s.Apply("counter", facts); err != nil {
		t.Fatal(err)
	}
	j, err := s.Begin(Header{Machine: "counter"})
	if err != nil {
		t.Fatal(err)
	}
	const records = 1000
	for i := range records {
		err = j.Record(time.Unix(int64(i), 0).UTC(), step.ClockStepped{By: time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		j.turning.Wait()
	}
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 10 || len(names) < 2 {
		t.Errorf("%d records are in %d segments", records, len(names))
	}
}

func TestAnInputThatCannotBeWrittenLeavesAGap(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{})
	if err := l.journal.Record(l.now, step.MessageReceived{Message: protocol.Cancel{}},
		nil); err == nil {
		t.Error("an invalid message was written")
	}
	l.tell(t, step.Resume{})
	closed(t, l.store)
	if result, err := Replay(runs(t, dir)[0], newCounter, nil); !errors.Is(err, errGap) ||
		result.Records != 1 {
		t.Errorf("Replay = %+v, %v, want %v", result, err, errGap)
	}
}

func TestRecordsReachTheDiskByThemselves(t *testing.T) {
	dir := t.TempDir()
	l := start(t, dir, Options{FlushEvery: time.Millisecond})
	if err := l.journal.Record(l.now, step.Resume{}, nil); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		records := 0
		for e, err := range runs(t, dir)[0].Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Input != nil {
				records++
			}
		}
		if records == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d records on disk, want 2", records)
		}
	}
}

func TestAFailingJournalHoldsNoFactsUp(t *testing.T) {
	l := start(t, t.TempDir(), Options{})
	if err := l.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.journal.Record(l.now, step.Resume{}, nil); err != nil {
		t.Errorf("Record into the buffer: %v", err)
	}
	if err := l.store.Apply("counter", []step.Fact{step.NewFact("sum/1", "", 5)}); err != nil {
		t.Errorf("Apply beside a failed journal: %v", err)
	}
	if err := l.journal.Record(l.now, step.Resume{}, nil); err == nil {
		t.Error("a failed journal takes records")
	}
	l.store.mu.Lock()
	delete(l.store.journals, "counter") // its file is closed already
	l.store.mu.Unlock()
}

func TestBeginRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", "../x", "a-b", "A"} {
		if _, err := s.Begin(Header{Machine: name}); err == nil {
			t.Errorf("Begin(%q) gives no error", name)
		}
	}
	if _, err := s.Begin(Header{Machine: "site"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Begin(Header{Machine: "site"}); err == nil {
		t.Error("a journal was begun twice")
	}
	if _, err := s.Begin(Header{Machine: "broker", Config: json.RawMessage("{")}); err == nil {
		t.Error("a configuration that is no JSON was taken")
	}
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte(`{"Machine":"counter"}`), byte(kindRecord),
		append(make([]byte, 16), `{"type":"Resume","body":{}}`...), []byte("x"))
	f.Add([]byte(`{"Facts":[]}`), byte(kindFacts), []byte(`[{"kind":"a","key":"b","value":1}]`),
		[]byte{1, 0, 0, 0})
	f.Add([]byte(`{"Part":3}`), byte(kindGap), []byte("why"), []byte{})
	f.Fuzz(func(t *testing.T, header []byte, kind byte, body, tail []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, journalDir), 0o700); err != nil {
			t.Fatal(err)
		}
		raw := append(appendFrame(appendFrame(nil, kindHeader, header), kind, body), tail...)
		if err := os.WriteFile(filepath.Join(dir, journalDir, "0000000001-x"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := Runs(dir)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("Runs: %v", err)
		}
		for _, run := range list {
			for _, err := range run.Entries() {
				if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, errGap) &&
					!errors.Is(err, step.ErrBadInput) {
					t.Errorf("Entries: %v", err)
				}
			}
			for _, err := range run.FactChanges() {
				if err != nil && !errors.Is(err, ErrCorrupt) {
					t.Errorf("FactChanges: %v", err)
				}
			}
		}
	})
}
