package agent

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// The terms at the start are those of the configuration.
func TestTheTermsOfTheStart(t *testing.T) {
	t.Parallel()
	c := Config{
		Owner: Owner{Yield: true, Patience: time.Minute}, Closed: []avail.Window{{From: 1, To: 2}},
		MaxRuntime: time.Hour, Priced: true, Price: 3,
		Planning: Planning{Policy: "edf", Backfill: "easy", Ahead: time.Hour, Longest: time.Minute},
	}
	c.Data.UploadBps, c.Data.DownloadBps = 4, 5
	want := Terms{
		Owner: c.Owner, Closed: c.Closed, MaxRuntime: time.Hour, Priced: true, Price: 3,
		Policy: "edf", Backfill: "easy", Ahead: time.Hour, Longest: time.Minute,
		UploadBps: 4, DownloadBps: 5,
	}
	if diff := cmp.Diff(want, c.terms()); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
}

// While somebody uses the machine the lower caps on data count.
func TestCapsWhileSomebodyIsThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ always, inUse, want int64 }{
		{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 9, 5}, {9, 5, 5},
	} {
		terms := Terms{UploadBps: c.always, DownloadBps: 7}
		terms.Owner.InUse.UploadBps = c.inUse
		if up, down := terms.caps(true); up != c.want || down != 7 {
			t.Errorf("%+v: caps of %d and %d, want %d and 7", c, up, down, c.want)
		}
		if up, down := terms.caps(false); up != c.always || down != 7 {
			t.Errorf("%+v: caps of %d and %d while nobody is there", c, up, down)
		}
	}
}

// Of what the owner changes the machines are told what concerns them, each time; the order of
// those that wait only when it changed, and the ceilings likewise. Where the machine's proc and
// sys are stays as it was.
func TestTheMachinesAreToldOfNewTerms(t *testing.T) {
	c := plans(t, 2)[1]
	c.Owner.Root = t.TempDir()
	b := newBenchOf(t, c)
	terms := b.Terms()
	terms.Owner.Root = "/elsewhere"
	terms.MaxRuntime, terms.Owner.Patience, terms.Ahead, terms.Longest = 1, 2, 3, 4
	terms.Priced, terms.Price, terms.Signers = true, 5, []grid.Signer{{Key: NewPen(t).Public}}
	same := c.Capability
	terms.Capability = func(hostinfo.Measured) grid.Capability { return same }
	change := func() {
		t.Helper()
		if err := b.Change(t.Context(), terms); err != nil {
			t.Fatal(err)
		}
	}
	change()
	want := []step.TermsChanged{{
		MaxRuntime: 1, Patience: 2, Ahead: 3, Longest: 4, Priced: true, Price: 5,
		Signers: terms.Signers,
	}}
	if diff := cmp.Diff(want, list[step.TermsChanged](b)); diff != "" {
		t.Errorf("the site is told (-want +got):\n%s", diff)
	}
	if n := len(list[step.AvailabilityLearned](b)); n != 2 {
		t.Errorf("it learned %d times, want at the start and with the change", n)
	}
	if b.Terms().Owner.Root != c.Owner.Root {
		t.Errorf("the machine's files are in %s now", b.Terms().Owner.Root)
	}
	if p, k := list[step.PlanningChanged](b), list[step.CapacityChanged](b); len(p)+len(k) != 0 {
		t.Errorf("told of what did not change: %+v, %+v", p, k)
	}
	select {
	case <-b.host.lookNow:
		t.Error("what others leave is to be looked at though nothing changed")
	default:
	}
	terms.Backfill = "easy"
	change()
	terms.Policy = "edf"
	change()
	change()
	wantPlanning := []step.PlanningChanged{
		{Policy: "fcfs", Backfill: "easy"}, {Policy: "edf", Backfill: "easy"},
	}
	if got := list[step.PlanningChanged](b); !slices.Equal(got, wantPlanning) {
		t.Errorf("the order is told as %+v, want %+v", got, wantPlanning)
	}
	same.Total.MilliCPUs = 500
	change()
	if err := b.broker.ask(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	for _, told := range [][]step.CapacityChanged{
		list[step.CapacityChanged](b), heardOf[step.CapacityChanged](&b.ofBroker),
	} {
		if len(told) != 1 || told[0].Capability.Total.MilliCPUs != 500 || told[0].Left != nil {
			t.Errorf("the new ceilings are told as %+v", told)
		}
	}
	select {
	case <-b.host.lookNow:
	default:
		t.Error("what others leave of the new ceilings is not looked at")
	}
	same.Total.MilliCPUs = 600
	change()
	same.Total.MilliCPUs = 700 // nobody has looked meanwhile
	change()
	if got := b.Known().Nominal.Total.MilliCPUs; got != 700 {
		t.Errorf("%d thousandths of a core are given", got)
	}
	terms.Capability = nil
	change()
	if got := b.Known().Nominal.Total.MilliCPUs; got != 700 {
		t.Errorf("%d thousandths of a core are given where nothing is said of it", got)
	}
}

// The owner's new hours and caps count from then on.
func TestNewHoursCount(t *testing.T) {
	c := plans(t, 2)[1]
	b := newBenchOf(t, c)
	terms := b.Terms()
	day := strings.ToLower(time.Now().Add(-48 * time.Hour).Format("Mon"))
	hours, err := yield.ParseHours(day + " 01:00-01:01")
	if err != nil {
		t.Fatal(err)
	}
	terms.Owner.Hours = hours
	if err := b.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	if busy := await[step.OwnerBusy](b); busy.Reason != grid.ReasonOwnerHours || busy.Text == "" {
		t.Errorf("the site is told %+v", busy)
	}
	eventually(t, "that the owner is there is in the past", func() bool { return b.Known().Past.Busy })
	terms.Owner.Hours = yield.Hours{}
	if err := b.Change(t.Context(), terms); err != nil {
		t.Fatal(err)
	}
	await[step.OwnerAway](b)
	eventually(t, "that the owner left is in the past", func() bool { return !b.Known().Past.Busy })
}

// What was shown of a ceiling is replaced by what is told of the same one, for the same kind of
// work, and by nothing else.
func TestWallsAreReplaced(t *testing.T) {
	t.Parallel()
	a := &Agent{shown: []view.Wall{
		{Ceiling: "cores", Kind: "wasm", How: "a"},
		{Ceiling: "cores", Kind: "command", How: "b"},
		{Ceiling: "memory", Kind: "wasm", How: "c"},
	}}
	a.showWalls([]view.Wall{
		{Ceiling: "cores", Kind: "command", How: "new"}, {Ceiling: "disk", Kind: "wasm", How: "no"},
	})
	want := []view.Wall{
		{Ceiling: "cores", Kind: "wasm", How: "a"},
		{Ceiling: "cores", Kind: "command", How: "new"},
		{Ceiling: "memory", Kind: "wasm", How: "c"},
	}
	if diff := cmp.Diff(want, a.walls()); diff != "" {
		t.Errorf("walls (-want +got):\n%s", diff)
	}
	a.walls()[0].How = "by a reader"
	if diff := cmp.Diff(want, a.walls()); diff != "" {
		t.Errorf("a reader changed them (-want +got):\n%s", diff)
	}
}

// A trial has a directory for itself, which is gone afterwards; a wall that does not hold is
// said, and one that could not be tried, too. The trials end with the agent.
func TestTrialsOfWalls(t *testing.T) {
	var said sentence
	a := &Agent{log: logged(&said, 0), work: &workshop{dir: t.TempDir()}}
	a.work.a = a
	a.ctx, a.leave = context.WithCancelCause(t.Context())
	defer a.leave(nil)
	var dirs []string
	try := func(_ context.Context, dir string) (string, error) {
		dirs = append(dirs, dir)
		return "seen", nil
	}
	fails := func(context.Context, string) (string, error) { return "half", errForTest }
	a.cfg.Walls = []Wall{
		{View: view.Wall{Ceiling: "cores", Fault: "old"}, Try: try},
		{View: view.Wall{Ceiling: "upload"}},
		{View: view.Wall{Ceiling: "memory", Kind: "wasm"}, Try: fails},
		{View: view.Wall{Ceiling: "disk"}, Try: try},
	}
	a.shown = make([]view.Wall, len(a.cfg.Walls))
	a.tryWalls()
	want := []view.Wall{
		{Ceiling: "cores", Tried: true, Seen: "seen"},
		{},
		{Ceiling: "memory", Kind: "wasm", Tried: true, Seen: "half", Fault: errForTest.Error()},
		{Ceiling: "disk", Tried: true, Seen: "seen"},
	}
	if diff := cmp.Diff(want, a.walls()); diff != "" {
		t.Errorf("walls (-want +got):\n%s", diff)
	}
	if said.count("a ceiling may not hold") != 1 {
		t.Errorf("it says %s", said.String())
	}
	left, err := filepath.Glob(filepath.Join(a.work.dir, "*"))
	if len(dirs) != 2 || dirs[0] == dirs[1] || filepath.Dir(dirs[0]) != a.work.dir || len(left) != 0 {
		t.Errorf("trials in %q, left %q, %v", dirs, left, err)
	}
	a.work.dir = filepath.Join(a.work.dir, "nowhere")
	a.tryWalls()
	if fault := a.walls()[0].Fault; fault == "" || len(dirs) != 2 {
		t.Errorf("a trial without a directory: %q", fault)
	}
	a.work.dir = filepath.Dir(a.work.dir)
	a.shown = make([]view.Wall, len(a.cfg.Walls))
	a.leave(errStopped)
	a.tryWalls()
	if diff := cmp.Diff(make([]view.Wall, len(a.cfg.Walls)), a.walls()); diff != "" || len(dirs) != 3 {
		t.Errorf("%d trials, after the agent's end (-want +got):\n%s", len(dirs), diff)
	}
}
