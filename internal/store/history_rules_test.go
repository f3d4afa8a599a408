package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Each thing that is known of a job is found by the job, and nothing of one that is not there.
func TestWhatIsKnownOfAJob(t *testing.T) {
	h := openHistory(t, t.TempDir())
	old, fresh, bare := ended(1, "a"), ended(2), ended(3)
	old.Key, fresh.Key = strings.Repeat("k", step.MaxKey), "k"
	old.Submitted = time.Date(1960, 1, 1, 0, 0, 0, int(7*time.Millisecond), time.UTC) // a wrong clock
	bare.Record, bare.Summary = []byte{}, []byte{}
	must(t, h.Add([]HistoryJob{fresh, old, bare}))
	none := HistoryJob{ArchivedJob: step.ArchivedJob{Job: "none"}}
	for _, j := range []HistoryJob{old, fresh, bare, {}, none} {
		record, outputs, err := h.Record(j.Job)
		must(t, err)
		if diff := cmp.Diff(j.Record, record); diff != "" || outputs != (len(j.Outputs) > 0) {
			t.Errorf("job %q: outputs %t, record (-want +got):\n%s", j.Job, outputs, diff)
		}
		summary, err := h.Summary(j.Job)
		must(t, err)
		if !bytes.Equal(summary, j.Summary) {
			t.Errorf("job %q: summary %q, want %q", j.Job, summary, j.Summary)
		}
		at, err := h.Submitted(j.Job)
		must(t, err)
		if !at.Equal(j.Submitted) {
			t.Errorf("job %q: submitted %s, want %s", j.Job, at, j.Submitted)
		}
		made, err := h.Made(j.Key)
		must(t, err)
		if want := j.Job; j.Key != "" && made != want || j.Key == "" && made != "" {
			t.Errorf("job %q: its key made %q", j.Job, made)
		}
	}
	rows, err := h.List(HistoryQuery{Limit: 2})
	must(t, err)
	want := []HistoryRow{
		{Job: bare.Job, Submitted: bare.Submitted, Summary: []byte{}},
		{Job: fresh.Job, Submitted: fresh.Submitted, Summary: fresh.Summary},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := h.listed(t, HistoryQuery{Limit: 9}); got != " 2 1" {
		t.Errorf("listed are %q, want what was submitted before 1970 last", got)
	}
}

// A job is added once: what is said of it later changes nothing. A key that is too long is refused,
// and with it all that should be added.
func TestAddingToAHistory(t *testing.T) {
	h := openHistory(t, t.TempDir())
	first, again := ended(1, "a"), ended(1, "b")
	again.Summary, again.Record, again.Key = []byte("other"), []byte("other"), "other"
	must(t, h.Add([]HistoryJob{first}))
	must(t, h.Add([]HistoryJob{again}))
	record, _, err := h.Record(first.Job)
	summary, err2 := h.Summary(first.Job)
	must(t, errors.Join(err, err2))
	if !bytes.Equal(record, first.Record) || !bytes.Equal(summary, first.Summary) {
		t.Errorf("it became %q, %q", record, summary)
	}
	if made, err := h.Made("other"); made != "" || err != nil {
		t.Errorf("its key is %q, %v", made, err)
	}
	if holds, err := h.Holds("b"); holds || err != nil {
		t.Errorf("outputs are kept that it did not have: %t, %v", holds, err)
	}
	long := ended(3)
	long.Key = strings.Repeat("k", step.MaxKey+1)
	want := fmt.Sprintf("write history: job %s: key of %d bytes, want at most %d",
		long.Job, step.MaxKey+1, step.MaxKey)
	if err := h.Add([]HistoryJob{ended(2), long}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if sums, err := h.Sums(); sums.Jobs != 1 || err != nil {
		t.Errorf("%+v, %v, want one job", sums, err)
	}
}

// A history from which jobs were forgotten is as one that never had them.
func TestAHistoryIsAsLargeAsWhatIsLeft(t *testing.T) {
	some, all := openHistory(t, t.TempDir()), openHistory(t, t.TempDir())
	left := 0
	for n := range 9 {
		j := ended(n, grid.CID(fmt.Sprint(n%4)))
		j.Key = strings.Repeat("k", n)
		must(t, all.Add([]HistoryJob{j}))
		if n%4 != 1 { // no job that had output 1 is left
			must(t, some.Add([]HistoryJob{j}))
			left++
		}
	}
	for n := 1; n < 9; n += 4 {
		f, err := all.Forget(ended(n).Job)
		if err != nil || f.Jobs != 1 {
			t.Errorf("forgot %+v, %v", f, err)
		}
	}
	want, err := some.Sums()
	got, err2 := all.Sums()
	if err = errors.Join(err, err2); err != nil || got != want || want.Jobs != int64(left) {
		t.Errorf("%+v, %v, want %+v of %d jobs", got, err, want, left)
	}
	for cid := range 5 {
		held, err := all.Holds(grid.CID(fmt.Sprint(cid)))
		if want := cid != 1 && cid != 4; err != nil || held != want {
			t.Errorf("output %d is held: %t, %v, want %t", cid, held, err, want)
		}
	}
}

// What ended just at a bound stays, and so does a history that is just as large as it may be.
func TestBoundsOfAHistory(t *testing.T) {
	ids := func(all ...grid.CID) []grid.CID { return all }
	for name, c := range map[string]struct {
		keep    Keep
		jobs    string // that are left
		outputs []grid.CID
	}{
		"no bounds":    {Keep{}, "3 2 1", nil},
		"end of 2":     {Keep{Jobs: ended(2).Ended}, "3 2", ids("1")},
		"outputs of 2": {Keep{Outputs: ended(2).Ended}, "3 2 1", ids("1")},
		"much space":   {Keep{Bytes: 1 << 20}, "3 2 1", nil},
		"one byte":     {Keep{Bytes: 1}, "", ids("1", "2", "3")},
		"both":         {Keep{Jobs: ended(2).Ended, Outputs: ended(3).Ended}, "3 2", ids("1", "2")},
	} {
		h := openHistory(t, t.TempDir())
		must(t, h.Add([]HistoryJob{ended(1, "1"), ended(2, "2"), ended(3, "3")}))
		f := h.expireAll(t, c.keep)
		if got := h.listed(t, HistoryQuery{Limit: 9}); got != c.jobs {
			t.Errorf("%s: left are %q, want %q", name, got, c.jobs)
		}
		if diff := cmp.Diff(c.outputs, f.Outputs); diff != "" {
			t.Errorf("%s: outputs let go (-want +got):\n%s", name, diff)
		}
	}
}

// So that others get a turn, a history forgets a number of jobs at a time and says that there are
// more.
func TestForgettingInTurns(t *testing.T) {
	h := openHistory(t, t.TempDir())
	var jobs []HistoryJob
	for n := range forgetAtOnce + 1 {
		jobs = append(jobs, ended(n))
	}
	must(t, h.Add(jobs))
	for _, want := range []struct {
		jobs int
		more bool
	}{{forgetAtOnce, true}, {1, false}, {0, false}} {
		f, more, err := h.Expire(Keep{Jobs: past.AddDate(1, 0, 0)})
		if err != nil || f.Jobs != want.jobs || more != want.more {
			t.Errorf("forgot %d, more %t, %v, want %+v", f.Jobs, more, err, want)
		}
	}
}

// broken changes a table of a history behind its back.
func (h *History) broken(t *testing.T, table []byte, change func(*bolt.Bucket) error) {
	t.Helper()
	must(t, h.db.Update(func(tx *bolt.Tx) error { return change(tx.Bucket(table)) }))
}

// Where the tables of a history disagree, what is left of a job goes with its time, and what
// cannot be read is said.
func TestTablesThatDisagree(t *testing.T) {
	h := openHistory(t, t.TempDir())
	one, two := ended(1, "a"), ended(2, "b")
	must(t, h.Add([]HistoryJob{one, two}))
	h.broken(t, endedJobs, func(b *bolt.Bucket) error { return b.Delete([]byte(one.Job)) })
	f := h.expireAll(t, Keep{Jobs: two.Ended})
	if f.Jobs != 0 || h.listed(t, HistoryQuery{Limit: 1}) != "2" {
		t.Errorf("forgot %+v, want nothing that is there", f)
	}
	end := timeKey(two.Ended, two.Job)
	h.broken(t, byEnd, func(b *bolt.Bucket) error {
		record := bytes.Clone(b.Get(end))
		return b.Put(end, record[:len(record)-3])
	})
	if record, outputs, err := h.Record(two.Job); err == nil || record != nil || outputs ||
		!strings.Contains(err.Error(), string(two.Job)) {
		t.Errorf("a record that is cut off is %q, %t, %v", record, outputs, err)
	}
	h.broken(t, byOutputs, func(b *bolt.Bucket) error { return b.Put(end, []byte("{")) })
	if _, err := h.Forget(two.Job); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a list of outputs that makes no sense: %v", err)
	}
	if got := h.listed(t, HistoryQuery{Limit: 9}); got != "2 1" {
		t.Errorf("after that failed, %q are left", got)
	}
}

// An entry has all that was put: both times, the key, the record. Less than that is none.
func TestEntriesOfAHistory(t *testing.T) {
	value := append(timeKey(past, ""), timeKey(past.Add(time.Hour), "")...)
	value = append(append(value, 2), "keyrecord"...)
	e, known := readHistoryEntry(value)
	if !known || e.key != "ke" || string(e.record) != "yrecord" ||
		!bytes.Equal(e.submitted, timeKey(past, "")) ||
		!bytes.Equal(e.ended, timeKey(past.Add(time.Hour), "")) {
		t.Errorf("%+v, %t", e, known)
	}
	const head, key = 2*timeBytes + 1, 2
	for n := range len(value) {
		if _, known := readHistoryEntry(value[:n]); known != (n >= head+key) {
			t.Errorf("%d bytes are an entry: %t", n, known)
		}
	}
	if n := number([]byte{0, 0, 0, 0, 0, 0, 1, 2}); n != 258 {
		t.Errorf("a number is %d", n)
	}
	for _, wrong := range [][]byte{nil, make([]byte, 7), bytes.Repeat([]byte{1}, 9)} {
		if n := number(wrong); n != 0 {
			t.Errorf("%d bytes are the number %d", len(wrong), n)
		}
	}
}

// Keys are in the order of their times, also before 1970, and of IDs where these are alike.
func TestKeysOfAHistoryAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (time.Time, grid.JobID) {
			ms := rapid.Int64Range(-1<<40, 1<<40).Draw(t, name)
			return time.UnixMilli(ms).UTC(), grid.JobID(rapid.StringMatching("[a-c]{0,2}").Draw(t, name))
		}
		at, id := draw("one")
		at2, id2 := draw("other")
		if got, gotID := splitKey(timeKey(at, id)); !got.Equal(at) || gotID != id {
			t.Fatalf("%s, %s became %s, %s", at, id, got, gotID)
		}
		want := at.Compare(at2)
		if want == 0 {
			want = strings.Compare(string(id), string(id2))
		}
		if got := bytes.Compare(timeKey(at, id), timeKey(at2, id2)); got != want {
			t.Fatalf("%s %s and %s %s are in order %d, want %d", at, id, at2, id2, got, want)
		}
	})
	for n := range timeBytes {
		if at, id := splitKey(make([]byte, n)); !at.IsZero() || id != "" {
			t.Errorf("a key of %d bytes is of %s, %q", n, at, id)
		}
	}
}

// IDs are found by how they begin, in order and no more than are asked for.
func TestJobsByPrefix(t *testing.T) {
	h := openHistory(t, t.TempDir())
	var jobs []HistoryJob
	for _, id := range []grid.JobID{"ab", "b", "abc", "aa", "ac"} {
		j := ended(1)
		j.Job = id
		jobs = append(jobs, j)
	}
	must(t, h.Add(jobs))
	for _, c := range []struct {
		text  string
		limit int
		want  []grid.JobID
	}{
		{"ab", 9, []grid.JobID{"ab", "abc"}},
		{"a", 9, []grid.JobID{"aa", "ab", "abc", "ac"}},
		{"a", 2, []grid.JobID{"aa", "ab"}},
		{"", 9, []grid.JobID{"aa", "ab", "abc", "ac", "b"}},
		{"b", 9, []grid.JobID{"b"}},
		{"c", 9, nil},
		{"a", 0, nil},
	} {
		got, err := h.WithPrefix(c.text, c.limit)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%q, %d: %v (-want +got):\n%s", c.text, c.limit, err, diff)
		}
	}
}

// A history that cannot be read or written says so, and gives nothing beside.
func TestAHistoryThatIsClosed(t *testing.T) {
	h := openHistory(t, t.TempDir())
	must(t, h.Add([]HistoryJob{ended(1, "a")}))
	must(t, h.Close())
	id, all := ended(1).Job, HistoryQuery{Limit: 1}
	for name, ask := range map[string]func() (any, error){
		"read: Sums":       func() (any, error) { s, err := h.Sums(); return s != HistorySums{}, err },
		"read: Record":     func() (any, error) { r, _, err := h.Record(id); return r != nil, err },
		"read: Submitted":  func() (any, error) { at, err := h.Submitted(id); return !at.IsZero(), err },
		"read: Summary":    func() (any, error) { s, err := h.Summary(id); return s != nil, err },
		"read: List":       func() (any, error) { r, err := h.List(all); return r != nil, err },
		"read: WithPrefix": func() (any, error) { r, err := h.WithPrefix("", 1); return r != nil, err },
		"read: Made":       func() (any, error) { m, err := h.Made("k"); return m != "", err },
		"read: Holds":      func() (any, error) { return h.Holds("a") },
		"read: Expire": func() (any, error) {
			_, more, err := h.Expire(Keep{Jobs: past.AddDate(1, 0, 0)})
			return more, err
		},
		"write: Forget": func() (any, error) { f, err := h.Forget(id); return f.Jobs > 0, err },
		"write: Add":    func() (any, error) { return false, h.Add([]HistoryJob{ended(2)}) },
	} {
		verb, _, _ := strings.Cut(name, ":")
		got, err := ask()
		if !errors.Is(err, bolterrors.ErrDatabaseNotOpen) || got != false ||
			!strings.HasPrefix(err.Error(), verb+" history") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
