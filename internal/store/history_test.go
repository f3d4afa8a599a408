package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

var manyJobs = flag.Bool("many", false, "list 100,000 jobs and not 5,000")

var past = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ended is job number n, which was submitted n and ended 2n seconds later than the first.
func ended(n int, outputs ...grid.CID) HistoryJob {
	return HistoryJob{
		ArchivedJob: step.ArchivedJob{
			Job:       grid.JobID(fmt.Sprintf("job%013d", n)),
			Submitted: past.Add(time.Duration(n) * time.Second),
			Ended:     past.Add(time.Duration(2*n) * time.Second), Outputs: outputs,
			Record: []byte(strings.Repeat(fmt.Sprint("record ", n), 50)),
		},
		Summary: fmt.Append(nil, "summary ", n),
	}
}

func openHistory(t testing.TB, dir string) *History {
	t.Helper()
	h, err := OpenHistory(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // again, where a test has closed it
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *History) listed(t testing.TB, q HistoryQuery) string {
	t.Helper()
	rows, err := h.List(q)
	must(t, err)
	var text []string
	for _, r := range rows {
		text = append(text, strings.TrimPrefix(string(r.Summary), "summary "))
	}
	return strings.Join(text, " ")
}

func TestHistoryKeepsWhatItIsGiven(t *testing.T) {
	dir := t.TempDir()
	h := openHistory(t, dir)
	must(t, h.Add([]HistoryJob{ended(1, "a", "b"), ended(2, "b"), ended(3)}))
	must(t, h.Add([]HistoryJob{ended(3), ended(2, "b")})) // as after a crash: once more
	must(t, h.Close())
	h = openHistory(t, dir)
	record, outputs, err := h.Record(ended(2).Job)
	if err != nil || !outputs || !bytes.Equal(record, ended(2).Record) {
		t.Errorf("record %q, outputs kept %v, %v", record, outputs, err)
	}
	if _, outputs, _ := h.Record(ended(3).Job); outputs {
		t.Error("outputs of a job that left none")
	}
	if record, _, err := h.Record("none"); record != nil || err != nil {
		t.Errorf("an unknown job has record %q, %v", record, err)
	}
	if sums, err := h.Sums(); err != nil || sums.Jobs != 3 {
		t.Errorf("%+v, %v; want 3 jobs", sums, err)
	}
	for q, want := range map[HistoryQuery]string{
		{Limit: 9}: "3 2 1",
		{Limit: 2}: "3 2",
		{Limit: 9, Since: past.Add(2 * time.Second)}:                        "3 2",
		{Limit: 9, Before: past.Add(3 * time.Second), ID: ended(3).Job}:     "2 1",
		{Limit: 1, Before: past.Add(2 * time.Second), ID: ended(2).Job}:     "1",
		{Limit: 9, Before: past.Add(time.Hour), ID: "x"}:                    "3 2 1",
		{Limit: 9, Before: past.Add(-time.Hour), ID: "x"}:                   "",
		{Limit: 9, Before: past.Add(2 * time.Second), ID: "job0000000000a"}: "2 1",
	} {
		if got := h.listed(t, q); got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
	if ids, err := h.WithPrefix("job000000000000", 2); err != nil || len(ids) != 2 {
		t.Errorf("with a prefix: %v, %v", ids, err)
	}
}

func TestForgettingLetsGoOfOutputsOnce(t *testing.T) {
	h := openHistory(t, t.TempDir())
	first := ended(1, "a", "shared")
	first.Key = "key"
	must(t, h.Add([]HistoryJob{first, ended(2, "shared", "b")}))
	made := func() grid.JobID {
		id, err := h.Made("key")
		must(t, err)
		return id
	}
	if made() != first.Job {
		t.Errorf("a request with the key of %s made %q", first.Job, made())
	}
	holds := func(cid grid.CID) bool {
		is, err := h.Holds(cid)
		must(t, err)
		return is
	}
	f, err := h.Forget(ended(1).Job)
	if err != nil || f.Jobs != 1 || !slices.Equal(f.Outputs, []grid.CID{"a"}) {
		t.Errorf("forgot %+v, %v; want one job, and a let go", f, err)
	}
	if holds("a") || !holds("shared") {
		t.Error("a is kept, or what another job has left is not")
	}
	if f, err = h.Forget(ended(1).Job); err != nil || f.Jobs != 0 {
		t.Errorf("forgot %+v, %v a second time", f, err)
	}
	f, err = h.Forget(ended(2).Job)
	if err != nil || !slices.Equal(f.Outputs, []grid.CID{"shared", "b"}) {
		t.Errorf("forgot %+v, %v; want the rest let go", f, err)
	}
	if made() != "" {
		t.Error("the key of a job that is forgotten is not free")
	}
	if sums, _ := h.Sums(); sums != (HistorySums{}) {
		t.Errorf("%+v are left", sums)
	}
}

// expireAll expires until nothing is left to do.
func (h *History) expireAll(t testing.TB, keep Keep) (all Forgotten) {
	t.Helper()
	for more := true; more; {
		var f Forgotten
		var err error
		f, more, err = h.Expire(keep)
		must(t, err)
		all.Jobs, all.Emptied, all.Outputs = all.Jobs+f.Jobs, all.Emptied+f.Emptied,
			append(all.Outputs, f.Outputs...)
	}
	return all
}

func TestHistoryIsBounded(t *testing.T) {
	h := openHistory(t, t.TempDir())
	var jobs []HistoryJob
	for n := range 600 {
		jobs = append(jobs, ended(n, grid.CID(fmt.Sprint("out", n))))
	}
	must(t, h.Add(jobs))
	end := func(n int) time.Time { return past.Add(time.Duration(2*n) * time.Second) }
	f := h.expireAll(t, Keep{Outputs: end(300)})
	if f.Emptied != 300 || len(f.Outputs) != 300 || f.Jobs != 0 {
		t.Errorf("outputs of 300 jobs expire: %d, %d, %d jobs", f.Emptied, len(f.Outputs), f.Jobs)
	}
	if record, outputs, _ := h.Record(jobs[0].Job); record == nil || outputs {
		t.Error("a job goes with its outputs, or keeps them")
	}
	if f := h.expireAll(t, Keep{Jobs: end(400)}); f.Jobs != 400 || len(f.Outputs) != 100 {
		t.Errorf("400 jobs expire: %d, with %d outputs", f.Jobs, len(f.Outputs))
	}
	if got := h.listed(t, HistoryQuery{Limit: 1}); got != "599" {
		t.Errorf("the newest is %s: those that ended first go first", got)
	}
}

// The bound of a history is that of its file, whatever its records are: the jobs that ended last
// stay, and of the file's bound little is left unused.
func TestAHistorysFileIsBounded(t *testing.T) {
	for _, c := range []struct {
		name         string
		bound        int64
		jobs, record int // records of 0 to so many bytes that cannot be packed
	}{
		{"small records", 2 << 20, 6_000, 400},
		{"a soak's", 4 << 20, 6_000, 3_000},
		{"larger than a page", 16 << 20, 1_000, 60_000},
		{"the smallest bound", 1 << 20, 3_000, 3_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openHistory(t, t.TempDir())
			h.db.NoSync = true // as fast as the disk of the test allows
			rng := rand.New(rand.NewPCG(1, 4))
			for n := 0; n < c.jobs; {
				var batch []HistoryJob
				for range 16 {
					j := ended(n)
					j.Job = grid.JobID(fmt.Sprintf("%08x%08d", rng.Uint32(), n))
					j.Record = make([]byte, rng.IntN(c.record))
					for i := range j.Record {
						j.Record[i] = byte(rng.Uint32())
					}
					batch = append(batch, j)
					n++
				}
				must(t, h.Add(batch))
				h.expireAll(t, Keep{Bytes: c.bound})
				if size := fileSize(h.path); size > c.bound {
					t.Fatalf("after %d jobs the file has %d bytes, want at most %d", n, size, c.bound)
				}
			}
			sums, err := h.Sums()
			must(t, err)
			rows, err := h.List(HistoryQuery{Limit: c.jobs})
			must(t, err)
			last := ended(c.jobs - len(rows)).Submitted
			if int64(len(rows)) != sums.Jobs || rows[len(rows)-1].Submitted.Before(last) {
				t.Errorf("%d of %d jobs are listed, from %s on", len(rows), sums.Jobs,
					rows[len(rows)-1].Submitted)
			}
			if len(rows) == c.jobs || sums.Bytes < c.bound/3 {
				t.Errorf("%d jobs with %d bytes are left of %d in a file of %d",
					len(rows), sums.Bytes, c.jobs, c.bound)
			}
			t.Logf("%d jobs, %d bytes in %d", sums.Jobs, sums.Bytes, fileSize(h.path))
		})
	}
}

// A history that an earlier version wrote has its records with the times.
func TestAnEarlierHistoryIsRead(t *testing.T) {
	h := openHistory(t, t.TempDir())
	j := ended(1)
	must(t, h.Add([]HistoryJob{j}))
	end := timeKey(j.Ended, j.Job)
	must(t, h.update(func(tx *bolt.Tx) error {
		ends, all := tx.Bucket(byEnd), tx.Bucket(endedJobs)
		value := append(bytes.Clone(all.Get([]byte(j.Job))), ends.Get(end)...)
		return errors.Join(all.Put([]byte(j.Job), value), ends.Put(end, []byte{}))
	}))
	if record, _, err := h.Record(j.Job); err != nil || !bytes.Equal(record, j.Record) {
		t.Errorf("record %q, %v, want %q", record, err, j.Record)
	}
	if f := h.expireAll(t, Keep{Jobs: j.Ended.Add(time.Second)}); f.Jobs != 1 {
		t.Errorf("%d jobs expire, want one", f.Jobs)
	}
	if sums, err := h.Sums(); err != nil || sums != (HistorySums{}) {
		t.Errorf("what is left is %+v, %v", sums, err)
	}
}

func TestDamagedHistoryIsPutAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, HistoryFile)
	must(t, os.WriteFile(path, bytes.Repeat([]byte("no history "), 2000), 0o600))
	h := openHistory(t, dir)
	if !h.Damaged() {
		t.Error("it is not said that the file was damaged")
	}
	must(t, h.Add([]HistoryJob{ended(1)}))
	if _, err := os.Stat(h.DamagedFile()); err != nil {
		t.Errorf("the damaged file is gone: %v", err)
	}
	if _, err := OpenHistory(dir, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
}

// A list costs what it shows, not what there is.
func TestAListOfManyIsQuick(t *testing.T) {
	many := 5_000
	if *manyJobs {
		many = 100_000
	}
	dir := t.TempDir()
	h := openHistory(t, dir)
	for n := 0; n < many; n += 1000 {
		var jobs []HistoryJob
		for i := range 1000 {
			jobs = append(jobs, ended(n+i))
		}
		must(t, h.Add(jobs))
	}
	must(t, h.Close())
	begun := time.Now()
	h = openHistory(t, dir)
	opened := time.Since(begun)
	fastest := time.Hour
	for range 5 {
		begun = time.Now()
		if rows, err := h.List(HistoryQuery{Limit: 100}); err != nil || len(rows) != 100 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		fastest = min(fastest, time.Since(begun))
	}
	t.Logf("%d jobs: opened in %s, 100 of them listed in %s", many, opened, fastest)
	if opened > time.Second || fastest > 50*time.Millisecond {
		t.Errorf("opened in %s, listed in %s; want below 1 s and 50 ms", opened, fastest)
	}
}

// Facts come and go; their file does not stay as large as it ever was.
func TestAFileThatIsMostlyFreeIsMadeShorter(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var many, none []step.Fact
	for i := range 4000 {
		f := step.Fact{Kind: "job/1", Key: fmt.Sprint(i), Value: bytes.Repeat([]byte("7"), 4000)}
		many, none = append(many, f), append(none, step.Fact{Kind: f.Kind, Key: f.Key})
	}
	kept := step.NewFact("job/1", "kept", 7)
	must(t, errors.Join(s.Apply("broker", many), s.Apply("broker", none),
		s.Apply("broker", []step.Fact{kept}), s.Close()))
	path := filepath.Join(dir, factsFile)
	before := fileSize(path)
	must(t, os.WriteFile(path+newSuffix, []byte("left by a crash"), 0o600))
	s = open(t, dir)
	defer s.Close()
	facts, err := s.Load("broker")
	must(t, err)
	if len(facts) != 1 || facts[0].Key != "kept" {
		t.Errorf("%d facts are left", len(facts))
	}
	if after := fileSize(path); before < compactAbove || after > before/8 {
		t.Errorf("%d bytes became %d", before, after)
	}
	if s.Incarnation() != 2 {
		t.Errorf("incarnation %d after a second start", s.Incarnation())
	}
}
