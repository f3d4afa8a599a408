package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// begun is a journal that nothing is written of by itself, and what is logged of it.
func begun(t *testing.T, options Options) (*Journal, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	options.FlushEvery = time.Hour
	s, err := OpenWith(t.TempDir(), options, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	s.db.NoSync = true // these tests pull no plug
	j, err := s.Begin(Header{Machine: "site"})
	must(t, err)
	return j, &log
}

// logged counts the lines of a level and a message about the machine.
func logged(log *strings.Builder, level, message string) int {
	return strings.Count(log.String(), "level="+level+" msg="+message+" machine=site")
}

const early = `"journal ended early"`

// A segment is full with its bytes and as many besides its facts as these have, or behind a gap;
// not while the next is made, while the disk is full, or before it is tried again.
func TestWhenASegmentIsFull(t *testing.T) {
	t.Parallel()
	store := &Store{options: Options{SegmentBytes: 100}}
	for name, c := range map[string]struct {
		change func(*Journal)
		want   bool
	}{
		"just":             {func(*Journal) {}, true},
		"a byte less":      {func(j *Journal) { j.written-- }, false},
		"many facts":       {func(j *Journal) { j.head = 51 }, false},
		"the next is made": {func(j *Journal) { j.next = &successor{} }, false},
		"full":             {func(j *Journal) { j.full = true }, false},
		"to be tried":      {func(j *Journal) { j.notBefore = 100 }, true},
		"not yet":          {func(j *Journal) { j.notBefore = 101 }, false},
		"a gap":            {func(j *Journal) { j.gap, j.written = true, 1 }, true},
		"a gap, not yet":   {func(j *Journal) { j.gap, j.notBefore = true, 101 }, false},
	} {
		j := &Journal{store: store, written: 100, head: 50}
		c.change(j)
		if got := j.isFull(); got != c.want {
			t.Errorf("%s: full %t, want %t", name, got, c.want)
		}
	}
}

// A name that is not a machine's, a second beginning, a header that is no JSON and a file in the
// way are refused with why; what was there stays.
func TestWhatIsToldOfABeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	refused := func(h Header, want string) {
		t.Helper()
		_, err := s.Begin(h)
		told(t, h.Machine, dir, err, want)
	}
	refused(Header{Machine: "A"}, `begin journal: machine "A": want letters and digits`)
	refused(Header{Machine: "a", Config: []byte("{")}, "begin journal of a: configuration: json: "+
		"error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input")
	path := filepath.Join(dir, journalDir, "0000000001-a")
	must(t, os.WriteFile(path, []byte("x"), fileMode))
	refused(Header{Machine: "a"}, "begin journal: open DIR/journal/0000000001-a: file exists")
	if text, err := os.ReadFile(path); err != nil || string(text) != "x" {
		t.Errorf("what was there holds %q, %v", text, err)
	}
	_, err := s.Begin(Header{Machine: "a"})
	must(t, err)
	refused(Header{Machine: "a"}, "begin journal of a: begun before, or closed")
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	refused(Header{Machine: "b"}, "begin journal of b: begun before, or closed")
	s.mu.Lock()
	s.closed = false
	s.mu.Unlock()
	closed(t, s)
	names, err := segmentNames(dir)
	must(t, err)
	next := names[len(names)-1].number + 1
	s = open(t, dir)
	_, err = s.Begin(Header{Machine: "a"})
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, journalDir, fmt.Sprintf("%010d-a", next))); err != nil {
		t.Errorf("after a start segments are not counted on: %v", err)
	}
	closed(t, s)
}

// The first segment of a run has all facts and the number of its first record.
func TestWhatASegmentBeginsWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	facts := []step.Fact{step.NewFact("n/1", "a", 1)}
	must(t, s.Apply("site", facts))
	_, err := s.Begin(Header{
		Build: "b", Machine: "site", Seed: 7, Config: []byte("3"),
		Incarnation: 9, Part: 9, FirstRecord: 9,
	})
	must(t, err)
	closed(t, s)
	want := Header{
		Build: "b", Machine: "site", Seed: 7, Config: []byte("3"), Incarnation: 1, FirstRecord: 1,
		Facts: step.EncodeFacts(facts),
	}
	if diff := cmp.Diff(want, runs(t, dir)[0].Header); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A journal whose disk fails, at whichever of its ways there, ends: its error names the file, and
// is logged once.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file func(t *testing.T) *os.File // instead of the journal's
		ask  func(*Journal) error
		want string
	}{
		"hand": {shut, func(j *Journal) error { j.hand(); return j.failed }, "file already closed"},
		"flush": {
			shut, (*Journal).flush, "file already closed",
		},
		"the disk does not take it": {
			noDisk, (*Journal).flush, syscall.EINVAL.Error(),
		},
		"by itself": {
			noDisk, func(j *Journal) error { j.flushLate(); return j.failed }, syscall.EINVAL.Error(),
		},
		"the next segment": {
			noDisk,
			func(j *Journal) error { return j.goOn(&successor{}, 1) }, syscall.EINVAL.Error(),
		},
	} {
		j, log := begun(t, Options{})
		must(t, j.Record(time.Unix(1, 0), step.OwnerAway{}, nil))
		must(t, j.file.Close())
		j.file = c.file(t)
		err := c.ask(j)
		if err == nil || !strings.HasPrefix(err.Error(), "write journal "+j.path+": ") ||
			!strings.HasSuffix(err.Error(), c.want+"; is the disk full?") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if len(j.buffer) != 0 || logged(log, "ERROR", early) != 1 {
			t.Errorf("%s: %d bytes are kept, logged %q", name, len(j.buffer), log)
		}
		j.noteFacts([]step.Fact{{Kind: "n/1"}})
		again := j.Record(time.Unix(1, 0), step.OwnerAway{}, nil)
		if again == nil || !errors.Is(again, err) || len(j.buffer) != 0 {
			t.Errorf("%s: then %v, %d bytes", name, again, len(j.buffer))
		}
	}
}

// shut is a file that was closed.
func shut(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	must(t, err)
	must(t, f.Close())
	return f
}

// noDisk is a file that takes what is written and brings none of it to a disk.
func noDisk(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return write
}

// A file that was closed when its segment ended is no failure of the disk.
func TestASegmentThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	j, log := begun(t, Options{})
	must(t, j.file.Close())
	j.flushLate() // nothing is to be written, only to be synced
	if j.failed != nil || log.Len() != 0 {
		t.Errorf("%v, logged %q", j.failed, log)
	}
}

// What reached the disk is not brought there again; a large buffer is not kept.
func TestWhatIsOnDiskIsKnown(t *testing.T) {
	t.Parallel()
	j, log := begun(t, Options{})
	for i, bring := range []func(){j.flushLate, func() { must(t, j.flush()) }} {
		j.append(kindFacts, make([]byte, i*(1<<20)))
		if j.timer == nil || len(j.buffer) == 0 {
			t.Error("what is buffered is not brought to disk by itself")
		}
		if bring(); j.writes != uint64(i+1) || j.synced != j.writes || j.timer != nil ||
			len(j.buffer) != 0 || (cap(j.buffer) == 0) != (i == 1) {
			t.Errorf("%d writes, %d of them on disk, room for %d bytes", j.writes, j.synced, cap(j.buffer))
		}
	}
	must(t, j.file.Close())
	must(t, j.flush())
	if info, err := os.Stat(j.path); err != nil || info.Size() != j.size || j.written != j.size {
		t.Errorf("%v, %v: %d bytes are known to be written, %d in all", info, err, j.size, j.written)
	}
	if log.Len() != 0 {
		t.Errorf("logged %q", log)
	}
}

// While the disk is full what was recorded is kept up to a bound; what got to the file of it is
// cut off. Where not even the header got there the journal ends beyond the bound.
func TestWhatIsKeptForTheDisk(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("x: %w", syscall.ENOSPC)
	gap := len(appendFrame(nil, kindGap, []byte(gapDisk)))
	for name, c := range map[string]struct {
		length, head int
		took         int
		left         int // of the buffer; -1: the journal has ended
	}{
		"little":             {heldBack, 0, 0, heldBack},
		"a part was written": {10, 0, 3, 10},
		"too much":           {heldBack + 1, 0, 0, gap},
		"too much, in part":  {heldBack + 1, 0, 3, gap},
		"the header is there": {
			heldBack + 1, 20, 0, gap,
		},
		"no header": {heldBack + 1, 21, 0, -1},
	} {
		j, log := begun(t, Options{})
		must(t, os.WriteFile(j.path, make([]byte, 20+c.took), fileMode))
		j.size, j.head, j.buffer = 20, int64(c.head), make([]byte, c.length)
		err := j.waitForRoom(c.took, full)
		if (err != nil) != (c.left < 0) || len(j.buffer) != max(c.left, 0) || !j.full ||
			j.gap != (c.left == gap) {
			t.Errorf("%s: %v, %d bytes are kept, full %t, gap %t", name, err, len(j.buffer), j.full, j.gap)
		}
		if size := fileSize(j.path); size != 20 {
			t.Errorf("%s: %d bytes are in the file", name, size)
		}
		if err == nil {
			_ = j.waitForRoom(0, full)
		}
		if n := logged(log, "ERROR", `"the journal waits for space on the disk"`); n != 1 {
			t.Errorf("%s: logged %d times: %s", name, n, log)
		}
		if c.left < 0 {
			continue
		}
		if must(t, j.write()); logged(log, "INFO", `"the journal is written again"`) != 1 || j.full {
			t.Errorf("%s: full %t, logged %s", name, j.full, log)
		}
		if size := fileSize(j.path); size != 20+int64(c.left) || size != j.size {
			t.Errorf("%s: then %d bytes are in the file, %d are known", name, size, j.size)
		}
	}
	j, _ := begun(t, Options{})
	must(t, j.file.Close())
	err := j.waitForRoom(1, full)
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("what cannot be cut off: %v", err)
	}
}

// The next segment waits for what the disk does not take, and is not begun where the one before
// cannot be ended.
func TestASegmentThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	j, log := begun(t, Options{})
	back := filled(t, j)
	must(t, j.Record(time.Unix(1, 0), step.OwnerAway{}, nil))
	if err := j.goOn(&successor{}, 1); !errors.Is(err, errHeldBack) {
		t.Errorf("with a full disk: %v", err)
	}
	back()
	must(t, j.file.Close())
	j.buffer, j.full = nil, false
	err := j.goOn(&successor{}, 1)
	if err == nil || !strings.HasPrefix(err.Error(), "close journal "+j.path+": ") ||
		j.header.Part != 0 {
		t.Errorf("a file that is closed: %v", err)
	}
	if logged(log, "ERROR", early) != 0 {
		t.Errorf("logged %q", log)
	}
}

// A segment that was made is gone on with, at its beginning; one that cannot be made ends the
// journal.
func TestASegmentThatCannotBeMade(t *testing.T) {
	t.Parallel()
	j, log := begun(t, Options{SegmentBytes: 160})
	prepare := func(next *successor, part uint32) {
		t.Helper()
		view, err := j.store.snapshot()
		must(t, err)
		header := j.header
		header.Part, header.FirstRecord = part, 0
		j.next = next
		if j.prepare(next, header, view); j.next != nil {
			t.Error("it is still being made")
		}
		j.turning.Wait()
	}
	must(t, j.Record(time.Unix(1, 0), step.OwnerAway{}, nil))
	was := j.path
	next := &successor{late: []step.Fact{{Kind: "n/1", Value: []byte("1")}}}
	prepare(next, 1)
	if j.path != next.path || j.path == was || j.failed != nil || j.notBefore != 0 || j.gap ||
		j.header.Part != 1 || j.header.FirstRecord != 2 || j.head != j.written ||
		j.head != fileSize(j.path) || j.store.open["site"] != j.path {
		t.Errorf("%+v", j)
	}
	list := runs(t, j.store.dir)
	h, err := readHeader(list[0].Files[len(list[0].Files)-1])
	want := Header{
		Machine: "site", Incarnation: 1, Part: 1, FirstRecord: 2, Config: []byte("null"),
		Facts: step.EncodeFacts(next.late),
	}
	if diff := cmp.Diff(want, h); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	blocked(t, filepath.Join(j.store.dir, journalDir, fmt.Sprintf("%010d-site", j.store.segment+1)))
	prepare(&successor{}, 2)
	if !errors.Is(j.failed, os.ErrExist) || logged(log, "ERROR", early) != 1 {
		t.Errorf("with something in its place: %v, logged %q", j.failed, log)
	}
	before := len(list[0].Files)
	prepare(&successor{}, 2) // it goes on no more
	if after := runs(t, j.store.dir)[0].Files; len(after) != before ||
		logged(log, "ERROR", early) != 1 {
		t.Errorf("%d segments became %q, logged %q", before, after, log)
	}
	(&successor{}).discard()
}

// A machine whose facts cannot be read for the next segment ends its journal.
func TestASegmentWithoutFacts(t *testing.T) {
	t.Parallel()
	j, log := begun(t, Options{SegmentBytes: 1})
	must(t, j.store.changed(func(tx *bolt.Tx) error {
		b, err := tx.Bucket(factsBucket).CreateBucket([]byte("site"))
		return errors.Join(err, b.Put([]byte("row"), []byte("1")))
	}))
	turns := func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.next != nil || j.failed != nil
	}
	for !turns() {
		_ = j.Record(time.Unix(1, 0), step.OwnerAway{}, nil)
	}
	j.turning.Wait()
	told(t, "no facts", j.store.dir, j.failed,
		`load facts of site from DIR: state is damaged: row "row" has no kind`)
	if logged(log, "ERROR", early) != 1 {
		t.Errorf("logged %q", log)
	}
	other, log := begun(t, Options{SegmentBytes: 1})
	must(t, other.store.db.Close())
	var err error
	for range 100 {
		if err = other.Record(time.Unix(1, 0), step.OwnerAway{}, nil); err != nil {
			break
		}
	}
	told(t, "closed", other.store.dir, err, "continue journal of site: database not open")
	if logged(log, "ERROR", early) != 1 || other.next != nil {
		t.Errorf("logged %q", log)
	}
}

// An input that cannot be encoded is refused, and why stands in its gap; what comes behind it has
// the next number.
func TestWhatIsToldOfARecord(t *testing.T) {
	t.Parallel()
	j, _ := begun(t, Options{})
	err := j.Record(time.Unix(1, 0), unknownInput{}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "journal: ") || j.records != 0 {
		t.Errorf("%v, %d records", err, j.records)
	}
	why := strings.TrimPrefix(err.Error(), "journal: ")
	if want := appendFrame(nil, kindGap, []byte(why)); !bytes.Equal(j.buffer, want) {
		t.Errorf("buffered is %q, want %q", j.buffer, want)
	}
	j.buffer = nil
	at := time.Unix(7, 8)
	must(t, j.Record(at, step.OwnerAway{}, []step.Effect{step.SetTimer{}}))
	must(t, j.store.Close())
	if err := j.Record(at, step.OwnerAway{}, nil); err == nil ||
		err.Error() != "journal "+j.path+": file already closed" {
		t.Errorf("after the end: %v", err)
	}
	var got []Entry
	for e, err := range runs(t, j.store.dir)[0].Entries() {
		must(t, err)
		got = append(got, e)
	}
	want := []Entry{{
		Number: 1, Time: at.UTC(), Input: step.OwnerAway{},
		Hash: step.HashEffects(0, []step.Effect{step.SetTimer{}}),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unknownInput is none that a journal can hold.
type unknownInput struct{ step.OwnerAway }

// Where old segments cannot be listed that is logged.
func TestOldSegmentsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := &Store{
		dir: filepath.Join(t.TempDir(), "none"), log: slog.New(slog.NewTextHandler(&log, nil)),
		options: Options{JournalBytes: math.MaxInt64},
	}
	s.deleteOldSegments()
	if n := strings.Count(log.String(),
		`level=ERROR msg="old journals cannot be deleted" error="list journal: open `); n != 1 {
		t.Errorf("logged %q", log.String())
	}
}
