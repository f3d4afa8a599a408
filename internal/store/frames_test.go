package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// reading reads a file's text of which so many bytes are believed to be there.
func reading(text []byte, left int) *frameReader {
	return &frameReader{in: bufio.NewReader(bytes.NewReader(text)), left: int64(left)}
}

// failing is a disk that cannot be read on.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A frame is read whole or not at all: what ends within one, was never written, or has another
// sum is torn, and what the disk says is passed on.
func TestWhatIsAFrame(t *testing.T) {
	t.Parallel()
	whole := appendFrame(nil, 'R', []byte("ab"), []byte("c"))
	for cut := range len(whole) {
		_, _, err := reading(whole[:cut], cut).next()
		if want := map[bool]error{true: io.EOF, false: errTorn}[cut == 0]; !errors.Is(err, want) {
			t.Errorf("%d of %d bytes: %v, want %v", cut, len(whole), err, want)
		}
		// The file became shorter than it was believed to be.
		if _, _, err := reading(whole[:cut], len(whole)).next(); !errors.Is(err, errTorn) {
			t.Errorf("%d bytes are left of %d: %v, want %v", cut, len(whole), err, errTorn)
		}
	}
	r := reading(append(bytes.Clone(whole), whole...), 2*len(whole))
	for range 2 {
		if kind, body, err := r.next(); kind != 'R' || string(body) != "abc" || err != nil {
			t.Errorf("read %q %q, %v", kind, body, err)
		}
	}
	if _, _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last one: %v", err)
	}
	for i := range whole {
		other := bytes.Clone(whole)
		other[i] ^= 1
		if _, _, err := reading(other, len(other)).next(); !errors.Is(err, errTorn) {
			t.Errorf("byte %d is another one: %v", i, err)
		}
	}
	empty := make([]byte, frameHeader+1)
	if _, _, err := reading(empty, len(empty)).next(); !errors.Is(err, errTorn) {
		t.Errorf("zeros: %v", err)
	}
	huge := binary.LittleEndian.AppendUint64(nil, maxPayload+1)
	if _, _, err := reading(huge, 1<<30).next(); !errors.Is(err, errTorn) {
		t.Errorf("a frame that is too large: %v", err)
	}
	broken := errors.New("broken disk")
	for _, before := range []int{0, frameHeader} {
		in := io.MultiReader(bytes.NewReader(whole[:before]), failing{broken})
		r := &frameReader{in: bufio.NewReader(in), left: int64(len(whole))}
		if _, _, err := r.next(); !errors.Is(err, broken) {
			t.Errorf("a disk that breaks after %d bytes: %v", before, err)
		}
	}
}

// Segments are told by their names, in the order of their numbers; what else is there is left
// alone.
func TestWhichFilesAreSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, journalDir, "0000000001-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"0000000010-site", "0000000002-site", "0000000002-broker", "7-x", "x-site", "0000000003", "note",
	} {
		if err := os.WriteFile(filepath.Join(dir, journalDir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range names {
		got = append(got, fmt.Sprint(n.number, n.machine, n.bytes, " ", filepath.Base(n.path)))
	}
	want := "2broker17 0000000002-broker, 2site15 0000000002-site, 7x3 7-x, 10site15 0000000010-site"
	if strings.Join(got, ", ") != want {
		t.Errorf("segments %s, want %s", strings.Join(got, ", "), want)
	}
	if _, err := segmentNames(filepath.Join(dir, "none")); err == nil ||
		!strings.HasPrefix(err.Error(), "list journal: ") {
		t.Errorf("without a directory: %v", err)
	}
	for name, want := range map[string]bool{
		"": false, "a": true, "z": true, "0": true, "9": true, "a9z0": true, "A": false, "-": false,
		"a b": false, "{": false, "`": false, "/": false, ":": false, "ä": false,
	} {
		if got := plainName(name); got != want {
			t.Errorf("%q is plain: %t, want %t", name, got, want)
		}
	}
}

// A start has a number above that of the one before, by the clock where that can be right.
func TestTheNumberOfTheNextStart(t *testing.T) {
	t.Parallel()
	second := func(n int64) time.Time { return epoch().Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		last uint64
		wall time.Time
		want uint64
	}{
		{0, second(0), 1},
		{0, second(100), 100},
		{99, second(100), 100},
		{100, second(100), 101},
		{7, second(-1), 8},
		{7, second(-1 << 40), 8},
		{7, second(maxByClock), maxByClock},
		{7, second(maxByClock + 1), 8},
	} {
		if got := next(c.last, c.wall); got != c.want {
			t.Errorf("after %d at %s comes %d, want %d", c.last, c.wall, got, c.want)
		}
	}
}

// The place holds the start that was noted there last. One that cannot be written, or is no
// file, is an error that says what for.
func TestThePlaceOfTheState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), placeFile)
	var first []byte
	for i, start := range []uint64{3, 9, 5} {
		identity, last, err := writePlace(path, start)
		if want := []uint64{0, 3, 9}[i]; err != nil || last != want || len(identity) == 0 {
			t.Errorf("start %d finds %d, %v, want %d", start, last, err, want)
		}
		if first == nil {
			first = identity
		}
		if !bytes.Equal(first, identity) {
			t.Error("the same file is another one")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 8 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, last, err := writePlace(path, 1); err != nil || last != 0 {
		t.Errorf("a damaged place holds %d, %v", last, err)
	}
	if _, _, err := writePlace(t.TempDir(), 1); err == nil ||
		!strings.HasPrefix(err.Error(), "note the place of the state: ") {
		t.Errorf("a directory in its place: %v", err)
	}
}

// bare is a database with the buckets that are named.
func bare(t *testing.T, buckets ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	db, err := openDB(filepath.Join(dir, factsFile), false)
	if err == nil {
		err = db.Update(func(tx *bolt.Tx) (err error) {
			for _, name := range buckets {
				_, wrong := tx.CreateBucket(name)
				err = errors.Join(err, wrong)
			}
			return err
		})
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A file that an agent had no time to fill holds no facts, and is in order.
func TestFactsOfAnUnfinishedFile(t *testing.T) {
	t.Parallel()
	for _, buckets := range [][][]byte{nil, {metaBucket}, {factsBucket}, {metaBucket, factsBucket}} {
		dir := bare(t, buckets...)
		facts, err := ReadFacts(dir)
		if err != nil || len(facts) != 0 {
			t.Errorf("with %q: %v, %v", buckets, facts, err)
		}
		if err := notInOrder(filepath.Join(dir, factsFile)); !errors.Is(err, errInOrder) {
			t.Errorf("with %q: %v, want %v", buckets, err, errInOrder)
		}
	}
	path := filepath.Join(t.TempDir(), factsFile)
	for size, want := range map[int64]bool{0: true, 1: true} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := notInOrder(path); (err == nil) != want {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
	if err := notInOrder(path + ".none"); err != nil {
		t.Error("no file:", err)
	}
	if err := notInOrder(filepath.Join(path, "below")); err == nil || errors.Is(err, errInOrder) {
		t.Errorf("a place that cannot be: %v", err)
	}
	s := open(t, t.TempDir())
	if err := notInOrder(filepath.Join(s.dir, factsFile)); !errors.Is(err, ErrLocked) {
		t.Errorf("a file in use: %v", err)
	}
	if _, err := StartAsNew(s.dir, time.Unix(1, 0)); !errors.Is(err, ErrLocked) {
		t.Errorf("beginning anew below a living agent: %v", err)
	}
	closed(t, s)
}

// Where the journal itself says what cannot be, nothing is made of it, and the old file stays.
func TestFactsFromAJournalOfNonsense(t *testing.T) {
	t.Parallel()
	dir := lived(t)
	path := filepath.Join(dir, factsFile)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	names, err := segmentNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(names[0].path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	nonsense := appendFrame(nil, kindFacts, []byte("nonsense"))
	_, err = f.Write(appendFrame(nonsense, kindGap, []byte("x")))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, build := range []string{"b1", "b2"} {
		_, err := RebuildFacts(dir, build, newTally)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "rebuild facts of site: ") ||
			!strings.Contains(err.Error(), remedy) {
			t.Errorf("build %s: %v, want the machine and the remedy", build, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 100 {
		t.Errorf("the damaged file: %v, %v", info, err)
	}
}

// The number of a site that begins anew is above all that its journals tell, and where none
// does that of the clock; a clock before 1970 gives none.
func TestTheNumberOfANewBeginning(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]uint64{7: 7, -7: 0} {
		found, err := StartAsNew(t.TempDir(), time.Unix(seconds, 0))
		if err != nil || found.Incarnation != want || found.Aside != "" {
			t.Errorf("at %d: %+v, %v", seconds, found, err)
		}
	}
	dir := lived(t)
	if err := os.Truncate(filepath.Join(dir, factsFile), 100); err != nil {
		t.Fatal(err)
	}
	found, err := StartAsNew(dir, time.Unix(1_000_000, 0))
	aside := filepath.Join(dir, factsFile+".damaged")
	if err != nil || found.Incarnation != 1 || found.Aside != aside {
		t.Errorf("with a journal: %+v, %v", found, err)
	}
	if raw, err := os.ReadFile(found.Aside); err != nil || len(raw) != 100 {
		t.Errorf("aside are %d bytes, %v", len(raw), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What an earlier life left behind is a sign of it only where it says something.
func TestSignsOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sign"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, wrong := OpenWith(dir, Options{Signs: []string{"sign", "none"}}, quiet())
	if wrong != nil {
		t.Fatal("beside an empty file:", wrong)
	}
	closed(t, s)
	if err := os.Remove(filepath.Join(dir, factsFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, journalDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, journalDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, quiet()); err == nil {
		t.Error("opened where the journal cannot be")
	}
	store := &Store{dir: dir}
	err := store.checkEarlierLife()
	if err == nil || !strings.HasPrefix(err.Error(), "list journal: ") {
		t.Errorf("a journal that cannot be listed: %v", err)
	}
	store = &Store{dir: filepath.Join(dir, "sign")}
	if err := store.checkEarlierLife(); err == nil ||
		!strings.HasPrefix(err.Error(), "open state: ") {
		t.Errorf("a state that cannot be looked at: %v", err)
	}
}

// Rows that no machine wrote are damage.
func TestARowWithoutAKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Apply("site", []step.Fact{step.NewFact("job/1", "a", 1)}); err != nil {
		t.Fatal(err)
	}
	err := s.changed(func(tx *bolt.Tx) error {
		return tx.Bucket(factsBucket).Bucket([]byte("site")).Put([]byte("row"), []byte("1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("site"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want %v", err, ErrCorrupt)
	}
	if facts, err := s.Load("other"); err != nil || len(facts) != 0 {
		t.Errorf("a machine without facts has %v, %v", facts, err)
	}
	closed(t, s)
}
