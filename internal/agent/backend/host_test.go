package backend

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// TestErrorsInTheWordsOfTheAPI: each error has the cause that the API knows, and keeps its own.
func TestErrorsInTheWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	known := []error{
		view.ErrNotFound, view.ErrConflict, view.ErrTooLarge, view.ErrBusy, grid.ErrInvalid,
	}
	for err, want := range map[error]error{
		step.ErrNoSuchJob: view.ErrNotFound, data.ErrNotHeld: view.ErrNotFound,
		step.ErrNotEnded: view.ErrConflict, step.ErrAwaited: view.ErrConflict,
		step.ErrKeyUsed: view.ErrConflict, step.ErrTooManyJob: view.ErrTooLarge,
		data.ErrQuota: view.ErrTooLarge, data.ErrTooLarge: view.ErrTooLarge,
		data.ErrDiskFull: view.ErrBusy, step.ErrNoSpace: view.ErrBusy,
		data.ErrUnsupported: grid.ErrInvalid, io.ErrUnexpectedEOF: nil,
	} {
		got := userError(fmt.Errorf("so: %w", err))
		for _, cause := range known {
			if errors.Is(got, cause) != errors.Is(want, cause) {
				t.Errorf("%v is told as %v, want %v", err, got, want)
			}
		}
		if !errors.Is(got, err) {
			t.Errorf("%v is told as %v", err, got)
		}
	}
	if userError(nil) != nil {
		t.Error("no error is told as one")
	}
}

// TestMachineIsShown shows what is known, and leaves out what nobody knows.
func TestMachineIsShown(t *testing.T) {
	t.Parallel()
	if machineView(hostinfo.Machine{}, agent.Known{}) != nil {
		t.Error("a machine that nobody looked at is shown")
	}
	m := hostinfo.Machine{OS: "linux", Arch: "amd64", CPUModel: "c", Cores: 4}
	known := agent.Known{
		Room: hostinfo.Room{MemoryBytes: 1, FreeMemory: 0, DiskBytes: 2, FreeDiskBytes: 0},
		Owner: owner.Report{Mean: yield.Sample{
			Others: yield.Measured(1), Stolen: yield.Measured(2), CPU: yield.Measured(3),
			Memory: yield.Measured(4), IO: yield.Measured(5),
		}},
		Nominal: grid.Capability{CoreMFLOPS: 6, DiskBps: 7}, Left: grid.Capability{CoreMFLOPS: 8},
		Pending: "p",
	}
	wantJSON(t, "known", machineView(m, known), `{"os":"linux","arch":"amd64","cpu_model":"c",
		"cores":4,"memory_bytes":1,"free_memory_bytes":0,"disk_bytes":2,"free_disk_bytes":0,
		"core_mflops":6,"core_mflops_now":8,"disk_bps":7,"other_cores":1,"stolen_cores":2,
		"cpu_pressure":3,"memory_pressure":4,"io_pressure":5,"pending":"p"}`)
	unknown := agent.Known{Room: hostinfo.Room{FreeMemory: -1, FreeDiskBytes: -1}}
	wantJSON(t, "unknown", machineView(m, unknown),
		`{"os":"linux","arch":"amd64","cpu_model":"c","cores":4}`)
}

func TestOwnerIsShown(t *testing.T) {
	t.Parallel()
	hours, err := yield.ParseHours("mon-fri 18:00-24:00")
	if err != nil {
		t.Fatal(err)
	}
	terms := agent.Owner{Hours: hours, Hook: []string{"/ask", "x"}, Input: true}
	wantJSON(t, "busy", ownerView(terms, owner.Report{
		How: "h", State: owner.State{Reason: grid.ReasonOwnerBusy, Why: "w"}, Cost: 0.25,
		Sample: yield.Sample{Others: yield.Measured(1.5), Jobs: 2},
	}), `{"how":"h","hours":"mon-fri 18:00-24:00","busy":true,"why":"w","hook":"/ask","input":true,
		"other_cores":1.5,"job_cores":2,"cost_percent":25}`)
	wantJSON(t, "unknown", ownerView(agent.Owner{}, owner.Report{How: "h"}),
		`{"how":"h","busy":false}`)
}

func TestAvailabilityIsShown(t *testing.T) {
	t.Parallel()
	day := (24 * time.Hour).Seconds()
	got := availability(history.Known{
		Counts: history.Counts{
			Runs: 1, Suspends: 2, Jumps: 3, WrongClocks: 4, Disordered: 5, Damaged: 6, Unwritten: 7,
		},
		Busy: true,
		History: avail.History{Spans: []avail.Span{
			{Seconds: day, End: avail.EndCrash},
			{Seconds: day / 2, End: avail.EndLeft},
			{Seconds: day / 4, End: avail.EndLeft},
			{Seconds: day / 4, End: avail.EndOpen},
		}},
	}, []site.Outlook{{
		For: 90 * time.Minute, Up: 0.75, Sureness: avail.Sureness{Low: 0.5, High: 0.875, Days: 2},
	}})
	wantJSON(t, "availability", got, `{"outlook":[{"hours":1.5,"z":0.25,"low":0.125,"high":0.5,
		"sure":"unsure"}],"days":2,"crashes":1,"departures":2,"runs":1,"suspends":2,"clock_jumps":3,
		"wrong_clocks":4,"damaged":11,"unwritten":7,"owner_busy":true}`)
	wantJSON(t, "nothing", availability(history.Known{}, nil),
		`{"outlook":[],"days":0,"crashes":0,"departures":0,"runs":0}`)
}

// TestTheReferenceJob is of a kind that the site takes, and as large as its words say.
func TestTheReferenceJob(t *testing.T) {
	t.Parallel()
	r := referenceRequirement(grid.Capability{Kinds: []grid.WorkKind{grid.KindCommand}})
	if r.Kind != grid.KindCommand || referenceRequirement(grid.Capability{}).Kind != grid.KindWasm {
		t.Errorf("kind %v", r.Kind)
	}
	n := r.Need
	words := fmt.Sprintf("%d core, %d GFLOPS, %d MiB memory, %d MiB disk, %d MiB to fetch, %.0f h",
		n.MilliCPUs/1000, n.MFLOPS/1000, n.MemoryBytes>>20, n.DiskBytes>>20, r.Sources[0].Bytes>>20,
		r.Runtime.Hours())
	exact := grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 28, DiskBytes: 1 << 26, MFLOPS: 2000}
	if words != referenceJob || n != exact || r.Sources[0].Bytes != 1<<26 {
		t.Errorf("%+v is %q, want %q", r, words, referenceJob)
	}
}

// TestACheckIsShown: what arrived needs no remedy.
func TestACheckIsShown(t *testing.T) {
	t.Parallel()
	peer := p2p.Peer{Site: "s", Facts: p2p.Facts{Name: "ben"}}
	wantJSON(t, "arrived", checkResult(peer, protocol.Checked{
		Arrived: true, Distance: 0.5, Took: 1500 * time.Millisecond,
	}), `{"arrive":true,"site":"s","name":"ben","distance":0.5,"seconds":1.5}`)
	wantJSON(t, "not arrived", checkResult(peer, protocol.Checked{Text: "it is paused"}),
		`{"arrive":false,"site":"s","name":"ben","distance":0,"seconds":0,"reason":"it is paused",
		"remedy":"siteagent status says what this site gives and whether it is paused"}`)
}

func TestPhasesOfAttemptsHere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   site.AttemptStatus
		want view.Phase
	}{
		{site.AttemptStatus{Phase: "running"}, view.PhaseRunning},
		{site.AttemptStatus{Phase: "running", Suspended: true}, view.PhaseRunning},
		{site.AttemptStatus{Phase: "frozen"}, view.PhaseFrozen},
		{site.AttemptStatus{Phase: "frozen", Suspended: true}, view.PhaseSuspended},
		{site.AttemptStatus{Phase: "starting"}, view.PhaseStaging},
		{site.AttemptStatus{Phase: "running", Reserves: true}, view.PhaseOpen},
		{site.AttemptStatus{Phase: "running", Reserves: true, Planned: true}, view.PhaseHeld},
		{site.AttemptStatus{Phase: "staging", Planned: true}, view.PhaseStaging},
	} {
		if got := runningPhase(c.at); got != c.want {
			t.Errorf("%+v is shown as %s, want %s", c.at, got, c.want)
		}
	}
}

// TestNobodyIsConnected says what to do about it, by what the site knows of others.
func TestNobodyIsConnected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		members   int
		bootstrap []string
		text      string
		cause     string
	}{
		{0, nil, "no other site is in the domain yet", ""},
		{1, nil, "no other site is in the domain yet", ""},
		{
			2, nil, "no other site is connected",
			"none of the members has come, and bootstrap names none to dial",
		},
		{1, []string{"/a", "/b"}, "no other site is connected", "no site under bootstrap answers"},
		{2, []string{"/a", "/b"}, "no other site is connected", "no site under bootstrap answers"},
	} {
		b := &Backend{cfg: agent.Config{P2P: p2p.Config{Bootstrap: c.bootstrap}}}
		if n := b.lonely(c.members); n.Text != c.text || n.Cause != c.cause || n.Action == "" {
			t.Errorf("%d members, bootstrap %v: %+v", c.members, c.bootstrap, n)
		}
	}
}

func TestSitesThatAreDialledFirst(t *testing.T) {
	t.Parallel()
	b := &Backend{cfg: agent.Config{P2P: p2p.Config{
		Bootstrap: []string{"/ip4/1.2.3.4/tcp/5/p2p/far"},
	}}}
	for id, want := range map[grid.SiteID]bool{"far": true, "ar": false, "near": false} {
		if got := b.dialledFirst(id); got != want {
			t.Errorf("%s is dialled first: %v, want %v", id, got, want)
		}
	}
	if order(true) >= order(false) {
		t.Error("what comes first has no smaller number")
	}
	for addr, want := range map[string]bool{
		"/ip4/127.0.0.1/tcp/1": true, "/ip4/127.1.2.3/tcp/1": true, "/ip6/::1/tcp/1": true,
		"/ip4/12.7.0.1/tcp/1": false, "/ip6/::12/tcp/1": false,
	} {
		if isLoopback(addr) != want {
			t.Errorf("%s is loopback: %v, want %v", addr, !want, want)
		}
	}
}

// TestNamesakesAreToldApart by their IDs and where they are.
func TestNamesakesAreToldApart(t *testing.T) {
	t.Parallel()
	got := namesakes([]view.MemberRow{
		{Site: "a", Standing: "self", Connected: true},
		{Site: "b", Standing: "banned-here"},
		{Site: "c", Standing: "roster", Connected: true},
		{Site: "d", Standing: "roster"},
	})
	if want := "a (this site) and b (banned) and c (connected) and d (away)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
