package supervise

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// one is the attempt of these tests.
func one() grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}
}

// witness reads what a supervisor of this process records and says.
type witness struct {
	t    *testing.T
	path string // of the record
	out  bytes.Buffer
}

// over is a supervisor of the spec whose lease ends in an hour.
func (w *witness) over(spec Spec) *supervisor {
	w.t.Helper()
	spec.Attempt, spec.RecordPath = one(), w.path
	recorder, err := lrm.OpenRecorder(w.path, spec.Attempt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { recorder.Close() })
	return &supervisor{
		spec: spec, own: ownIdentity(), recorder: recorder, out: json.NewEncoder(&w.out),
		meter: newMeter(spec),
		lease: lrm.BootNow().Add(time.Hour), commands: make(chan command),
	}
}

func witnessed(t *testing.T) *witness {
	t.Helper()
	return &witness{t: t, path: filepath.Join(t.TempDir(), "runs")}
}

func (w *witness) records() []lrm.Record {
	w.t.Helper()
	records, err := lrm.ReadRecords(w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

// told are the messages since the last question.
func (w *witness) told() (all []message) {
	w.t.Helper()
	for lines := json.NewDecoder(&w.out); ; {
		var m message
		err := lines.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, m)
	}
}

// happened are the records and messages in a line, as "frozen" of the record and "Frozen" of
// the messages.
func (w *witness) happened() string {
	w.t.Helper()
	var all []string
	for _, r := range w.records() {
		all = append(all, string(r.Event))
	}
	for _, m := range w.told() {
		all = append(all, "said "+m.Event.String())
		if m.At <= 0 || m.At > lrm.BootNow() {
			w.t.Errorf("%s happened at %d", m.Event, m.At)
		}
	}
	return strings.Join(all, ", ")
}

// ended is why it was ended; nothing if it was not.
func (s *supervisor) ended() Report {
	if s.verdict == nil {
		return Report{}
	}
	return *s.verdict
}

// runnerOf is a runner that is there already.
func runnerOf(t *testing.T, cmd *exec.Cmd, spec Spec) *runner {
	t.Helper()
	r := &runner{cmd: cmd, spec: spec, gone: make(chan struct{})}
	t.Cleanup(func() { close(r.gone) })
	return r
}

const waits = `echo 1; read x <&3; true`

// Who has no lease, or is suspended, stands; who has one and is not goes on; whose time is over
// ends; and nothing is done, recorded or said twice.
func TestWhatIsEnforced(t *testing.T) {
	t.Parallel()
	const frozen, resumed = "frozen, said frozen", "resumed, said resumed"
	limited := Spec{Limits: lrm.Limits{WallTime: time.Hour}}
	none := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		spec     Spec
		set      func(*supervisor)
		state    string // of the program
		happened string
		verdict  Report
	}{
		"nothing is due": {limited, func(*supervisor) {}, "S", "", Report{}},
		"no lease":       {Spec{}, func(s *supervisor) { s.lease = 1 }, "T", frozen, Report{}},
		"suspended": {
			Spec{}, func(s *supervisor) { s.suspended = true }, "T", frozen, Report{},
		},
		"a tree without a lease": {
			Spec{Tree: true}, func(s *supervisor) { s.lease = 1 }, "T", frozen, Report{},
		},
		"no lease, and it stands": {
			Spec{}, func(s *supervisor) { s.lease, s.frozen = 1, true }, "S", "", Report{},
		},
		"suspended with a lease, and it stands": {
			Spec{}, func(s *supervisor) { s.suspended, s.frozen = true, true }, "S", "", Report{},
		},
		"a lease again": {
			Spec{}, func(s *supervisor) { s.frozen = true }, "S", resumed, Report{},
		},
		"a lease again, of a tree": {
			Spec{Tree: true}, func(s *supervisor) { s.frozen = true }, "S", resumed, Report{},
		},
		"time is nearly over": {
			limited, func(s *supervisor) { s.ran = time.Hour - time.Minute }, "S", "", Report{},
		},
		"time is over": {
			limited, func(s *supervisor) { s.ran, s.lease = time.Hour, 1 }, "ZX", "",
			Report{Cause: grid.CauseTimeLimit, Text: "ran longer than 1h0m0s"},
		},
		"no limit": {Spec{}, func(s *supervisor) { s.ran = time.Hour }, "S", "", Report{}},
		"it was killed": {
			limited, func(s *supervisor) { s.verdict, s.lease, s.ran = &Report{Code: 7}, 1, time.Hour },
			"S", "",
			Report{Code: 7},
		},
		"it cannot go on": {
			Spec{Tree: true, FreezeDir: none},
			func(s *supervisor) { s.frozen = true }, "ZX", "resumed",
			Report{
				Cause: grid.CauseSandbox,
				Text:  "resume: open " + none + "/cgroup.freeze: no such file or directory",
			},
		},
	} {
		w := witnessed(t)
		cmd := still(t, 1, waits)
		s := w.over(c.spec)
		s.runner = runnerOf(t, cmd, c.spec)
		s.heldTill, s.meter.at = time.Now(), time.Now()
		if c.set(s); !s.frozen {
			s.since = time.Now().Add(-time.Second)
		}
		before := *s
		s.enforce()
		s.enforce()
		awaitState(t, cmd.Process.Pid, c.state)
		if got := w.happened(); got != c.happened {
			t.Errorf("%s: %q happened, want %q", name, got, c.happened)
		}
		if got := s.ended(); got != c.verdict {
			t.Errorf("%s: the verdict is %+v, want %+v", name, got, c.verdict)
		}
		froze, went := c.happened == frozen, c.happened == resumed
		if s.frozen != (before.frozen && !went || froze) {
			t.Errorf("%s: frozen is %v", name, s.frozen)
		}
		if froze && (!s.since.IsZero() || s.ran < before.ran+time.Second || !s.heldTill.IsZero()) {
			t.Errorf("%s: it ran %s and since %s, held till %s", name, s.ran, s.since, s.heldTill)
		}
		if went && (s.since.IsZero() || s.ran != before.ran || !s.meter.at.IsZero()) {
			t.Errorf("%s: it ran %s and since %s, metered at %s", name, s.ran, s.since, s.meter.at)
		}
	}
}

// The share of the processors is looked at while a program runs, where the kernel does not hold
// it to that, and at no other time.
func TestWhenAShareIsLookedAt(t *testing.T) {
	t.Parallel()
	cmd := still(t, 1, waits)
	for name, c := range map[string]struct {
		metered bool
		set     func(*supervisor)
		want    bool
	}{
		"it runs":                {true, func(*supervisor) {}, true},
		"the kernel looks at it": {false, func(*supervisor) {}, false},
		"it stands":              {true, func(s *supervisor) { s.frozen, s.lease = true, 1 }, false},
		"it is just frozen":      {true, func(s *supervisor) { s.suspended = true }, false},
		"it was killed":          {true, func(s *supervisor) { s.verdict = &Report{} }, false},
		"it is gone":             {true, func(s *supervisor) { s.runner = goneRunner(t) }, false},
	} {
		s := witnessed(t).over(Spec{MeterCPU: c.metered})
		s.runner = &runner{cmd: cmd, spec: s.spec}
		c.set(s)
		s.enforce()
		if got := !s.meter.at.IsZero(); got != c.want {
			t.Errorf("%s: looked at is %v, want %v", name, got, c.want)
		}
		if err := s.runner.resume(); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	s := witnessed(t).over(Spec{MeterCPU: true, Tree: true, FreezeDir: none})
	s.runner = runnerOf(t, cmd, s.spec)
	s.heldTill = time.Now().Add(-1)
	s.enforce()
	if s.verdict == nil || s.verdict.Cause != grid.CauseSandbox ||
		!strings.HasPrefix(s.verdict.Text, "go on after a pause: ") || !s.meter.at.IsZero() {
		t.Errorf("one that cannot go on after a pause: %+v, looked at %s", s.verdict, s.meter.at)
	}
	awaitState(t, cmd.Process.Pid, "ZX")
}

// goneRunner is one whose process has ended and was waited for.
func goneRunner(t *testing.T) *runner {
	t.Helper()
	cmd := enclosed(&Enclosure{Program: "/bin/true"})
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return &runner{cmd: cmd}
}

// A command counts for its own attempt alone; the first reason to end stands.
func TestCommandsAreObeyed(t *testing.T) {
	t.Parallel()
	why, on, lease := strings.Repeat("x", 2000), true, lrm.BootTime(77)
	other := one()
	other.Token++
	stopped := Report{Cause: grid.CauseStopped, Text: lrm.ExitText(why)}
	for name, c := range map[string]struct {
		command  command
		lives    bool
		verdict  Report
		suspends bool
		lease    bool
	}{
		"stop":               {command{Attempt: one(), Stop: &why}, true, stopped, false, false},
		"suspend":            {command{Attempt: one(), Suspend: &on}, true, Report{}, true, false},
		"lease":              {command{Attempt: one(), Lease: &lease}, true, Report{}, false, true},
		"nothing":            {command{Attempt: one()}, true, Report{}, false, false},
		"stop of another":    {command{Attempt: other, Stop: &why}, true, Report{}, false, false},
		"suspend of another": {command{Attempt: other, Suspend: &on}, true, Report{}, false, false},
		"lease of another":   {command{Attempt: other, Lease: &lease}, true, Report{}, false, false},
		"the agent's death": {
			command{},
			false,
			Report{Cause: grid.CauseSiteRestart, Text: "the site's agent died"},
			false, false,
		},
	} {
		s := witnessed(t).over(Spec{})
		s.runner = &runner{cmd: still(t, 1, waits), spec: s.spec}
		s.obey(c.command, c.lives)
		verdict := s.ended()
		if verdict != c.verdict || s.suspended != c.suspends || (s.lease == lease) != c.lease ||
			(s.commands != nil) != c.lives {
			t.Errorf("%s: %+v, suspended: %v, lease %d", name, verdict, s.suspended, s.lease)
		}
		state := "S"
		if c.verdict.Cause != 0 {
			state = "ZX"
		}
		awaitState(t, s.runner.pid(), state)
		if s.kill(grid.CauseDisk, "later"); verdict.Cause != 0 && *s.verdict != c.verdict {
			t.Errorf("%s: a later reason replaces the first: %+v", name, s.verdict)
		}
	}
}

// program is a spec of a shell's script in a directory of its own.
func program(t *testing.T, script string) Spec {
	t.Helper()
	dir := t.TempDir()
	return Spec{
		Runner: []string{"/bin/sh", "-c", script}, Dir: dir, Stdout: filepath.Join(dir, "stdout"),
		Stderr: filepath.Join(dir, "stderr"), Limits: lrm.Limits{OutputBytes: 4},
	}
}

// An attempt is recorded before it begins and when it is gone, and the agent is told what
// becomes of it; what cannot begin is not told, and what may not leaves no record.
func TestAnAttemptFromItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	why, on := "enough", true
	past, future := lrm.BootTime(1), lrm.BootNow().Add(time.Hour)
	const ends = "started, ended, said started"
	for name, c := range map[string]struct {
		script   string
		change   func(*supervisor)
		commands []command // nil: none; else the agent dies after them
		cause    grid.ExitCause
		code     int
		text     string
		happened string
	}{
		"exits":      {"exit 3", nil, nil, grid.CauseExited, 3, "", ends},
		"was killed": {"kill -9 $$", nil, nil, grid.CauseSignal, 9, "signal: killed", ends},
		"too late": {
			"exit 3", func(s *supervisor) { s.lease = 1 }, nil, grid.CauseStopped, 0,
			"the lease ended before the start", "",
		},
		"no program": {
			"", func(s *supervisor) { s.spec.Runner = []string{s.spec.Dir + "/none"} }, nil,
			grid.CauseSandbox, 0, "start runner: fork/exec", "started, ended",
		},
		"no place for its output": {
			"echo text", func(s *supervisor) { s.spec.Stdout = s.spec.Dir }, nil,
			grid.CauseSandbox, 0, "keep output: open", ends,
		},
		"no place for its errors": {
			"echo text >&2; sleep 1000", func(s *supervisor) { s.spec.Stderr = s.spec.Dir }, nil,
			grid.CauseSandbox, 0, "keep output: open", ends,
		},
		"no place that it needs": {
			"exit 3", func(s *supervisor) { s.spec.Stderr = s.spec.Dir }, nil,
			grid.CauseExited, 3, "", ends,
		},
		"prints too much": {
			"printf 12345; sleep 1000", nil, nil, grid.CauseOutput, 0,
			"printed more than 4 B to one stream", ends,
		},
		"writes too much": {
			"echo 1 > file; sleep 1000",
			func(s *supervisor) { s.spec.WatchDir, s.spec.Limits.DiskBytes = s.spec.Dir, 1 }, nil,
			grid.CauseDisk, 0, "wrote more than 1 B", ends,
		},
		"runs too long": {
			"sleep 1000", func(s *supervisor) { s.spec.Limits.WallTime = time.Millisecond }, nil,
			grid.CauseTimeLimit, 0, "ran longer than 1ms", ends,
		},
		"is stopped": {
			"sleep 1000", nil, []command{{Attempt: one(), Stop: &why}}, grid.CauseStopped, 0, why, ends,
		},
		"loses its agent": {
			"sleep 1000", nil, []command{}, grid.CauseSiteRestart, 0, "the site's agent died", ends,
		},
		"stands for a while": {
			"sleep 1000", nil,
			[]command{{Attempt: one(), Lease: &past}, {Attempt: one(), Lease: &future}},
			grid.CauseSiteRestart, 0, "the site's agent died",
			"started, frozen, resumed, ended, said started, said frozen, said resumed",
		},
		"is suspended": {
			"sleep 1000", nil,
			[]command{{Attempt: one(), Suspend: &on}},
			grid.CauseSiteRestart, 0, "the site's agent died",
			"started, frozen, ended, said started, said frozen",
		},
	} {
		w := witnessed(t)
		s := w.over(program(t, c.script))
		s.recorder = nil
		if c.change != nil {
			c.change(s)
		}
		commands := make(chan command)
		s.commands = commands
		if c.commands != nil {
			go func() {
				for _, one := range c.commands {
					commands <- one
				}
				close(commands)
			}()
		}
		got := s.run()
		if got.Cause != c.cause || got.Code != c.code || !strings.HasPrefix(got.Text, c.text) {
			t.Errorf("%s: %+v, want %v %d %q", name, got, c.cause, c.code, c.text)
		}
		records := w.records()
		if len(records) > 0 && (records[0].Supervisor != ownIdentity() ||
			records[len(records)-1].Cause != c.cause.String()) {
			t.Errorf("%s: the record is %+v", name, records)
		}
		happened := w.happened()
		if happened != c.happened || (got.Wall > 0) != strings.Contains(happened, "said started") {
			t.Errorf("%s: in %s %q happened, want %q", name, got.Wall, happened, c.happened)
		}
	}
}

// What a runner says of its preparations is passed on.
func TestPreparationsArePassedOn(t *testing.T) {
	t.Parallel()
	w := witnessed(t)
	s := w.over(Spec{})
	s.tellPreparing(true)
	s.tellPreparing(false)
	if got := w.happened(); got != "said preparing, said prepared" {
		t.Errorf("%q happened", got)
	}
}

// Without a record nothing runs.
func TestNothingRunsWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"no place": t.TempDir(), "no space": "/dev/full",
	} {
		w := witnessed(t)
		spec := program(t, "echo ran")
		s := w.over(spec)
		s.spec.RecordPath = path
		got := s.run()
		if got.Cause != grid.CauseSandbox || !strings.Contains(got.Text, "run record") || got.Wall != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := os.Stat(spec.Stdout); !errors.Is(err, os.ErrNotExist) || w.out.Len() > 0 {
			t.Errorf("%s: it ran: %v, said %s", name, err, &w.out)
		}
	}
}
