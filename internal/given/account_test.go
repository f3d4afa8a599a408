package given

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// monday is Monday, 2026-03-02, 08:00 UTC.
func monday() time.Time { return time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) }

func open(t *testing.T, dir string) *Account {
	t.Helper()
	a, err := Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sum adds up everything.
func sum(days []Day) (seconds float64, tasks int) {
	for _, d := range days {
		for _, s := range d.Shares {
			seconds += s.CoreSeconds
			tasks += s.Tasks
		}
	}
	return seconds, tasks
}

// What was saved is there again, by day and submitter, with names that are gone since.
func TestWhatWasSavedStays(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	a.Add(Work{At: monday(), For: "lab", CPU: 90 * time.Second})
	a.Add(Work{At: monday().Add(time.Hour), For: "lab", CPU: 30 * time.Second, Tasks: 2})
	a.Add(Work{At: monday(), For: "ada", CPU: time.Second, Tasks: 1})
	a.Add(Work{At: monday().AddDate(0, 0, 1), For: "lab", Tasks: 1})
	a.Add(Work{At: monday().AddDate(0, 0, 2), For: "idle"}) // nothing
	a.Name(map[grid.SiteID]string{"lab": "the lab", "else": "nobody"})
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	a.Add(Work{At: monday(), For: "ada", Tasks: 100}) // a crash takes it
	again := open(t, dir)
	again.Name(map[grid.SiteID]string{"ada": "Ada"})
	want := []Day{
		{Date: "2026-03-02", Shares: []Share{
			{For: "lab", Name: "the lab", CoreSeconds: 120, Tasks: 2},
			{For: "ada", Name: "Ada", CoreSeconds: 1, Tasks: 1},
		}},
		{Date: "2026-03-03", Shares: []Share{{For: "lab", Name: "the lab", Tasks: 1}}},
	}
	if diff := cmp.Diff(want, again.Days()); diff != "" {
		t.Error(diff)
	}
}

// An account that has not changed is not written.
func TestUnchangedIsNotWritten(t *testing.T) {
	a := open(t, t.TempDir())
	if err := a.Save(); err != nil || a.Changed() {
		t.Fatalf("save: %v", err)
	}
	if _, err := os.Stat(a.path()); err == nil {
		t.Fatal("an empty account has a file")
	}
	a.Add(Work{At: monday(), For: "lab", Tasks: 1})
	if !a.Changed() {
		t.Error("work is no change")
	}
	if err := a.Save(); err != nil || a.Changed() {
		t.Errorf("saved: %v, changed %t", err, a.Changed())
	}
}

// A disk that does not take the account loses nothing: it is saved later.
func TestSavedLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	a := open(t, dir)
	a.Add(Work{At: monday(), For: "lab", Tasks: 1})
	if err := a.Save(); err == nil || !a.Changed() {
		t.Fatalf("saved without a directory: %v, changed %t", err, a.Changed())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.Save(); err != nil {
		t.Fatal(err)
	}
	if _, tasks := sum(open(t, dir).Days()); tasks != 1 {
		t.Errorf("tasks = %d, want 1", tasks)
	}
}

// A file that is no account is put aside and told; the account begins anew.
func TestDamagedIsPutAside(t *testing.T) {
	for name, text := range map[string]string{
		"cut off":  `{"format":1,"days":[{"da`,
		"later":    `{"format":2,"days":[]}`,
		"no date":  `{"format":1,"days":[{"date":"soon"}]}`,
		"order":    `{"format":1,"days":[{"date":"2026-03-02"},{"date":"2026-03-01"}]}`,
		"negative": `{"format":1,"days":[{"date":"2026-03-02","shares":[{"for":"a","tasks":-1}]}]}`,
		"twice": `{"format":1,"days":[{"date":"2026-03-02","shares":[` +
			`{"for":"a"},{"for":"a"}]}]}`,
		"too long": strings.Repeat(" ", maxBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			a, err := Open(dir, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil || len(a.Days()) != 0 || !strings.Contains(log.String(), asideName) {
				t.Errorf("open: %v, %v, log %s", err, a.Days(), log.String())
			}
			if kept, err := os.ReadFile(filepath.Join(dir, asideName)); string(kept) != text {
				t.Errorf("aside: %.40q, %v", kept, err)
			}
		})
	}
}

// Where the file cannot be read at all the account counts for this run, and writes nothing.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := Open(dir, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("a directory was read")
	}
	a.Add(Work{At: monday(), For: "lab", Tasks: 1})
	if err := a.Save(); err != nil {
		t.Error(err)
	}
	if _, tasks := sum(a.Days()); tasks != 1 {
		t.Errorf("tasks = %d, want 1", tasks)
	}
}

// However much comes, in whatever order of days, the account is bounded and can be read again,
// and the newest days are in it.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Account
		newest := ""
		for range rapid.IntRange(1, 300).Draw(t, "works") {
			w := Work{
				At:  monday().AddDate(0, 0, rapid.IntRange(-60, 60).Draw(t, "day")),
				For: grid.SiteID(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "for"))), Tasks: 1,
			}
			newest = max(newest, w.At.Format(time.DateOnly))
			a.Add(w)
		}
		days := a.Days()
		if len(days) > maxDays || days[len(days)-1].Date != newest {
			t.Fatalf("%d days, the last one is not %s: %+v", len(days), newest, days)
		}
		text, err := encode(days)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(text)
		if diff := cmp.Diff(days, again); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

// Work of a clock that is behind all days is not lost.
func TestClockBehindAllDays(t *testing.T) {
	var a Account
	for i := range maxDays {
		a.Add(Work{At: monday().AddDate(0, 0, i), For: "lab", Tasks: 1})
	}
	a.Add(Work{At: time.Unix(0, 0).UTC(), For: "lab", Tasks: 1})
	days := a.Days()
	_, tasks := sum(days)
	if len(days) != maxDays || days[0].Date != "2026-03-02" || tasks != maxDays+1 {
		t.Errorf("%d days from %s with %d tasks", len(days), days[0].Date, tasks)
	}
}

// The submitters of a day are bounded; what the others got is counted together.
func TestManySubmitters(t *testing.T) {
	var a Account
	for i := range 3 * maxFor {
		a.Add(Work{At: monday(), For: grid.SiteID(fmt.Sprint(i)), CPU: time.Second, Tasks: 1})
	}
	days := a.Days()
	seconds, tasks := sum(days)
	if len(days[0].Shares) != maxFor+1 || seconds != 3*maxFor || tasks != 3*maxFor {
		t.Errorf("%d shares, %g s, %d tasks", len(days[0].Shares), seconds, tasks)
	}
	if last := days[0].Shares[maxFor]; last.For != Others || last.Tasks != 2*maxFor {
		t.Errorf("the others got %+v", last)
	}
	names, id := make(map[grid.SiteID]string), strings.Repeat("x", 40) // IDs are some 52 bytes
	for _, s := range days[0].Shares {
		names[s.For] = strings.Repeat("\x00", 2*maxName)
	}
	a.Name(names)
	text, err := encode(a.Days())
	if err == nil {
		_, err = decode(text)
	}
	if err != nil || (len(text)+maxFor*len(id))*maxDays > maxBytes {
		t.Errorf("%d bytes a day: %v", len(text), err)
	}
}

// What is read is an account that is written alike.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":1,"days":[{"date":"2026-03-02","shares":[` +
		`{"for":"lab","name":"l","core_seconds":1.5,"tasks":2}]}]}`))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		days, err := decode(text)
		if err != nil {
			return
		}
		written, err := encode(days)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(written)
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		more, err := encode(again)
		if err != nil || !bytes.Equal(written, more) {
			t.Errorf("%s\n%s\n%v", written, more, err)
		}
	})
}
