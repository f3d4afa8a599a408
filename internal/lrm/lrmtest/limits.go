package lrmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func limitCases() []testCase {
	return []testCase{
		{name: "stop an endless loop", test: testStop},
		{name: "stop before the start is done", test: testStopEarly},
		{name: "time limit", test: testWallTime},
		{name: "memory limit", test: testMemory},
		{name: "output limit", test: testOutput},
		{name: "disk limit, one file", test: diskCase("one")},
		{name: "disk limit, many files", test: diskCase("many")},
		{name: "disk limit, a hole", test: diskCase("hole")},
		{name: "disk limit, files without names", attack: true, test: testChurn},
	}
}

func testStop(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	p := b.start(t, a)
	Until(t, "the loop is entered", Patience, func() bool { return size(a.StdoutPath()) > 0 })
	began := time.Now()
	if err := p.Stop("no longer wanted"); err != nil {
		t.Fatal(err)
	}
	r := Wait(t, p)
	wantCause(t, r, grid.CauseStopped)
	if !strings.Contains(r.Exit.Text, "no longer wanted") {
		t.Errorf("text = %q, want the reason", r.Exit.Text)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func testStopEarly(t *testing.T, b *bench) {
	p := b.start(t, b.attempt(t, "spin"))
	if err := p.Stop("right away"); err != nil {
		t.Fatal(err)
	}
	wantCause(t, Wait(t, p), grid.CauseStopped)
}

func testWallTime(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	a.Limits.WallTime = 300 * time.Millisecond
	r := b.run(t, a)
	wantCause(t, r, grid.CauseTimeLimit)
	if r.Exit.Wall < a.Limits.WallTime {
		t.Errorf("wall = %s, want at least the limit %s", r.Exit.Wall, a.Limits.WallTime)
	}
}

func testMemory(t *testing.T, b *bench) {
	wantCause(t, b.run(t, b.attempt(t, "hog", "slowly")), grid.CauseMemory)
}

func testOutput(t *testing.T, b *bench) {
	a := b.attempt(t, "flood")
	r := b.run(t, a)
	wantCause(t, r, grid.CauseOutput)
	if got := int64(len(Text(t, r.Stdout))); got != a.Limits.OutputBytes {
		t.Errorf("kept %d bytes, want the limit %d", got, a.Limits.OutputBytes)
	}
}

func diskCase(way string) func(t *testing.T, b *bench) {
	return func(t *testing.T, b *bench) {
		a := b.attempt(t, "fill", way, "/out/file")
		a.OutputPaths = []string{"/out/file"}
		r := b.run(t, a)
		wantCause(t, r, grid.CauseDisk)
		for _, f := range r.Outputs {
			if f.Bytes > a.Limits.DiskBytes {
				t.Errorf("left %d bytes, limit %d", f.Bytes, a.Limits.DiskBytes)
			}
		}
	}
}

func testChurn(t *testing.T, b *bench) {
	fill := b.attempt(t, "fill", "nameless", "/file")
	// Where the kernel bounds how many files are open, that may come first.
	if r := b.run(t, fill); !b.h.System || r.Exit.Cause != grid.CauseExited || r.Exit.Code == 0 {
		wantCause(t, r, grid.CauseDisk)
	}
	churn := b.attempt(t, "churn", "/file")
	wantExit(t, b.run(t, churn), 0)
}

func leaseCases() []testCase {
	return []testCase{
		{name: "lease end freezes, a new lease resumes", test: testFreeze},
		{name: "lease over before the start", test: testLeaseOver},
		{name: "suspended, it is frozen whatever its lease says", test: testSuspend},
		{name: "stop while suspended", test: testStopSuspended},
		{name: "stop while frozen", test: testStopFrozen},
		{name: "frozen time does not count", test: testFrozenTime},
		{name: "held to its share of the processors", attack: true, test: testShare},
		{name: "agent killed", agent: true, test: testAgentKilled},
		{name: "agent stopped", agent: true, test: testAgentStopped},
		{
			name: "agent killed while its attempt is suspended", agent: true, test: testAgentKilledSuspended,
		},
		{
			name: "agent stopped while its attempt is suspended", agent: true,
			test: testAgentStoppedSuspended,
		},
	}
}

// stands reports whether a file's size stays the same for a while.
func stands(path string, during time.Duration) bool {
	before := size(path)
	<-time.After(during)
	return size(path) == before
}

func testFreeze(t *testing.T, b *bench) {
	a := b.attempt(t, "tick", "60")
	p := b.start(t, a)
	Until(t, "the program prints", Patience, func() bool { return size(a.StdoutPath()) > 0 })
	lease := lrm.BootNow().Add(50 * time.Millisecond)
	if err := p.SetLease(lease); err != nil {
		t.Fatal(err)
	}
	if e := await(t, p, lrm.Frozen); e.At < lease || e.At.Sub(lease) > 2*time.Second {
		t.Errorf("frozen %s after the lease's end", e.At.Sub(lease))
	}
	Until(t, "a frozen program prints nothing", Patience, func() bool {
		return stands(a.StdoutPath(), 100*time.Millisecond)
	})
	if !stands(a.StdoutPath(), 200*time.Millisecond) {
		t.Error("a frozen program printed")
	}
	if err := p.SetLease(lrm.BootNow().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Resumed)
	r := Wait(t, p)
	wantExit(t, r, 0)
	if got := strings.Count(Text(t, r.Stdout), "tick"); got != 60 {
		t.Errorf("%d ticks, want 60", got)
	}
	wantEvents(t, b.record, lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordResumed, lrm.RecordEnded)
}

func wantEvents(t *testing.T, record string, want ...lrm.RecordEvent) {
	t.Helper()
	records, err := lrm.ReadRecords(record)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted []string
	for _, rec := range records {
		got = append(got, string(rec.Event))
	}
	for _, w := range want {
		wanted = append(wanted, string(w))
	}
	if strings.Join(got, " ") != strings.Join(wanted, " ") {
		t.Errorf("records = %v, want %v", got, wanted)
	}
}

func testLeaseOver(t *testing.T, b *bench) {
	a := b.attempt(t, "exit", "0")
	a.LeaseUntil = lrm.BootNow()
	wantCause(t, b.run(t, a), grid.CauseStopped)
	wantEvents(t, b.record)
}

func testStopFrozen(t *testing.T, b *bench) {
	p := b.start(t, b.attempt(t, "spin"))
	await(t, p, lrm.Started)
	if err := p.SetLease(lrm.BootNow()); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Frozen)
	if err := p.Stop("frozen for too long"); err != nil {
		t.Fatal(err)
	}
	wantCause(t, Wait(t, p), grid.CauseStopped)
}

func testFrozenTime(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	a.Limits.WallTime = time.Second
	p := b.start(t, a)
	await(t, p, lrm.Started)
	if err := p.SetLease(lrm.BootNow()); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Frozen)
	began := time.Now()
	<-time.After(1200 * time.Millisecond)
	if err := p.SetLease(lrm.BootNow().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Resumed)
	r := Wait(t, p)
	wantCause(t, r, grid.CauseTimeLimit)
	if frozen := time.Since(began); r.Exit.Wall < time.Second || r.Exit.Wall > frozen {
		t.Errorf("wall = %s, want at least 1s, without the frozen time", r.Exit.Wall)
	}
}

// testSuspend: neither a lease nor time lets a suspended attempt run on.
func testSuspend(t *testing.T, b *bench) {
	a := b.attempt(t, "tick", "60")
	p := b.start(t, a)
	Until(t, "the program prints", Patience, func() bool { return size(a.StdoutPath()) > 0 })
	for range 2 { // said twice, it counts once
		if err := p.Suspend(true); err != nil {
			t.Fatal(err)
		}
	}
	await(t, p, lrm.Frozen)
	Until(t, "a suspended program prints nothing", Patience, func() bool {
		return stands(a.StdoutPath(), 100*time.Millisecond)
	})
	if err := p.SetLease(lrm.BootNow().Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !stands(a.StdoutPath(), 300*time.Millisecond) {
		t.Error("a suspended program ran on with its new lease")
	}
	if err := p.Suspend(false); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Resumed)
	r := Wait(t, p)
	wantExit(t, r, 0)
	if got := strings.Count(Text(t, r.Stdout), "tick"); got != 60 {
		t.Errorf("%d ticks, want 60", got)
	}
	wantEvents(t, b.record, lrm.RecordStarted, lrm.RecordFrozen, lrm.RecordResumed, lrm.RecordEnded)
}

func testStopSuspended(t *testing.T, b *bench) {
	p := b.start(t, b.attempt(t, "spin"))
	await(t, p, lrm.Started)
	if err := p.Suspend(true); err != nil {
		t.Fatal(err)
	}
	await(t, p, lrm.Frozen)
	if err := p.Stop("the owner stays"); err != nil {
		t.Fatal(err)
	}
	wantCause(t, Wait(t, p), grid.CauseStopped)
	if err := p.Suspend(false); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// testShare: a program that would use a whole core gets the quarter that it asked
// for, on average.
func testShare(t *testing.T, b *bench) {
	a := b.attempt(t, "spin")
	a.Limits.MilliCPUs = 250
	p := b.start(t, a)
	meter, ok := p.(lrm.Meter)
	if !ok {
		t.Skip("the adapter does not tell what an attempt uses")
	}
	await(t, p, lrm.Started)
	Until(t, "the program runs", Patience, func() bool { return size(a.StdoutPath()) > 0 })
	before, known := meter.CPUTime()
	if !known {
		t.Skip("this system does not tell what a process uses")
	}
	most := .25*1.15 + .05 // the burst of 50 ms in three seconds, and its supervisor's own work
	if b.h.System {
		most += .15 // which is more where it looks at files and processes
	}
	began := time.Now()
	<-time.After(3 * time.Second)
	share := 0.0
	Until(t, "the share is kept", Patience, func() bool { // a late pause is made up for
		after, _ := meter.CPUTime()
		share = (after - before).Seconds() / time.Since(began).Seconds()
		return share <= most
	})
	t.Logf("a program that may use 0.25 of a core used %.3f, want at most %.3f", share, most)
}
