package owner

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// The share of a time is the growth of the counters, also from 0; what is unknown at one of
// the moments, or went back, is unknown.
func TestTheDifferenceOfTwoLooks(t *testing.T) {
	none := [pressures]time.Duration{-1, -1, -1}
	at := func(second int64, busy, stolen time.Duration) counts {
		return counts{
			at: time.Unix(second, 0), busy: busy, stolen: stolen, pressure: none, own: none,
			load: yield.Measured(3),
		}
	}
	known := func(cpu time.Duration) Use { return Use{CPU: cpu, Known: true, Live: true} }
	unknown := yield.Reading{}
	for _, c := range []struct {
		name           string
		before, now    counts
		used, use      Use
		jobs           float64
		others, stolen yield.Reading
		load           yield.Reading
	}{
		{
			"from 0", at(1, 0, 0), at(3, 4*time.Second, time.Second), known(0), known(time.Second),
			.5, yield.Measured(1.5), yield.Measured(.5), unknown,
		},
		{
			"never busy", at(1, 0, 0), at(3, 0, 0), known(0), known(0),
			0, yield.Measured(0), yield.Measured(0), unknown,
		},
		{
			"nothing moves", at(1, 5, 5), at(3, 5, 5), known(7), known(7),
			0, yield.Measured(0), yield.Measured(0), unknown,
		},
		{
			"only jobs", at(1, 0, 0), at(2, time.Second, 0), known(0), known(2 * time.Second),
			2, yield.Measured(0), yield.Measured(0), unknown,
		},
		{
			"unknown before", at(1, -1, -1), at(2, 5, 5), known(0), known(0),
			0, unknown, unknown, unknown,
		},
		{
			"unknown now", at(1, 5, 5), at(2, -1, -1), known(0), known(0),
			0, unknown, unknown, yield.Measured(3),
		},
		{"back", at(1, 5, 5), at(2, 4, 4), known(9), known(8), 0, unknown, unknown, unknown},
		{
			"no own use", at(1, 0, 0), at(2, time.Second, time.Second),
			Use{},
			known(time.Second),
			0, unknown, yield.Measured(1), unknown,
		},
		{"no time", at(1, 0, 0), at(1, 5, 5), known(0), known(9), 0, unknown, unknown, unknown},
	} {
		s := difference(4, c.before, c.now, c.used, c.use)
		if s.Jobs != c.jobs || s.Others != c.others || s.Stolen != c.stolen || s.Load != c.load ||
			s.Cores != 4 || !s.Live || !s.At.Equal(c.now.at) {
			t.Errorf("%s: %+v, want %+v", c.name, s, c)
		}
	}
}

// Lack of memory counts, no matter who caused it; where jobs work the queues of processors and
// disks count without what is known to be the agent's own, or not at all.
func TestWhoWaits(t *testing.T) {
	at := func(all, own time.Duration) (c counts) {
		for i := range c.pressure {
			c.pressure[i], c.own[i] = all, own
		}
		return c
	}
	const second = time.Second
	unknown := yield.Reading{}
	for _, c := range []struct {
		name        string
		before, now counts
		working     bool
		io, memory  yield.Reading
	}{
		{"idle", at(0, 0), at(second, second), false, yield.Measured(.5), yield.Measured(.5)},
		{"own", at(0, 0), at(second, second/2), true, yield.Measured(.25), yield.Measured(.5)},
		{"own from 0 to 0", at(0, 0), at(second, 0), true, yield.Measured(.5), yield.Measured(.5)},
		{"own alone", at(0, 0), at(second, 2*second), true, yield.Measured(0), yield.Measured(.5)},
		{"own unknown", at(0, -1), at(second, 0), true, unknown, yield.Measured(.5)},
		{"own went back", at(0, 2), at(second, 1), true, unknown, yield.Measured(.5)},
		{"unknown", at(-1, 0), at(second, 0), false, unknown, unknown},
		{"back", at(2, 0), at(1, 0), false, unknown, unknown},
		{"still", at(2, 0), at(2, 0), false, yield.Measured(0), yield.Measured(0)},
		{"more than all", at(0, 0), at(3*second, 0), false, yield.Measured(1), yield.Measured(1)},
	} {
		io := waiting(pressureIO, c.before, c.now, c.working, 2)
		memory := waiting(pressureMemory, c.before, c.now, c.working, 2)
		if io != c.io || memory != c.memory {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", c.name, io, memory, c.io, c.memory)
		}
	}
}

// A mean moves towards a sample by the share of its time that has passed; it begins anew
// after a gap, and does not know what the sample does not.
func TestTheMeanOfSomeSeconds(t *testing.T) {
	at := func(passed time.Duration, v float64) yield.Sample {
		r := yield.Measured(v)
		return yield.Sample{
			At: time.Unix(1000, 0).Add(passed), Jobs: v, Others: r, Stolen: r, CPU: r, Memory: r, IO: r,
			Load: r,
		}
	}
	half := time.Duration(math.Round(math.Ln2 * float64(meanOver)))
	values := func(s yield.Sample) []float64 {
		return []float64{
			s.Jobs, s.Others.Value, s.Stolen.Value, s.CPU.Value, s.Memory.Value, s.IO.Value, s.Load.Value,
		}
	}
	for _, c := range []struct {
		name         string
		mean, sample yield.Sample
		want         float64
	}{
		{"the first", yield.Sample{}, at(0, 4), 4},
		{"after a while", at(0, 2), at(half, 4), 3},
		{"less", at(0, 4), at(half, 2), 3},
		{"after as long as it may be", at(0, 0), at(meanOver, 1), 1 - math.Exp(-1)},
		{"after a gap", at(0, 0), at(meanOver+1, 1), 1},
		{"immediately", at(0, 2), at(0, 4), 4},
		{"back", at(0, 2), at(-1, 4), 4},
	} {
		for i, got := range values(blend(c.mean, c.sample)) {
			if math.Abs(got-c.want) > 1e-6 {
				t.Errorf("%s: value %d is %v, want %v", c.name, i, got, c.want)
			}
		}
	}
	unknown := at(half, 4)
	unknown.IO = yield.Reading{}
	if got := blend(at(0, 2), unknown); got.IO.Known || !got.CPU.Known || got.CPU.Value >= 4 {
		t.Errorf("the mean of what is not known is %+v", got)
	}
	unknown.At = time.Unix(1000, 0)
	if got := blend(unknown, at(half, 4)); got.IO != yield.Measured(4) {
		t.Errorf("what was not known begins as %+v", got.IO)
	}
}

// machineRoot is a /proc with the files that are named.
func machineRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"

// A probe reads the files: busy without idle and waiting for disks, the
// load, the pressure of the machine and of the agent's own group.
func TestWhatAProbeReads(t *testing.T) {
	root := machineRoot(t, map[string]string{
		"proc/stat":            "cpu  100 20 3 999 999 4 5 60 777 888\ncpu0 1\ncpu9 1\ncpux 1\ncpu\n",
		"proc/loadavg":         "1.25 1.00 1.00 3/200 999\n",
		"proc/pressure/cpu":    some,
		"proc/pressure/memory": "full avg10=0.00 total=7\n",
		"proc/pressure/io":     "some avg10=0.00 total=x\n",
		"proc/self/cgroup":     "0::/system.slice/mrs.service\n",

		"sys/fs/cgroup/system.slice/mrs.service/io.pressure": some,
	})
	p, err := newProbe(root)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	now := time.Unix(7, 0)
	want := counts{
		at: now, busy: 192 * clockTick, stolen: 60 * clockTick, load: yield.Measured(1.25),
		pressure: [pressures]time.Duration{1500 * time.Millisecond, -1, -1},
		own:      [pressures]time.Duration{-1, -1, 1500 * time.Millisecond},
	}
	if got := p.read(now); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if p.cores != 2 {
		t.Errorf("%d processors, want 2", p.cores)
	}
	if how := p.how(); how != "watching 2 processors and the pressure on cpu; "+
		"this kernel does not report it on memory and io" {
		t.Errorf("how = %q", how)
	}
	for text, want := range map[string][2]time.Duration{
		"cpu 1 1 1 1 1":           {3 * clockTick, -1},
		"cpu 1 1 1 1":             {-1, -1},
		"cpu0 1 1 1 1 1":          {-1, -1},
		"cpu 1 1 1 1 1 1 1 5":     {10 * clockTick, 5 * clockTick},
		"cpu 1 1 1 1 1 1 1 5 x":   {10 * clockTick, 5 * clockTick},
		"cpu 1 1 1 1 1 1 1 x 5\n": {-1, -1},
	} {
		if busy, stolen := busyTime([]byte(text)); busy != want[0] || stolen != want[1] {
			t.Errorf("%q: busy %s, stolen %s, want %v", text, busy, stolen, want)
		}
	}
}

// A system that tells its load alone is watched by it; one that tells nothing is not, and
// says so; neither leaves a file open.
func TestASystemThatTellsLittle(t *testing.T) {
	before := openFiles(t)
	little := machineRoot(t, map[string]string{
		"proc/stat": "cpu 1 1 1 1 1\ncpu0 1\n", "proc/loadavg": "nonsense\n",
		"proc/pressure/cpu": "nothing", "proc/self/cgroup": "0::/a.service\n",
		"sys/fs/cgroup/a.service/cpu.pressure": some,
	})
	for range 3 {
		p, err := newProbe(little)
		if err != nil {
			t.Fatal(err)
		}
		if how := p.how(); how != "watching 1 processors and the load; "+
			"this kernel does not report pressure" {
			t.Errorf("how = %q", how)
		}
		if c := p.read(time.Unix(1, 0)); c.load.Known {
			t.Errorf("a load of nonsense is %+v", c.load)
		}
		p.close()
		nothing := machineRoot(t, map[string]string{
			"proc/stat": "cpu 1 1 1 1 1\n", "proc/pressure/io": some, "proc/loadavg": "1 1\n",
		})
		if p, err := newProbe(nothing); err == nil || p != nil {
			t.Errorf("without any processor: %+v", p)
		}
	}
	// A file of pressure that is there and tells nothing is left to the collector of garbage.
	if after := openFiles(t); after > before+3 {
		t.Errorf("%d files are open, before %d", after, before)
	}
}

// What looking costs is said as a part of the time since the watch began.
func TestTheCostOfLooking(t *testing.T) {
	now := time.Unix(1000, 0)
	w := New(Config{Root: t.TempDir(), Now: func() time.Time { return now }})
	w.note(State{}, yield.Sample{}, 30*time.Millisecond)
	w.note(State{}, yield.Sample{}, -time.Hour) // the thread changed meanwhile
	if r := w.Report(); r.Cost != 0 || r.Looks != 2 || !r.Blind {
		t.Errorf("before it began: %+v", r)
	}
	w.since = now
	if r := w.Report(); r.Cost != 0 {
		t.Errorf("at its begin: %+v", r)
	}
	now = now.Add(3 * time.Second)
	if r := w.Report(); math.Abs(r.Cost-.01) > 1e-12 {
		t.Errorf("the cost is %v, want a hundredth", r.Cost)
	}
	before := processorTime()
	for sum := 0.0; processorTime() == before && sum >= 0; {
		sum++ // some work
	}
	if used, known := SelfTime(); !known || used <= 0 {
		t.Errorf("this process used %s, %t", used, known)
	}
}

// Where no root is named it is the machine; a watch without yielding is said to be that.
func TestWhatIsWatched(t *testing.T) {
	w := New(Config{})
	if w.cfg.Root != "/" || w.cfg.Now == nil || w.Report().How != "off: owner.yield is false" {
		t.Errorf("%+v", w.cfg)
	}
	root := machineRoot(t, map[string]string{"proc/stat": "cpu 1 1 1 1 1\ncpu0 1\n"})
	w = New(Config{Root: root, Watch: true, Use: func() Use { return Use{} }})
	if how := w.Report().How; !strings.HasSuffix(how, "; jobs do not yield: owner.yield is false") {
		t.Errorf("how = %q", how)
	}
	w.Change(Config{Yield: true, Rules: yield.DefaultRules()})
	w.Change(Config{Yield: true, Rules: yield.DefaultRules()}) // nobody took note of the first
	if how := w.Report().How; !strings.HasPrefix(how, "watching 1 processors") ||
		strings.Contains(how, "do not yield") {
		t.Errorf("how = %q", how)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Run(ctx, func(State) {})
	if _, err := w.probe.stat.Stat(); err == nil {
		t.Error("the probe is open after the end")
	}
}

// One more core of work is in the way where it would make the machine busy.
func TestOneMoreCoreOfWork(t *testing.T) {
	rules := yield.DefaultRules()
	quiet := yield.Sample{At: time.Unix(1, 0), Cores: 4, Others: yield.Measured(0)}
	if busy, why := InTheWay(quiet, rules); busy || why != "" {
		t.Errorf("on a quiet machine: %s", why)
	}
	full := quiet
	full.Others = yield.Measured(4)
	if busy, why := InTheWay(full, rules); !busy || why == "" {
		t.Error("on a full machine it is not in the way")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := machineRoot(t, map[string]string{"proc/stat": "cpu 1 1 1 1 1\ncpu0 1\n"})
	if busy, why := Glance(ctx, root, rules, time.Hour); busy || why != "" {
		t.Errorf("one that does not wait hears %q", why)
	}
}
