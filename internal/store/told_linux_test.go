package store

import (
	"bytes"
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

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// told wants an error to say just this, where DIR is the directory and REMEDY the remedy.
func told(t *testing.T, name, dir string, err error, want string) {
	t.Helper()
	text := "none"
	if err != nil {
		text = strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir, "DIR"), remedy, "REMEDY")
	}
	if text != want {
		t.Errorf("%s: the error is\n%s\nwant\n%s", name, text, want)
	}
}

// blocked puts a directory that is not empty where a file is to be.
func blocked(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(path, "below"), dirMode))
}

// written puts a text in a file of a state directory.
func written(t *testing.T, path string, text []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), dirMode))
	must(t, os.WriteFile(path, text, fileMode))
}

// A directory that cannot be used is refused with what is wrong, and let go: when that is mended
// the next start finds it free.
func TestWhatIsToldOfADirectory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"no directory": {
			func(t *testing.T, dir string) { written(t, dir, nil) },
			"open state: mkdir DIR: not a directory",
		},
		"what was left": {
			func(t *testing.T, dir string) { blocked(t, filepath.Join(dir, factsFile+".new")) },
			"remove what is left of an earlier start: remove DIR/facts.db.new: directory not empty",
		},
		"no place": {
			func(t *testing.T, dir string) { blocked(t, filepath.Join(dir, placeFile)) },
			"open state DIR/facts.db: note the place of the state: open DIR/place: is a directory",
		},
		"superseded": {
			func(t *testing.T, dir string) { blocked(t, filepath.Join(dir, supersededFile)) },
			"read why the site does not start: read DIR/superseded: is a directory",
		},
		"a journal alone": {
			func(t *testing.T, dir string) { written(t, filepath.Join(dir, journalDir, "2-a"), nil) },
			"the facts of an earlier life are gone: DIR/facts.db is missing, but there is " +
				"DIR/journal/2-a; REMEDY",
		},
		"empty beside a sign": {
			func(t *testing.T, dir string) {
				written(t, filepath.Join(dir, factsFile), nil)
				written(t, filepath.Join(dir, "sign"), []byte("x"))
			},
			"the facts of an earlier life are gone: DIR/facts.db is empty, but there is DIR/sign; REMEDY",
		},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		c.spoil(t, dir)
		options := Options{Signs: []string{"none", "sign"}}
		s, err := OpenWith(dir, options, quiet())
		told(t, name, dir, err, c.want)
		if err == nil {
			closed(t, s)
			continue
		}
		must(t, os.Rename(dir, dir+".spoiled"))
		for range 2 { // a second start does not find it held
			s, err = OpenWith(dir, options, quiet())
			must(t, err)
			closed(t, s)
		}
		_, err = OpenWith(dir+".spoiled", options, quiet())
		told(t, name+", again", dir+".spoiled", err, c.want)
	}
}

// Whatever is asked of a store whose file is closed or takes no such row says what it was about.
func TestWhatIsToldOfFacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	fact := step.NewFact("job/1", "a", 1)
	must(t, s.Apply("site", []step.Fact{fact}))
	must(t, s.changed(func(tx *bolt.Tx) error {
		_, err := tx.Bucket(factsBucket).Bucket([]byte("site")).CreateBucket([]byte("job/1\x00b"))
		return err
	}))
	told(t, "a machine without a name", dir, s.Apply("", []step.Fact{fact}),
		`write facts: machine "": want letters and digits`)
	const odd = "write to DIR/facts.db: fact job/1 b: incompatible value; is the disk full?"
	for _, row := range []step.Fact{{Kind: "job/1", Key: "b"}, step.NewFact("job/1", "b", 1)} {
		must(t, s.Apply("site", []step.Fact{row}))
		_, err := s.Load("site")
		told(t, "a row that is none", dir, err, "load facts of site from DIR: "+odd)
		s.redo.pending = nil
	}
	must(t, s.changed(func(tx *bolt.Tx) error {
		return tx.Bucket(factsBucket).Bucket([]byte("site")).Put([]byte("row"), []byte("1"))
	}))
	const noKind = `state is damaged: row "row" has no kind`
	_, err := s.Load("site")
	told(t, "load", dir, err, "load facts of site from DIR: "+noKind)
	_, err = s.Begin(Header{Machine: "site"})
	told(t, "begin", dir, err, "load facts of site from DIR: "+noKind)
	closed(t, s)
	_, err = ReadFacts(dir)
	told(t, "read", dir, err, "read facts: "+noKind)

	const notOpen = "database not open"
	_, err = s.Load("site")
	told(t, "load of a closed one", dir, err, "load facts of site from DIR: "+notOpen)
	told(t, "apply to a closed one", dir, s.Apply("site", []step.Fact{fact}),
		"write facts: write DIR/facts.log: file already closed; is the disk full?")
	told(t, "nothing for a closed one", dir, s.Apply("site", nil), "none")
	_, err = s.Begin(Header{Machine: "site"})
	told(t, "begin with a closed one", dir, err, "begin journal of site: "+notOpen)
	told(t, "trust what was not restored", dir, s.Trust(), "none")
	s.restored = true
	told(t, "trust a closed one", dir, s.Trust(),
		"note that the restored state was taken up: "+notOpen)
	nowhere := filepath.Join(dir, "none")
	_, err = ReadFacts(nowhere)
	told(t, "no directory", nowhere, err, "read facts: DIR is no state directory of an agent: "+
		"open DIR/facts.db: no such file or directory")
	told(t, "adopt nothing", nowhere, Adopt(nowhere, "m"), "adopt state: DIR is no state directory "+
		"of an agent: stat DIR/facts.db: no such file or directory")
}

// While an agent runs its facts are read from its journal, and what is wrong with that is told.
func TestWhatIsToldOfFactsInUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		segment []byte
		want    string
	}{
		"no header": {
			appendFrame(nil, kindGap),
			"read journal DIR/journal/9-a: state is damaged: it does not begin with a header",
		},
		"no facts": {
			appendFrame(appendFrame(nil, kindHeader, []byte(`{"Machine":"a"}`)), kindGap, []byte(gapDisk)),
			"an input is missing in the journal: the disk was full",
		},
	} {
		dir := t.TempDir()
		s := open(t, dir)
		written(t, filepath.Join(dir, journalDir, "9-a"), c.segment)
		_, err := ReadFacts(dir)
		told(t, name, dir, err, c.want)
		closed(t, s)
	}
}

// What hinders an adoption is told, and the directory is free again.
func TestWhatIsToldOfAnAdoption(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed(t, open(t, dir))
	blocked(t, filepath.Join(dir, supersededFile))
	for range 2 {
		told(t, "superseded", dir, Adopt(dir, "m"),
			"read why the site does not start: read DIR/superseded: is a directory")
	}
	must(t, os.Rename(filepath.Join(dir, supersededFile), filepath.Join(dir, "aside")))
	must(t, Adopt(dir, "m"))
	_, err := OpenWith(dir, Options{Machine: "n"}, quiet())
	told(t, "elsewhere", dir, err, "open state DIR/facts.db: the state belongs to another machine: "+
		"DIR was last used on a machine with another identity; if it was moved here, and no agent "+
		"works with it anywhere else, run siteagent adopt; if it was copied, remove the copy and let "+
		"this machine join as a site of its own")
}

// What hinders a repair is told; the old file stays in its place.
func TestWhatIsToldOfARepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"no journal": {
			func(t *testing.T, dir string) { written(t, filepath.Join(dir, journalDir), nil) },
			"start as new: list journal: open DIR/journal: not a directory",
		},
		"facts in the way": {
			func(t *testing.T, dir string) { blocked(t, filepath.Join(dir, factsFile+".new")) },
			"write facts: remove DIR/facts.db.new: directory not empty",
		},
		"damaged ones in the way": {
			func(t *testing.T, dir string) {
				written(t, filepath.Join(dir, factsFile), nil)
				blocked(t, filepath.Join(dir, factsFile+".damaged"))
			},
			"write facts: rename DIR/facts.db DIR/facts.db.damaged: file exists",
		},
	} {
		dir := t.TempDir()
		c.spoil(t, dir)
		found, err := StartAsNew(dir, time.Unix(1, 0))
		told(t, name, dir, err, c.want)
		if found.Aside != "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "none")
	_, err := StartAsNew(nowhere, time.Unix(1, 0))
	told(t, "nowhere", nowhere, err, "write facts: open DIR/facts.db.new: no such file or directory")
	_, err = RebuildFacts(dir, "b", newTally)
	told(t, "no journal", dir, err, "rebuild facts: list journal: open DIR/journal: "+
		"no such file or directory")
	must(t, os.Mkdir(filepath.Join(dir, journalDir), dirMode))
	_, err = RebuildFacts(dir, "b", newTally)
	told(t, "an empty journal", dir, err, "rebuild facts: DIR holds no journal; REMEDY")
	for range 2 { // it is let go
		_, err = writeNew(dir, 1, []change{{}})
		told(t, "a machine without a name", dir, err, "write facts: bucket name required")
	}
}

// Facts that can be opened and not be read through are out of order, and are replaced.
func TestFactsThatCannotBeReadThrough(t *testing.T) {
	t.Parallel()
	path := halfFree(t)
	damageTable(t, path)
	for range 2 { // it is let go
		if err := notInOrder(path); err != nil {
			t.Error(err)
		}
	}
	err := fmt.Errorf("looked at: %w", notInOrder(filepath.Join(path, "below")))
	told(t, "no place for a file", path, err,
		"looked at: look at facts: stat DIR/below: not a directory")
	if _, err := Open(filepath.Dir(path), quiet()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("opened: %v, want %v", err, ErrCorrupt)
	}
}

// A machine that answers otherwise than in its first life is not believed, nor is one that cannot
// take the facts up: the journal's own are.
func TestWhoseFactsAreBelieved(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	run := runs(t, dir)[0]
	for name, c := range map[string]struct {
		machine step.Machine
		change  func(*Run)
		want    string
	}{
		"another": {
			&counter{draw: func() uint64 { return 1 }}, nil,
			"record 1 at 1970-01-01T00:00:00Z: step.OwnerAway gave effects with hash ",
		},
		"one that refuses": {stubborn{}, nil, "replay site: restore facts: no facts"},
		"no facts": {
			&tally{}, func(r *Run) { r.Facts = []byte("x") }, "decode facts: ",
		},
	} {
		own := run
		if c.change != nil {
			c.change(&own)
		}
		table, inexact, err := own.wantedFacts("b1", func(Header) (step.Machine, error) {
			return c.machine, nil
		})
		if inexact == nil || !strings.Contains(inexact.Error(), c.want) || err != nil ||
			string(table.All()[0].Value) != "2" {
			t.Errorf("%s: %v, %v, want %q", name, inexact, err, c.want)
		}
	}
	run.Part, run.Incarnation = 1, 7
	_, err := Replay(run, newTally, nil)
	told(t, "a later part", dir, err,
		"replay site of start 7: the journal's beginning was deleted to free space")
}

// stubborn takes no facts up.
type stubborn struct{ step.Machine }

func (stubborn) Restore([]byte) error { return errors.New("no facts") }

// segmentOf writes a segment of a header and frames.
func segmentOf(t *testing.T, path, header string, frames ...[]byte) {
	t.Helper()
	text := appendFrame(nil, kindHeader, []byte(header))
	written(t, path, append(text, bytes.Join(frames, nil)...))
}

// Each thing that cannot be in a journal is told with its place.
func TestWhatIsToldOfAJournal(t *testing.T) {
	t.Parallel()
	const first, later = `{"Machine":"a","FirstRecord":1}`, `{"Machine":"a","Part":1}`
	record := func(size int) []byte { return appendFrame(nil, kindRecord, make([]byte, size)) }
	frame := func(kind byte, text string) []byte { return appendFrame(nil, kind, []byte(text)) }
	const at, place = "read journal of a, start 0, after record ", "read journal DIR/journal/1-a: "
	const damaged = "state is damaged: "
	for name, c := range map[string]struct {
		header string
		frames []byte
		want   string // the beginning of what is told
	}{
		"no JSON":        {`{`, nil, place + damaged + "header: unexpected end of JSON input"},
		"another number": {`{"Part":"x"}`, nil, place + damaged + "header: json: cannot unmarshal"},
		"not begun":      {later, record(16), place + damaged + "its header has no end"},
		"begun by half":  {later, frame(kindBegin, "1234567"), place + damaged + "its header has no end"},
		"no list":        {later, frame(kindBegin, "12345678x"), place + damaged + "decode facts: "},
		"no facts": {
			`{"Machine":"a","Part":1,"Facts":3}`,
			frame(kindBegin, "12345678"), place + damaged + "decode facts: ",
		},
		"a short record": {first, record(15), at + "1: " + damaged + "record of 15 bytes"},
		"no input":       {first, record(16), at + "1: not an input of this build: "},
		"another kind":   {first, frame('X', ""), at + "0: " + damaged + "frame of kind 'X'"},
		"no list later":  {first, frame(kindFacts, "x"), at + "0: " + damaged + "decode facts: "},
		"a gap": {
			first, frame(kindGap, "why"), at + "0: an input is missing in the journal: why",
		},
	} {
		dir := t.TempDir()
		segmentOf(t, filepath.Join(dir, journalDir, "1-a"), c.header, c.frames)
		list, err := Runs(dir)
		if len(list) > 0 {
			for _, err = range list[0].Entries() {
			}
		}
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Segments that follow one another are one run; where one is missing a new one begins. A frame
// that is torn ends the last segment, and is damage in one before it.
func TestHowSegmentsMakeARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(n int) string { return filepath.Join(dir, journalDir, fmt.Sprint(n, "-a")) }
	gap := appendFrame(nil, kindGap, []byte("why"))
	begin := appendFrame(nil, kindBegin, append(make([]byte, 8), "[]"...))
	header := func(start, part int) string {
		return fmt.Sprintf(`{"Machine":"a","Incarnation":%d,"Part":%d,"Facts":[]}`, start, part)
	}
	segmentOf(t, path(1), header(3, 0), gap[:len(gap)-1])
	segmentOf(t, path(2), header(3, 1), begin)
	segmentOf(t, path(3), header(3, 3), begin)
	segmentOf(t, path(4), header(4, 4), begin)
	segmentOf(t, path(5), header(4, 5), begin, gap[:3])
	written(t, path(6), nil)
	written(t, path(7), gap[:5])
	var got [][]string
	list := runs(t, dir)
	for _, r := range list {
		got = append(got, r.Files)
	}
	want := [][]string{{path(1), path(2)}, {path(3)}, {path(4), path(5)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("runs (-want +got):\n%s", diff)
	}
	const broken = "state is damaged: DIR/journal/1-a: a frame is broken"
	for i, want := range []string{broken, "none", "none"} {
		var wrong [3]error
		for _, wrong[0] = range list[i].Entries() {
		}
		for _, wrong[1] = range list[i].FactChanges() {
		}
		_, _, wrong[2] = list[i].Times()
		for j, err := range wrong {
			start := "read journal of a, start 3"
			if j == 0 {
				start += ", after record 18446744073709551615"
			}
			if want != "none" {
				told(t, fmt.Sprint(i, j), dir, err, start+": "+want)
			} else if err != nil {
				t.Errorf("run %d, way %d: %v", i, j, err)
			}
		}
	}
}

// The facts at the end of a run are those of its header and what came later; a record that is
// too short tells no time.
func TestTheFactsAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, journalDir, "1-a")
	facts := string(step.EncodeFacts([]step.Fact{
		step.NewFact("n/1", "a", 1), step.NewFact("n/1", "b", 2),
	}))
	frames := [][]byte{
		appendFrame(nil, kindRecord, make([]byte, recordHead-1)),
		appendFrame(nil, kindRecord, make([]byte, recordHead)),
		appendFrame(nil, kindGap, []byte("an input that cannot be encoded")),
		appendFrame(nil, kindFacts, step.AppendFacts(nil, []step.Fact{{Kind: "n/1", Key: "a"}})),
	}
	segmentOf(t, path, `{"Machine":"a","FirstRecord":1,"Facts":`+facts+`}`, frames...)
	run := runs(t, dir)[0]
	table, err := run.finalFacts()
	must(t, err)
	if diff := cmp.Diff([]step.Fact{step.NewFact("n/1", "b", 2)}, table.All()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	first, last, err := run.Times()
	if epoch := time.Unix(0, 0); err != nil || !first.Equal(epoch) || !last.Equal(epoch) {
		t.Errorf("times %s and %s, %v", first, last, err)
	}
	segmentOf(t, path, `{"Machine":"a","FirstRecord":1,"Facts":3}`)
	n := 0
	for _, err = range runs(t, dir)[0].FactChanges() {
		n++
	}
	if n != 1 || !errors.Is(err, ErrCorrupt) ||
		!strings.HasPrefix(err.Error(), "state is damaged: facts of the header: ") {
		t.Errorf("%d times %v", n, err)
	}
	if _, err = run.finalFacts(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("final facts: %v", err)
	}
	must(t, os.Remove(path))
	_, err = run.finalFacts()
	told(t, "gone", dir, err, "read journal DIR/journal/1-a: open DIR/journal/1-a: "+
		"no such file or directory")
}

// What is torn gives nothing of it.
func TestNothingIsReadOfATornFrame(t *testing.T) {
	t.Parallel()
	whole := appendFrame(nil, 'R', []byte("abc"))
	other := bytes.Clone(whole)
	other[len(other)-1]++
	for _, text := range [][]byte{{}, whole[:3], whole[:frameHeader], whole[:10], other} {
		for _, believed := range []int{len(text), len(whole)} {
			if kind, body, err := reading(text, believed).next(); err == nil || kind != 0 || body != nil {
				t.Errorf("of %d bytes: %q, %q, %v", len(text), kind, body, err)
			}
		}
	}
}

// A history that cannot be opened says why and lets its file go; one that is damaged is put aside,
// which is logged.
func TestWhatIsToldOfAHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := openHistory(t, dir)
	h.broken(t, metaBucket, func(b *bolt.Bucket) error { return b.Put(formatKey, []byte("2")) })
	must(t, h.Close())
	for range 2 {
		_, err := OpenHistory(dir, quiet())
		told(t, "another format", dir, err, `open history: state has another format: it is "2", this `+
			`program reads 1; use the program that wrote it, or choose another state directory`)
	}
	dir = t.TempDir()
	path := filepath.Join(dir, HistoryFile)
	nonsense := bytes.Repeat([]byte("no history "), 2000)
	written(t, path, nonsense)
	blocked(t, path+".damaged")
	_, err := OpenHistory(dir, quiet())
	told(t, "nowhere to put it", dir, err, "put the damaged history aside: rename DIR/history.db "+
		"DIR/history.db.damaged: file exists")
	must(t, os.Rename(path+".damaged", path+".mended"))
	var log strings.Builder
	h, err = OpenHistory(dir, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	aside, err := os.ReadFile(h.DamagedFile())
	if err != nil || !bytes.Equal(aside, nonsense) || !h.Damaged() || strings.Count(log.String(),
		`level=ERROR msg="the history of ended jobs is damaged; it is put aside and a new one begins" `+
			`file=`+path+`.damaged error="`+ErrCorrupt.Error()) != 1 {
		t.Errorf("%v, damaged %t, logged %q", err, h.Damaged(), log.String())
	}
	must(t, h.Close())
	h, err = OpenHistory(dir, quiet())
	if err != nil || h.Damaged() {
		t.Errorf("the next time: %v", err)
	}
	must(t, h.Close())
}

// A job whose identifiers a history cannot take is named, and none of those beside it is added.
func TestWhatAHistoryCannotTake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := openHistory(t, dir)
	long := strings.Repeat("x", bolt.MaxKeySize+1)
	for name, c := range map[string]struct {
		job     grid.JobID
		outputs []grid.CID
		want    string
	}{
		"no job":       {"", nil, "job : key required"},
		"no output":    {"j", []grid.CID{"a", ""}, "job j: key required"},
		"long outputs": {"j", []grid.CID{grid.CID(long)}, "job j: key too large"},
	} {
		j := ended(2, c.outputs...)
		j.Job = c.job
		told(t, name, dir, h.Add([]HistoryJob{ended(1), j}), "write history DIR/history.db: "+c.want)
	}
	if sums, err := h.Sums(); err != nil || sums != (HistorySums{}) {
		t.Errorf("%+v, %v", sums, err)
	}
	must(t, h.Add([]HistoryJob{ended(1, "a")}))
	end := timeKey(ended(1).Ended, ended(1).Job)
	h.broken(t, byOutputs, func(b *bolt.Bucket) error { return b.Put(end, []byte(`["a",""]`)) })
	later := Keep{Jobs: ended(9).Ended}
	for range 2 {
		_, err := h.Forget(ended(1).Job)
		if err != nil { // bbolt deletes no key without a name in silence
			t.Fatal(err)
		}
		f, more, err := h.Expire(later)
		if f.Jobs != 0 || more || err != nil {
			t.Errorf("%+v, %t, %v", f, more, err)
		}
	}
	must(t, h.Add([]HistoryJob{ended(1, "a")}))
	h.broken(t, byOutputs, func(b *bolt.Bucket) error { return b.Put(end, []byte(`[`)) })
	for _, keep := range []Keep{later, {Outputs: later.Jobs}} {
		f, more, err := h.Expire(keep)
		told(t, "a list that makes no sense", dir, err,
			"write history DIR/history.db: state is damaged\nunexpected end of JSON input")
		if more {
			t.Errorf("%+v", f)
		}
	}
}
