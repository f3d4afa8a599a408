package owner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// machine is a /proc of four processors that a test turns on.
type machine struct {
	t       *testing.T
	root    string
	files   map[string]*os.File
	noPSI   bool
	others  float64 // cores in use
	jobs    float64
	memory  float64 // share of the time in which something waits for memory
	io      float64
	ticks   float64
	waits   [pressures]float64
	mu      sync.Mutex
	used    time.Duration // guarded by mu
	working bool          // guarded by mu
}

func newMachine(t *testing.T, noPSI bool) *machine {
	t.Helper()
	m := &machine{
		t: t, root: t.TempDir(), files: make(map[string]*os.File), noPSI: noPSI, working: true, jobs: 1,
	}
	for _, dir := range []string{"proc/pressure", "proc/self"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.pass(0)
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	f := m.files[name]
	if f == nil {
		var err error
		if f, err = os.Create(filepath.Join(m.root, name)); err != nil {
			m.t.Fatal(err)
		}
		m.t.Cleanup(func() { f.Close() })
		m.files[name] = f
	}
	const width = 300 // of every file: a reader meanwhile finds a whole one
	if _, err := f.WriteAt([]byte(text+strings.Repeat("\n", width-len(text))), 0); err != nil {
		m.t.Fatal(err)
	}
}

// pass lets the counters grow as they would in a time.
func (m *machine) pass(d time.Duration) {
	m.t.Helper()
	m.ticks += (m.others + m.jobs) * d.Seconds() * 100
	m.mu.Lock()
	m.used += time.Duration(m.jobs * float64(d))
	m.mu.Unlock()
	// A tenth of it is stolen by the host's other guests, half is the system's.
	m.write("proc/stat", fmt.Sprintf("cpu  %d 0 %d 999999 55 0 0 %d 7 0\n"+
		"cpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\nintr 1 2 3\n",
		int64(m.ticks*.4), int64(m.ticks*.5), int64(m.ticks*.1)))
	m.write("proc/loadavg", fmt.Sprintf("%.2f 1.00 1.00 3/200 999\n", m.others+m.jobs))
	if m.noPSI {
		return
	}
	m.waits[pressureMemory] += m.memory * d.Seconds() * 1e6
	m.waits[pressureIO] += m.io * d.Seconds() * 1e6
	m.waits[pressureCPU] += min((m.others+m.jobs)/4, 1) * d.Seconds() * 1e6
	for i, name := range pressureNames() {
		m.write("proc/pressure/"+name, fmt.Sprintf(
			"some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"+
				"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", int64(m.waits[i])))
	}
}

func (m *machine) use() Use {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Use{CPU: m.used, Known: true, Live: true, Working: m.working}
}

// work says whether jobs have work to do, also while somebody looks.
func (m *machine) work(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working = on
}

// after lets time pass and the counters grow with it, until a state comes; false
// if none does.
func (m *machine) after(states <-chan State, limit time.Duration) (State, time.Duration, bool) {
	began := time.Now()
	for time.Since(began) < limit {
		select {
		case s := <-states:
			return s, time.Since(began), true
		default:
		}
		time.Sleep(100 * time.Millisecond)
		m.pass(100 * time.Millisecond)
	}
	return State{}, limit, false
}

// watching runs a watcher in the bubble.
func watching(t *testing.T, cfg Config) (*Watcher, <-chan State) {
	t.Helper()
	w := New(cfg)
	states := make(chan State, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, func(s State) { states <- s }) }()
	t.Cleanup(func() { cancel(); <-done })
	return w, states
}

func TestOwnerComesAndGoes(t *testing.T) {
	for _, noPSI := range []bool{false, true} {
		t.Run(fmt.Sprintf("without pressure %t", noPSI), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, noPSI)
				w, states := watching(t, Config{
					Root: m.root, Yield: true, Rules: yield.DefaultRules(), Use: m.use,
				})
				if how := w.Report().How; strings.Contains(how, "load") != noPSI ||
					!strings.Contains(how, "4 processors") {
					t.Errorf("how = %q", how)
				}
				m.jobs = 3.9 // alone
				if s, took, changed := m.after(states, time.Minute); changed {
					t.Fatalf("yielded to its own jobs after %s: %+v", took, s)
				}
				m.others, m.jobs = 4, 0
				s, took, changed := m.after(states, time.Minute)
				if !changed || s.Reason != grid.ReasonOwnerBusy || took > 2*time.Second || s.Why == "" {
					t.Fatalf("%+v after %s, changed %t", s, took, changed)
				}
				if r := w.Report(); r.State.Reason != grid.ReasonOwnerBusy || !r.Sample.Others.Known ||
					r.Sample.Others.Value < 2 || r.Looks == 0 {
					t.Errorf("report %+v", r)
				}
				m.work(false)
				m.others = 0
				s, took, changed = m.after(states, time.Minute)
				if !changed || s.Reason != grid.ReasonNone || took < 9*time.Second {
					t.Errorf("%+v after %s, changed %t", s, took, changed)
				}
			})
		})
	}
}

// Without yielding, the machine is watched only when somebody wants to know.
func TestWatchingAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, false)
		w, states := watching(t, Config{
			Root: m.root, Watch: true, Rules: yield.DefaultRules(), Use: m.use,
		})
		m.others, m.jobs = 3, 1
		if s, _, changed := m.after(states, time.Minute); changed {
			t.Fatalf("yielded: %+v", s)
		}
		r := w.Report()
		if !strings.Contains(r.How, "owner.yield is false") || !strings.Contains(r.How, "watching 4") {
			t.Errorf("how = %q", r.How)
		}
		// The tenth of everything is stolen.
		if mean := r.Mean; !near(mean.Others, 3) || !near(mean.Stolen, .4) || !mean.Memory.Known {
			t.Errorf("mean %+v", mean)
		}
		if busy, why := InTheWay(r.Mean, yield.DefaultRules()); !busy || why == "" {
			t.Errorf("one more core is in nobody's way: %q", why)
		}
		m.others = 0
		m.after(states, time.Second)
		if mean := w.Report().Mean; mean.Others.Value < 2 || mean.Others.Value > 2.99 {
			t.Errorf("mean %+v a second after others left", mean)
		}
		m.after(states, time.Minute)
		if busy, why := InTheWay(w.Report().Mean, yield.DefaultRules()); busy {
			t.Errorf("one more core is in the way: %s", why)
		}
	})
}

func near(r yield.Reading, want float64) bool {
	return r.Known && r.Value > want-.1 && r.Value < want+.1
}

func TestGlance(t *testing.T) {
	m := newMachine(t, false)
	if busy, why := Glance(t.Context(), m.root, yield.DefaultRules(), time.Millisecond); busy {
		t.Errorf("nothing moves, and yet: %s", why)
	}
	if busy, why := Glance(t.Context(), t.TempDir(), yield.DefaultRules(), time.Millisecond); busy {
		t.Errorf("nothing is told, and yet: %s", why)
	}
}

func TestPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, false)
		_, states := watching(t, Config{
			Root: m.root, Yield: true, Rules: yield.DefaultRules(), Use: m.use,
		})
		m.io = .9 // perhaps of jobs, which give way there
		if s, took, changed := m.after(states, 20*time.Second); changed {
			t.Fatalf("yielded after %s: %+v", took, s)
		}
		m.work(false) // certainly of others
		if s, _, changed := m.after(states, 5*time.Second); !changed || !strings.Contains(s.Why, "disk") {
			t.Fatalf("%+v, changed %t", s, changed)
		}
		m.io = 0
		m.after(states, 20*time.Second)
		m.work(true)
		m.memory = .5 // hurts every process
		if s, _, changed := m.after(states, 5*time.Second); !changed ||
			!strings.Contains(s.Why, "memory") {
			t.Fatalf("%+v, changed %t", s, changed)
		}
	})
}

func TestHoursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		hours, err := yield.ParseHours("00:00-00:02, 00:03-00:04")
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{
			Root: t.TempDir(), Rules: yield.DefaultRules(), Hours: hours,
			Now: func() time.Time { return time.Now().UTC() },
		}
		w, states := watching(t, cfg)
		time.Sleep(119 * time.Second)
		if len(states) != 0 {
			t.Fatal("closed within its hours")
		}
		time.Sleep(2 * time.Second)
		if s := <-states; s.Reason != grid.ReasonOwnerHours || !strings.Contains(s.Why, "00:00-00:02") {
			t.Errorf("state %+v", s)
		}
		time.Sleep(time.Minute)
		if s := <-states; s.Reason != grid.ReasonNone {
			t.Errorf("state %+v", s)
		}
		if how := w.Report().How; !strings.Contains(how, "owner.yield") {
			t.Errorf("how = %q", how)
		}
	})
}

// Files that are missing, cut off or full of nonsense: unknown, and no zero.
func TestUnknownIsUnknown(t *testing.T) {
	m := newMachine(t, false)
	for name, text := range map[string]string{
		"empty": "", "cut": "cpu  1 2 3", "words": "cpu a b c d e f g h\ncpu0\n", "other": "intr 5\n",
	} {
		if got, stolen := busyTime([]byte(text)); got != -1 || stolen != -1 {
			t.Errorf("%s: %s, stolen %s, want unknown", name, got, stolen)
		}
	}
	m.write("proc/pressure/io", "some avg10=0.00 total=\n")
	m.write("proc/pressure/cpu", "nothing")
	p, err := newProbe(m.root)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c := p.read(time.Now())
	if c.pressure[pressureIO] != -1 || c.pressure[pressureCPU] != -1 ||
		c.pressure[pressureMemory] < 0 {
		t.Errorf("pressure %v", c.pressure)
	}
	if how := p.how(); !strings.Contains(
		how, "pressure on memory; this kernel does not report it on cpu and io",
	) {
		t.Errorf("how = %q", how)
	}
	before := counts{at: time.Unix(1, 0), busy: 100}
	after := counts{at: time.Unix(2, 0), busy: 50}
	if s := difference(4, before, after, Use{Known: true}, Use{Known: true}); s.Others.Known {
		t.Errorf("counters went back and gave %+v", s)
	}
	after.busy = 150
	if s := difference(4, before, after, Use{}, Use{Known: true}); s.Others.Known {
		t.Errorf("the own use is unknown, that of others is %+v", s.Others)
	}
	w := New(Config{Root: t.TempDir(), Yield: true, Rules: yield.DefaultRules()})
	if how := w.Report().How; !strings.Contains(how, "does not report") {
		t.Errorf("how = %q", how)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx, func(State) { t.Error("a state of nothing") })
}

// The owner's rules change while the watcher runs: each takes effect at the next look.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := yield.DefaultRules()
		w, states := watching(t, Config{Root: t.TempDir(), Rules: rules})
		closed, err := yield.ParseHours("mon 01:00-01:01") // the bubble begins on a Saturday
		if err != nil {
			t.Fatal(err)
		}
		w.Change(Config{Rules: rules, Hours: closed})
		if s := <-states; s.Reason != grid.ReasonOwnerHours || s.Why != "shared "+closed.String() {
			t.Errorf("outside of the hours: %+v", s)
		}
		w.Change(Config{Yield: true, Rules: rules})
		if s := <-states; s.Reason != grid.ReasonNone {
			t.Errorf("at any hour: %+v", s)
		}
		if how := w.Report().How; !strings.Contains(how, "does not report") {
			t.Errorf("how = %q, want why this machine cannot be watched", how)
		}
	})
}

func TestOwnGroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n":                           "",
		"0::/user.slice/session-3.scope\n": "",
		"1:cpu:/x\n0::/system.slice/mrs.service\n": "sys/fs/cgroup/system.slice/mrs.service",
		"0::/user.slice/user-7.slice/user@7.service/app.slice/mrs.service/mrs-agent\n": "sys/fs/cgroup/" +
			"user.slice/user-7.slice/user@7.service/app.slice/mrs.service",
		"0::/user.slice/user-7.slice/user@7.service/session.slice\n": "",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "proc/self"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/self/cgroup"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ownGroup(root); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestCost looks at the real machine: the goal is a thousandth of a processor.
func TestCost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is nothing to look at on " + runtime.GOOS)
	}
	p, err := newProbe("/")
	if err != nil {
		t.Skip(err)
	}
	defer p.close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	judge := yield.New(yield.DefaultRules())
	var before counts
	var used Use
	const looks = 400
	began := processorTime()
	for i := range looks {
		self, known := SelfTime()
		now, use := p.read(time.Unix(int64(i), 0)), Use{CPU: self, Known: known}
		judge.Look(difference(p.cores, before, now, used, use))
		before, used = now, use
	}
	each := (processorTime() - began) / looks
	share := each.Seconds() / every.Seconds()
	t.Logf("%s; a look takes %s of processor time: %.4f %% of one processor", p.how(), each, 100*share)
	if share > .001 {
		t.Errorf("looking costs %.3f %% of a processor, want at most 0.1 %%", 100*share)
	}
}

// Who waits for the first look knows what it found: in the owner's hours nothing is offered for a
// moment at the start.
func TestTheFirstLookIsToldBeforeItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, err := yield.ParseHours("mon 01:00-01:01") // the bubble begins on a Saturday
		if err != nil {
			t.Fatal(err)
		}
		w := New(Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Hours: closed})
		ctx, cancel := context.WithCancel(t.Context())
		told, done := make(chan State, 1), make(chan struct{})
		go func() { defer close(done); w.Run(ctx, func(s State) { told <- s }) }()
		<-w.Looked()
		select {
		case s := <-told:
			if s.Reason != grid.ReasonOwnerHours {
				t.Errorf("told %+v, want the owner's hours", s)
			}
		default:
			t.Error("the first look is over, and nothing was told")
		}
		cancel()
		<-done
	})
}

// The share of the cores is told when it becomes another one, with the time until when it is so.
func TestTheShareOfTheHoursIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		hours, err := yield.ParseHours("00:00-00:01, 00:01-00:02 25%, 00:03-00:04 25%, 00:04-00:05")
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		watching(t, Config{
			Root: t.TempDir(), Rules: yield.DefaultRules(), Hours: hours,
			Now: func() time.Time { return time.Now().UTC() },
			Given: func(g yield.Given, until time.Time) {
				told = append(told, fmt.Sprintf("%d%% until %s", g.Cores, until.Format("15:04")))
			},
		})
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(told), "[25% until 00:02 100% until 00:05]"; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	})
}

// When the hours end is told once for each time, in the hours before it.
func TestTheEndOfTheHoursIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		hours, err := yield.ParseHours("00:00-00:02, 00:03-00:04")
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		watching(t, Config{
			Root: t.TempDir(), Rules: yield.DefaultRules(), Hours: hours,
			Now:  func() time.Time { return time.Now().UTC() },
			Ends: func(at time.Time) { told = append(told, at.Format("15:04")) },
		})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(told), "[00:02 00:00 00:04 00:00]"; got != want {
			t.Errorf("told %s, want %s; 00:00 is that of no time", got, want)
		}
	})
}
