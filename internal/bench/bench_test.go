package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	var s sample
	for i := 100; i >= 1; i-- {
		s = append(s, time.Duration(i)*time.Millisecond)
	}
	if got, want := s.in(time.Millisecond), (summary{Min: 1, P50: 51, P95: 96, N: 100}); got != want {
		t.Errorf("in = %+v, want %+v", got, want)
	}
	if got := (sample{}).in(time.Millisecond); got != (summary{}) {
		t.Errorf("nothing sums up to %+v", got)
	}
	rates := sample{time.Second, 100 * time.Millisecond, 500 * time.Millisecond}.rates(1000)
	if want := (summary{Min: 1000, P50: 2000, P95: 10000, N: 3}); rates != want {
		t.Errorf("rates = %+v, want %+v", rates, want)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 0.01234: "0.0123", 1.2345: "1.23", 99.5: "99.5", 1234.5: "1234",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

// someReport has a figure of each sort.
func someReport() *report {
	r := &report{Header: header{CPU: "cpu", Cores: 2, Commit: "abc", Took: "1s"}}
	r.add(spanned("star", sample{time.Millisecond}, time.Millisecond))
	r.add(spanned("offers", sample{3 * time.Millisecond}, time.Millisecond)).
		against("star", r.find("star").P50).ratioAtMost(4)
	r.add(figure{Figure: "rate", Value: 10, Unit: "jobs/s", summary: summary{N: 1}}).atLeast(60)
	r.missing("sandbox", os.ErrNotExist)
	return r
}

func TestGoals(t *testing.T) {
	t.Parallel()
	r := someReport()
	if f := r.find("offers"); f.Ratio == nil || *f.Ratio != 3 || f.Met == nil || !*f.Met ||
		f.Goal != "<= 4 x raw" {
		t.Errorf("offers: %+v", f)
	}
	if f := r.find("rate"); f.Met == nil || *f.Met {
		t.Errorf("a missed goal: %+v", f)
	}
	if f := r.find("sandbox"); f.Met != nil || f.Note == "" {
		t.Errorf("a figure without a value: %+v", f)
	}
	r.find("sandbox").atMost(5)
	if f := r.find("sandbox"); f.Met != nil {
		t.Errorf("a figure without a value has met its goal: %+v", f)
	}
}

func TestReportGoesThroughAFileIntoAPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, page := filepath.Join(dir, "bench.json"), filepath.Join(dir, "page.md")
	r := someReport()
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	back, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.rows(), back.rows()); diff != "" {
		t.Errorf("rows came back (-want +got): %s", diff)
	}
	if err = os.WriteFile(
		page, []byte("above\n"+tableBegin+"\nold\n"+tableEnd+"\nbelow\n"), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it stands there already
		if err = back.intoPage(page); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "above\n") || !strings.HasSuffix(got, "\nbelow\n") ||
		strings.Contains(got, "old") ||
		strings.Count(got, "| offers | 3.00 | ms |") != 1 {
		t.Errorf("the page is now %q", got)
	}
	if err := os.WriteFile(page, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := back.intoPage(page); err == nil {
		t.Error("a page without a place for the table is taken")
	}
	if _, err := readReport(filepath.Join(dir, "none")); err == nil ||
		!strings.Contains(err.Error(), "BENCH_JSON") {
		t.Errorf("no file: %v", err)
	}
}

// TestThePageHasAPlace keeps make bench-docs working.
func TestThePageHasAPlace(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), tableBegin) || !strings.Contains(string(text), tableEnd) {
		t.Error("docs/performance.md has no place for the table")
	}
}

func TestWatchFollowsOnePath(t *testing.T) {
	t.Parallel()
	var w watch
	done := w.begin(byUnicast, 2, 1)
	taps := w.taps(func() grid.SiteID { return "self" })
	announce := protocol.Announce{Submitter: "self"}
	award := protocol.Award{Tasks: make([]protocol.AwardedTask, 1)}
	if !taps.Sending("a", announce) || taps.Sending("", announce) {
		t.Error("the announcement takes the other path")
	}
	if !taps.Sending("", protocol.Clear{}) {
		t.Error("a clear is kept back")
	}
	taps.Received("self", protocol.Bid{})
	taps.Received("a", protocol.Bid{})
	if taps.Sending("a", award) {
		t.Error("an award leaves")
	}
	select {
	case <-done:
		t.Fatal("a round ends before the last offer")
	default:
	}
	taps.Received("b", protocol.Bid{})
	<-done
	got := w.end()
	if !got.complete || got.lastOffer <= 0 || got.award <= 0 || got.award > got.lastOffer {
		t.Errorf("round = %+v", got)
	}
}

func TestBoardTakesNewsInAnyOrder(t *testing.T) {
	t.Parallel()
	b := newBoard()
	for _, kind := range []string{"awarded", "awarded", "task_done", "job_ended", "job_ended"} {
		if err := b.note(view.Event{Job: "j", Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	n := b.job("j")
	<-n.ended
	if !n.good || n.placed.IsZero() || n.finished.Before(n.placed) {
		t.Errorf("news = %+v", n)
	}
}

func TestStarAsksEverybody(t *testing.T) {
	t.Parallel()
	s, err := newStar(t.Context(), 5, 250, 130)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := s.once(); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	if err := s.once(); err == nil {
		t.Error("a closed star answers")
	}
}

// TestCrowd places one job in a small mesh of real agents, by each path.
func TestCrowd(t *testing.T) {
	t.Parallel()
	b := &bench{dir: t.TempDir(), quick: true}
	c, err := b.newCrowd(t.Context(), submitters-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []path{byGossip, byUnicast} {
		got, err := c.round(t.Context(), c.disk(by), by, 3)
		if err != nil || !got.complete || got.offers != submitters-1 || got.awards != 3 {
			t.Errorf("by %s: %+v, %v", by, got, err)
		}
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// A measurement that fails becomes a row that says why, in one line, and never ends
// the run: somebody waited five minutes for the table.
func TestWhatFailsIsARow(t *testing.T) {
	t.Parallel()
	b := &bench{}
	b.lost("jobs among 48 sites",
		errors.New("an agent fell silent | wait 2m\nthe log ends: many\nlines "+strings.Repeat("x", 500)))
	b.missing("wide", errors.New(strings.Repeat("é", 500)))
	b.add(figure{Figure: "rate", Value: 10, Unit: "jobs/s", summary: summary{N: 1}})
	var table strings.Builder
	b.print(&table)
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if got := len(lines); got != 2+1+3 { // two lines of header, the columns, the rows
		t.Fatalf("the table has %d lines:\n%s", got, table.String())
	}
	if want := "an agent fell silent / wait 2m"; !strings.HasSuffix(lines[3], want) {
		t.Errorf("row %q does not end with %q", lines[3], want)
	}
	if got := b.find("wide").Note; got != strings.Repeat("é", 120)+"..." {
		t.Errorf("a wide reason became %q", got)
	}
}

// Agents whose files are gone make every part fail.
func TestABenchThatMeasuresNothingStillPrints(t *testing.T) {
	t.Parallel()
	b := &bench{only: []string{"jobs"}, dir: filepath.Join(t.TempDir(), "gone")}
	b.measure(t.Context())
	if len(b.Figures) != 1 || b.Figures[0].Note == "" || b.Figures[0].Figure != "the rest of jobs" {
		t.Errorf("rows: %+v", b.Figures)
	}
}

// A part that does not exist is refused with the names of those that do.
func TestPartsAreChosen(t *testing.T) {
	t.Parallel()
	var b bench
	if err := b.choose("raw,small"); err != nil || !slices.Equal(b.only, []string{"raw", "small"}) {
		t.Errorf("chosen are %q, %v", b.only, err)
	}
	for _, wrong := range []string{"tiny", "raw,", "raw small"} {
		err := new(bench).choose(wrong)
		if err == nil || !strings.Contains(err.Error(), "these are all: raw,place,") {
			t.Errorf("%q: %v, want all names", wrong, err)
		}
	}
}
