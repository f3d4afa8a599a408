package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Until somebody looks, what is known of the machine at the start is shown.
func TestWhatIsKnownOfTheHostAtFirst(t *testing.T) {
	t.Parallel()
	measured := hostinfo.Measured{CoreMFLOPS: 7, Steady: true}
	h := newHost(Host{
		Machine:  hostinfo.Machine{MemoryBytes: 1, FreeMemory: 2, DiskBytes: 3, FreeDiskBytes: 4},
		Measured: measured, Pending: "not yet",
	}, capability())
	want := hostinfo.Room{MemoryBytes: 1, FreeMemory: 2, DiskBytes: 3, FreeDiskBytes: 4}
	if h.room != want || h.known() != measured || h.pending != "not yet" {
		t.Errorf("room %+v, measured %+v, pending %q", h.room, h.known(), h.pending)
	}
	nominal, left := h.now()
	for _, c := range []grid.Capability{nominal, left, h.told, h.ceilings()} {
		if diff := cmp.Diff(capability(), c); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	less, seen := capability(), hostinfo.Room{FreeMemory: 9}
	less.Total.MilliCPUs = 1
	h.see(less, seen)
	if nominal, left = h.now(); left.Total.MilliCPUs != 1 || nominal.Total.MilliCPUs != 2000 ||
		h.room != seen {
		t.Errorf("seen: nominal %+v, left %+v, room %+v", nominal, left, h.room)
	}
	h.measure(less, hostinfo.Measured{DiskBps: 5})
	if nominal, left = h.now(); nominal.Total.MilliCPUs != 1 || left.Total.MilliCPUs != 1 ||
		h.told.Total.MilliCPUs != 1 || h.known().DiskBps != 5 {
		t.Errorf("measured: nominal %+v, left %+v, told %+v, %+v", nominal, left, h.told, h.known())
	}
}

// Nothing is measured in the owner's way: while the owner needs the machine, before anybody has
// looked, and while others work. Where nobody looks, or jobs do not yield, nobody is asked.
func TestWhenToMeasureIsInTheOwnersWay(t *testing.T) {
	t.Parallel()
	quiet := yield.Sample{At: time.UnixMilli(1), Cores: 4, Others: yield.Measured(0)}
	busy := quiet
	busy.Others = yield.Measured(4)
	for _, c := range []struct {
		name   string
		yields bool
		report owner.Report
		want   bool
		why    string
	}{
		{
			"the owner is there", false,
			owner.Report{State: owner.State{Reason: grid.ReasonOwnerBusy, Why: "typing"}},
			true, "typing",
		},
		{"jobs do not yield", false, owner.Report{Sample: busy}, false, ""},
		{"nobody can look", true, owner.Report{Blind: true}, false, ""},
		{"nobody has looked", true, owner.Report{}, true, "nobody has looked at it yet"},
		{"quiet", true, owner.Report{Sample: quiet}, false, ""},
		{"busy", true, owner.Report{Sample: busy}, true, "cores"},
	} {
		a := &Agent{}
		a.inForce.terms.Owner.Yield = c.yields
		got, why := a.ownerWants(c.report)
		if got != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %t, %q; want %t, %q", c.name, got, why, c.want, c.why)
		}
	}
}

// The owner's rules are those in force, or the default ones.
func TestTheRulesInForce(t *testing.T) {
	t.Parallel()
	a := &Agent{}
	if got := a.rules(); got != yield.DefaultRules() {
		t.Errorf("rules %+v, want the default ones", got)
	}
	own := yield.DefaultRules()
	own.Looks = 77
	a.inForce.terms.Owner.Rules = own
	if got := a.rules(); got != own {
		t.Errorf("rules %+v, want the owner's", got)
	}
}

// A measurement that does not succeed is repeated after a pause that doubles from a minute to an
// hour, and says what was wrong meanwhile. Who waits for a quiet machine does not wait longer
// for it.
func TestMeasuringAgain(t *testing.T) {
	nowhere := t.TempDir() + "/nowhere"
	synctest.Test(t, func(t *testing.T) {
		b := newBare(t)
		b.cfg.StateDir = nowhere
		b.cfg.Host = Host{
			Machine: hostinfo.Machine{FreeDiskBytes: -1}, Want: hostinfo.Want{Disk: true},
			Capability: func(hostinfo.Measured) grid.Capability { return capability() },
		}
		b.inForce.terms = b.cfg.terms()
		b.host = newHost(b.cfg.Host, capability())
		there := owner.Report{State: owner.State{Reason: grid.ReasonOwnerBusy, Why: "typing"}}
		b.measureHost(there)
		if b.host.pending != "waiting for a quiet machine: typing" || !b.host.again.IsZero() {
			t.Errorf("while the owner is there: %q, again at %s", b.host.pending, b.host.again)
		}
		tries := func() int { return b.said.count("the machine could not be measured") }
		for n := range 9 {
			want := min(firstPause<<n, longestPause)
			b.measureHost(owner.Report{})
			if tries() != n+1 || !strings.Contains(b.host.pending, "measure disk") {
				t.Fatalf("%d tries after %d, pending %q", tries(), n+1, b.host.pending)
			}
			time.Sleep(want - 1)
			b.measureHost(owner.Report{})
			if tries() != n+1 {
				t.Errorf("try %d is repeated before %s have passed", n+1, want)
			}
			time.Sleep(time.Nanosecond)
		}
		b.host.pending = ""
		known := hostinfo.Measured{DiskBps: 1}
		b.host.measured, b.host.again = known, time.Time{}
		b.measureHost(owner.Report{})
		b.host.measured, b.cfg.Host.Capability = hostinfo.Measured{}, nil
		b.measureHost(owner.Report{})
		if tries() != 9 || b.host.pending != "" {
			t.Errorf("what is known, or of no use, is measured: %q", b.host.pending)
		}
		b.settle(t)
		if n := len(heardOf[step.CapacityChanged](&b.ofSite)); n != 0 {
			t.Errorf("told %d times though nothing was measured", n)
		}
	})
}

// While jobs work nothing is measured again beside them; where no speed is known at all, it is.
func TestJobsAreNotMeasuredBeside(t *testing.T) {
	for _, c := range []struct {
		name      string
		job       *work
		core      int64
		wantTried bool
	}{
		{"a job works", &work{state: workRunning}, 1, false},
		{"a job is being started", &work{state: workStarting}, 1, false},
		{"a job is suspended", &work{state: workRunning, suspended: true}, 1, true},
		{"a job has ended", &work{state: workEnded}, 1, true},
		{"no speed is known", &work{state: workRunning}, 0, true},
	} {
		config := plans(t, 2)[1]
		config.Host.Machine.FreeDiskBytes, config.Host.Want = -1, hostinfo.Want{Disk: true}
		config.Host.Capability = func(hostinfo.Measured) grid.Capability { return capability() }
		b := newBenchOf(t, config)
		b.host.measured.CoreMFLOPS = c.core
		b.work.mu.Lock()
		b.work.attempts[grid.AttemptID{}] = c.job
		b.work.mu.Unlock()
		b.measureHost(owner.Report{})
		if tried := !b.host.again.IsZero(); tried != c.wantTried {
			t.Errorf("%s: measured: %t, want %t", c.name, tried, c.wantTried)
		}
		b.work.mu.Lock()
		delete(b.work.attempts, grid.AttemptID{})
		b.work.mu.Unlock()
	}
}

// What was measured is told to both machines and in force; a disk's speed says nothing about
// how steady a core's is. What makes no sense is not told.
func TestWhatWasMeasuredIsTold(t *testing.T) {
	var said sentence
	c := plans(t, 2)[1]
	c.Log = logged(&said, 0)
	c.Host.Machine.FreeDiskBytes, c.Host.Want = -1, hostinfo.Want{Disk: true}
	sense := false
	c.Host.Capability = func(m hostinfo.Measured) grid.Capability {
		out := capability()
		out.DiskBps = m.DiskBps
		if !sense {
			out.DiskBps = -1
		}
		return out
	}
	b := newBenchOf(t, c)
	b.measureHost(owner.Report{})
	if said.count("what was measured makes no sense") != 1 ||
		b.host.ceilings().DiskBps != c.Capability.DiskBps {
		t.Errorf("nonsense: %+v: %s", b.host.ceilings(), said.String())
	}
	sense = true
	b.host.again = time.Time{}
	b.measureHost(owner.Report{})
	k := b.Known()
	if k.Pending != "" || k.Nominal.DiskBps <= 0 || k.Left.DiskBps != k.Nominal.DiskBps {
		t.Errorf("known %+v", k)
	}
	told := await[step.CapacityChanged](b)
	if told.Capability.DiskBps != k.Nominal.DiskBps || told.Left != nil {
		t.Errorf("the site is told %+v", told)
	}
	eventually(t, "the submitter's machine is told", func() bool {
		return len(heardOf[step.CapacityChanged](&b.ofBroker)) == 1
	})
}

// What others leave is told to the site when it changes by much, within the nominal, and is
// shown in any case. Where jobs yield, what others use is not offered; where they do not, it is
// shared.
func TestWhatOthersLeaveIsTold(t *testing.T) {
	for _, yields := range []bool{true, false} {
		c := plans(t, 2)[1]
		c.Owner.Yield, c.Owner.Root = yields, t.TempDir()
		c.Host.Machine.Cores = 2
		// So little of the rest that this machine has it at all times.
		c.Capability.Total.MemoryBytes, c.Capability.Total.DiskBytes = 1<<20, 1<<20
		b := newBenchOf(t, c)
		none := yield.Sample{Others: yield.Measured(0)}
		b.lookAtHost(none)
		told := func() []step.CapacityChanged {
			if err := b.site.ask(t.Context(), func() {}); err != nil {
				t.Fatal(err)
			}
			return list[step.CapacityChanged](b)
		}
		before := len(told()) // memory and disk may be short here
		b.lookAtHost(none)
		if n := len(told()); n != before {
			t.Errorf("told %d times what did not change", n)
		}
		k := b.Known()
		if k.Room.MemoryBytes <= 0 || k.Room.DiskBytes <= 0 || k.Left.Total.MilliCPUs != 2000 {
			t.Errorf("left %+v, room %+v", k.Left, k.Room)
		}
		b.lookAtHost(yield.Sample{Others: yield.Measured(2)}) // of two cores, as the machine says
		all := told()
		if len(all) != before+1 {
			t.Fatalf("told %d times, want once more", len(all))
		}
		last := all[len(all)-1]
		if last.Left == nil || last.Capability.Total.MilliCPUs != 2000 ||
			(last.Left.Total.MilliCPUs == 0) != yields || last.Left.Total.MFLOPS >= 8000 {
			t.Errorf("yields %t: told %+v, left %+v", yields, last.Capability, last.Left)
		}
		if left := b.Known().Left.Total; left != last.Left.Total {
			t.Errorf("shown is %+v, told %+v", left, last.Left.Total)
		}
		b.lookAtHost(yield.Sample{Cores: 100, Others: yield.Measured(2)}) // of a hundred
		if last = told()[before+1]; last.Left.Total.MilliCPUs != 2000 {
			t.Errorf("with more cores: told %+v", last.Left)
		}
	}
}
