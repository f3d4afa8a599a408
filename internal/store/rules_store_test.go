package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What is left at 0 or below has its default, and the rest stays.
func TestDefaultsOfOptions(t *testing.T) {
	t.Parallel()
	usual := Options{
		JournalBytes: 256 << 20, SegmentBytes: 16 << 20, FlushEvery: 100 * time.Millisecond,
		RedoBytes: 1 << 20,
	}
	given := Options{JournalBytes: 1, SegmentBytes: 1, FlushEvery: 1, RedoBytes: 1, Machine: "m"}
	for _, c := range []struct{ in, want Options }{
		{Options{}, usual},
		{Options{JournalBytes: -1, SegmentBytes: -1, FlushEvery: -1, RedoBytes: -1}, usual},
		{given, given},
	} {
		if diff := cmp.Diff(c.want, c.in.withDefaults()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.in, diff)
		}
	}
}

// Machines have names that are letters and digits, and nothing beside them.
func TestNamesOfMachines(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "z", "0", "9", "site", "a1z0"} {
		if !plainName(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, wrong := range []string{"", "`", "{", "/", ":", "A", "a-b", "a ", "ä"} {
		if plainName(wrong) {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// Of several facts of one row the last counts, in the place of the first.
func TestLatestFacts(t *testing.T) {
	t.Parallel()
	fact := func(kind, key, value string) step.Fact {
		return step.Fact{Kind: kind, Key: key, Value: []byte(value)}
	}
	got := latest([]step.Fact{
		fact("a", "x", "1"), fact("a", "y", "2"), fact("b", "x", "3"), fact("a", "x", "4"),
		{Kind: "a", Key: "y"},
	})
	want := []step.Fact{fact("a", "x", "4"), {Kind: "a", Key: "y"}, fact("b", "x", "3")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// madeSegments are files of so many bytes that are segments of machines.
func madeSegments(t *testing.T, dir string, names ...string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, journalDir), dirMode))
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(dir, journalDir, name), make([]byte, 10), fileMode))
	}
}

// The oldest segments go until the rest is within the limit; the newest of each machine and those
// that are written stay in any case.
func TestWhichSegmentsGo(t *testing.T) {
	t.Parallel()
	all := []string{"0000000001-a", "0000000002-b", "0000000003-a", "0000000004-a", "0000000005-a"}
	for limit, want := range map[int64][]string{
		50: all, 49: all[1:], 40: all[1:], 39: {all[1], all[3], all[4]}, 30: {all[1], all[3], all[4]},
		29: {all[1], all[3], all[4]}, 0: {all[1], all[3], all[4]},
	} {
		dir := t.TempDir()
		madeSegments(t, dir, all...)
		s := &Store{
			dir: dir, options: Options{JournalBytes: limit}, log: quiet(),
			open: map[string]string{"a": filepath.Join(dir, journalDir, all[3])},
		}
		s.deleteOldSegments()
		names, err := segmentNames(dir)
		must(t, err)
		var got []string
		for _, n := range names {
			got = append(got, filepath.Base(n.path))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("within %d bytes (-want +got):\n%s", limit, diff)
		}
	}
}

// What a directory says that another machine runs its site is read again, damaged or not; a higher
// start than one's own counts, a lower one does not.
func TestWhatSupersedes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if n, is, err := Superseded(dir); is || err != nil || n != (Newer{}) {
		t.Errorf("a new directory: %+v, %t, %v", n, is, err)
	}
	s := &Store{dir: dir}
	want := Newer{Incarnation: 7, Since: epoch()}
	must(t, s.Supersede(want))
	if n, is, err := Superseded(dir); !is || err != nil || n != want {
		t.Errorf("%+v, %t, %v, want %+v", n, is, err, want)
	}
	path := filepath.Join(dir, supersededFile)
	must(t, os.WriteFile(path, []byte(`{"incarnation": 7, "since": 3}`), 0o600))
	if n, is, err := Superseded(dir); !is || err != nil || n != (Newer{}) {
		t.Errorf("damaged: %+v, %t, %v", n, is, err)
	}
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, dirMode))
	if _, is, err := Superseded(dir); is || err == nil {
		t.Errorf("what cannot be read: %t, %v", is, err)
	}
	if _, err := Open(dir, quiet()); err == nil {
		t.Error("an agent starts although it cannot be read whether it may")
	}
	nowhere := &Store{dir: filepath.Join(dir, "none")}
	if err := nowhere.Supersede(want); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("noted in no directory: %v", err)
	}
	zone := time.FixedZone("east", 3600)
	text := Newer{Since: epoch().In(zone)}.Explain("/state")
	if !errors.Is(text, ErrSuperseded) ||
		!strings.Contains(text.Error(), "since 2024-01-01T00:00:00Z;") ||
		!strings.Contains(text.Error(), "remove /state,") {
		t.Errorf("it is explained by %q", text)
	}
}

// Adopting a state ends that another machine runs its site: the next start is above both.
func TestAdoptingWhatWasSuperseded(t *testing.T) {
	t.Parallel()
	for newer, want := range map[uint64]uint64{0: 2, 1: 2, 40: 41} {
		dir := t.TempDir()
		s := at(t, dir, Options{Machine: "one"})
		must(t, s.Supersede(Newer{Incarnation: newer}))
		must(t, s.Close())
		must(t, Adopt(dir, "two"))
		if _, is, err := Superseded(dir); is || err != nil {
			t.Errorf("an adopted state is still superseded: %t, %v", is, err)
		}
		if s = at(t, dir, Options{Machine: "two"}); s.Incarnation() != want || !s.Restored() {
			t.Errorf("after %d: start %d, restored %t, want %d", newer, s.Incarnation(), s.Restored(), want)
		}
	}
}

// What a repair could do tells what was there, and what it does not know.
func TestWhatARepairTells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		build   string
		inexact map[string]string
		lose    func(path string) error
		aside   bool
	}{
		{"b1", map[string]string{}, os.Remove, false},
		{
			"b2",
			map[string]string{"site": "build b1 wrote the journal, this is b2"},
			func(path string) error { return os.Truncate(path, 100) }, true,
		},
	} {
		dir := lived(t)
		path := filepath.Join(dir, factsFile)
		must(t, c.lose(path))
		want := Rebuilt{Incarnation: 1, Facts: map[string]int{"site": 1}, Inexact: c.inexact}
		if c.aside {
			want.Aside = path + ".damaged"
		}
		got, err := RebuildFacts(dir, c.build, newTally)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	dir := lived(t)
	must(t, os.Remove(filepath.Join(dir, factsFile)))
	wrong := errors.New("no such machine")
	got, err := RebuildFacts(dir, "b1", func(Header) (step.Machine, error) { return nil, wrong })
	if err != nil || got.Inexact["site"] != "replay site: make the machine: no such machine" {
		t.Errorf("without its machine: %+v, %v", got, err)
	}
}

// What is in order, or in use, is not replaced; nor is anything left of the try.
func TestWhatIsInOrderStays(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	got, err := StartAsNew(dir, time.Unix(5000, 0))
	if !errors.Is(err, errInOrder) || got.Aside != "" {
		t.Errorf("in order: %+v, %v", got, err)
	}
	s := open(t, dir)
	if _, err := StartAsNew(dir, time.Unix(5000, 0)); !errors.Is(err, ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	closed(t, s)
	if found, err := StartAsNew(t.TempDir(), time.Unix(-5, 0)); err != nil || found.Incarnation != 0 {
		t.Errorf("by a clock before 1970: %+v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(dir, factsFile+".new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// A run tells between which times its agent surely lived.
func TestTimesOfARun(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	first, last, err := runs(t, dir)[0].Times()
	if err != nil || !first.Equal(time.Unix(0, 0)) || !last.Equal(time.Unix(2, 0)) {
		t.Errorf("from %s to %s, %v", first, last, err)
	}
	s := open(t, dir)
	if _, err = s.Begin(Header{Build: "b1", Machine: "idle"}); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	for _, run := range runs(t, dir) {
		if run.Machine != "idle" {
			continue
		}
		if first, last, err = run.Times(); err != nil || !first.IsZero() || !last.IsZero() {
			t.Errorf("of one that did nothing: from %s to %s, %v", first, last, err)
		}
		must(t, os.Remove(run.Files[0]))
		if _, _, err = run.Times(); !errors.Is(err, os.ErrNotExist) ||
			!strings.Contains(err.Error(), "read journal of idle, start 2") {
			t.Errorf("of one that is gone: %v", err)
		}
	}
}

// A journal whose file cannot be written ends, once and aloud; it takes nothing more.
func TestAJournalThatEndsEarly(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s, err := OpenWith(t.TempDir(), Options{FlushEvery: time.Hour}, logger)
	must(t, err)
	defer func() { _ = s.Close() }()
	j, err := s.Begin(Header{Machine: "site"})
	must(t, err)
	must(t, j.Record(time.Unix(1, 0), step.OwnerAway{}, nil))
	must(t, j.file.Close())
	if err = j.flush(); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), j.path) {
		t.Errorf("a file that is closed was written: %v", err)
	}
	for range 2 {
		again := j.Record(time.Unix(2, 0), step.OwnerAway{}, nil)
		if again == nil || again.Error() != err.Error() {
			t.Errorf("then %v, want %v again", again, err)
		}
	}
	if n := strings.Count(log.String(), `msg="journal ended early" machine=site`); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log.String())
	}
}

// A file without a format is taken; one of another format is refused with both.
func TestFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	for format, want := range map[string]string{
		"": "", formatAlone: "", formatWithRedo: "",
		"3": `it is "3", this program reads 1, 2`,
	} {
		err := s.changed(func(tx *bolt.Tx) error {
			meta := tx.Bucket(metaBucket)
			if err := meta.Put(formatKey, []byte(format)); err != nil {
				return err
			}
			return checkFormat(meta, formatAlone, formatWithRedo)
		})
		if got := fmt.Sprint(err); !strings.Contains(got, want) || (err == nil) != (want == "") ||
			err != nil && !errors.Is(err, errFormat) {
			t.Errorf("format %q: %v", format, err)
		}
	}
}

// The last number of starts is kept as eight bytes; what is no number is none.
func TestNumbersOfStarts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		string(binary.BigEndian.AppendUint64(nil, 41)): 42, "": 1, "seven b": 1, "nine byte": 1,
	} {
		dir := t.TempDir()
		s := open(t, dir)
		must(t, s.changed(func(tx *bolt.Tx) error {
			return tx.Bucket(metaBucket).Put(incarnationKey, []byte(text))
		}))
		closed(t, s)
		if s = open(t, dir); s.Incarnation() != want {
			t.Errorf("after %q: start %d, want %d", text, s.Incarnation(), want)
		}
		closed(t, s)
		if err := s.Close(); err != nil { // a second time is nothing
			t.Error(err)
		}
	}
}

// A journal that begins lets the oldest segments go, but for the newest of each machine.
func TestOldSegmentsGoWhenAJournalBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := OpenWith(dir, Options{JournalBytes: 1}, quiet())
	must(t, err)
	defer closed(t, s)
	madeSegments(t, dir, "0000000001-old", "0000000002-old")
	_, err = s.Begin(Header{Machine: "site"})
	must(t, err)
	names, err := segmentNames(dir)
	must(t, err)
	var got []string
	for _, n := range names {
		got = append(got, filepath.Base(n.path))
	}
	if diff := cmp.Diff([]string{"0000000001-site", "0000000002-old"}, got); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
}
