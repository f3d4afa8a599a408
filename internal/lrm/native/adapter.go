package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Config says where the adapter finds things and how much a command may start.
type Config struct {
	// Supervisor is the command whose body is supervise.Main, usually the agent's
	// own executable with a hidden argument.
	Supervisor []string
	// Runner is the command whose body is RunnerMain, in the same way.
	Runner []string
	// Sandbox names the sandbox of commands: Auto (or empty), Bubblewrap or GVisor.
	Sandbox string
	// Bwrap is bubblewrap's executable; empty = bwrap, as PATH has it.
	Bwrap string
	// Runsc is gVisor's executable; empty = runsc, as PATH has it.
	Runsc string
	// Processes limits the processes and threads of an attempt; 0 = 256.
	Processes int
	// Idle gives commands the processor only when nobody else wants it.
	Idle bool
	// RecordPath is the run record of earlier agents, the same file as in Attempts. The
	// directories etc and warm beside it are the adapter's.
	RecordPath string
	// Unbounded runs commands also where the kernel does not hold their memory, their processes and
	// what they write: these are watched by looking then. What they write is not held in memory.
	Unbounded bool
	// Unheld is why the agent cannot mount file systems; nil: it may be tried.
	Unheld error
	// NoGroups leaves cgroups alone, also where the agent may make some. As root
	// nothing bounds then how many processes a command starts: it is for tests.
	NoGroups bool
}

// The sandboxes.
const (
	Auto       = "auto"       // bubblewrap, or gVisor where that does not work
	Bubblewrap = "bubblewrap" // namespaces of the machine's own kernel
	GVisor     = "gvisor"     // a kernel of its own, in user space
)

// ArgRun is the hidden argument with which an executable runs itself again as a
// runner: main calls RunnerMain then, before anything else.
const ArgRun = "__run-command"

const defaultProcesses = 256

// DefaultConfig runs this executable again, with supervise.Arg or ArgRun as its
// only argument. The record stands in dir.
func DefaultConfig(dir string) (Config, error) {
	self, err := os.Executable()
	if err != nil {
		return Config{}, fmt.Errorf("find own executable: %w", err)
	}
	return Config{
		Supervisor: []string{self, supervise.Arg}, Runner: []string{self, ArgRun},
		RecordPath: filepath.Join(dir, "runs.jsonl"),
	}, nil
}

// Validate reports the first field that is missing or out of its range.
func (c Config) Validate() error {
	switch {
	case len(c.Supervisor) == 0 || len(c.Runner) == 0:
		return errors.New("native: supervisor and runner: want commands")
	case c.Processes < 0:
		return errors.New("native: processes: want at least 0")
	case !slices.Contains([]string{"", Auto, Bubblewrap, GVisor}, c.Sandbox):
		return fmt.Errorf("native: sandbox: want auto, bubblewrap or gvisor, have %q", c.Sandbox)
	case !filepath.IsAbs(c.RecordPath):
		return errors.New("native: record path: want an absolute path")
	default:
		return nil
	}
}

// Adapter implements lrm.Adapter.
type Adapter struct {
	config      Config
	host        host
	supervisors *supervise.Pool
}

// New makes an adapter and tries, within ctx, what works on this machine. That
// nothing does is no error: Probe says so.
func New(ctx context.Context, config Config) (*Adapter, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Processes == 0 {
		config.Processes = defaultProcesses
	}
	a := &Adapter{
		config: config, host: explore(ctx, config), supervisors: supervise.NewPool(config.Supervisor),
	}
	if a.host.warm {
		if err := clearWarm(config.RecordPath); err != nil {
			return nil, err
		}
	}
	if a.host.sandbox == Bubblewrap {
		etc := filepath.Join(filepath.Dir(config.RecordPath), "etc")
		if err := a.host.shareEtc(etc); err != nil {
			a.host = host{notes: []string{"no commands: " + err.Error()}}
		}
	}
	return a, nil
}

// Probe implements lrm.Adapter.
func (a *Adapter) Probe(context.Context) lrm.Support {
	support := lrm.Support{Notes: a.host.notes}
	if a.host.works() {
		support.Kinds, support.Freeze = []grid.WorkKind{grid.KindCommand}, true
		support.Walls, support.Saves = a.host.walls(), a.host.gvisor.saves
		support.InMemory = a.host.held
	}
	return support
}

// ErrNoSandbox means that this machine cannot enclose commands.
var ErrNoSandbox = errors.New("no sandbox for commands on this machine")

// Start implements lrm.Adapter.
func (a *Adapter) Start(ctx context.Context, at lrm.Attempt) (lrm.Process, error) {
	if err := at.Validate(); err != nil {
		return nil, err
	}
	if !a.host.works() {
		return nil, ErrNoSandbox
	}
	box := sandbox{host: a.host, attempt: at, processes: a.config.Processes, idle: a.config.Idle}
	box.key, box.name = box.series(), groupName(a.config.RecordPath, at.Dir)
	if box.key != "" {
		box.copied, _ = inputBytes(at.Inputs)
		if w := a.supervisors.Warmed(box.key); w != nil {
			return a.startInWarm(ctx, box, w)
		}
	}
	wrong := box.refuse()
	if err := box.prepare(); err != nil {
		return nil, fmt.Errorf("prepare sandbox: %w", err)
	}
	group, err := a.host.groups.add(box.name, box.need())
	if err != nil {
		return nil, fmt.Errorf("prepare sandbox: %w", err)
	}
	process, err := a.launch(ctx, box, group, wrong)
	if err != nil {
		return nil, errors.Join(err, group.remove())
	}
	return process, nil
}

func (a *Adapter) launch(
	ctx context.Context, box sandbox, group group, wrong string,
) (lrm.Process, error) {
	spec, err := a.spec(box, group, wrong)
	if err != nil {
		return nil, fmt.Errorf("prepare sandbox: %w", err)
	}
	return a.supervisors.Start(ctx, box.attempt.Dir, spec, a.hooks(box, group, wrong))
}

// spec is the supervisor's order for an attempt.
func (a *Adapter) spec(box sandbox, group group, wrong string) (supervise.Spec, error) {
	at := box.attempt
	spec := supervise.Spec{
		Attempt: at.ID, Runner: a.config.Runner, Env: []string{"GOMAXPROCS=1"}, Dir: at.Dir,
		Stdout: at.StdoutPath(), Stderr: at.StderrPath(), Limits: at.Limits.OrDefault(),
		LeaseUntil: at.LeaseUntil, RecordPath: at.RecordPath,
		Idle: a.config.Idle, MeterCPU: !a.host.groups.cpu(),
		Tree: true, FreezeDir: group.freezer, WatchMemory: !a.host.groups.memory(),
		OwnMemory: box.ownMemory(), Farewell: at.Farewell,
	}
	if !a.host.held {
		spec.WatchDir = at.WorkDir()
	}
	if box.keeps() { // it keeps what the command prints by itself
		spec.Stdout = filepath.Join(at.Dir, "keeper.out")
		spec.Stderr = filepath.Join(at.Dir, "keeper.err")
	}
	if !a.host.groups.pids() {
		spec.Processes = box.watchedProcesses()
	}
	if wrong != "" {
		var err error
		spec.Stdin, err = json.Marshal(job{Refused: true})
		return spec, err
	}
	spec.Enclosure = &supervise.Enclosure{Join: group.doors(), Born: group.born}
	if err := box.command(spec.Enclosure); err != nil {
		return spec, err
	}
	if box.key != "" {
		box.warm(&spec)
	}
	return spec, nil
}

// hooks are what is done for an attempt besides.
func (a *Adapter) hooks(box sandbox, group group, wrong string) supervise.Hooks {
	at := box.attempt
	remove := func() { _ = group.remove() } // what is left, Recover removes
	var empty func() (string, error)
	if box.key != "" {
		tmp, _ := os.Lstat(filepath.Join(at.WorkDir(), tempDir))
		empty = func() (string, error) { return a.empty(box, group, tmp) }
	}
	return supervise.Hooks{
		Finish: func(end supervise.Ending, kept bool) lrm.Result {
			ended := ending{
				attempt: at, sandbox: a.host.sandbox, end: end, wrong: wrong, starved: group.starved(),
				held: a.host.held,
			}
			if !kept {
				remove()
			}
			if end.Cause == grid.CauseSandbox {
				_ = endStrays(at.Dir) // and ends
			}
			return ended.result()
		},
		Empty: empty,
		Gone: func(root string) {
			remove()
			_ = dropRoot(root) // and New does
		},
	}
}

// Recover implements lrm.Adapter.
func (a *Adapter) Recover(ctx context.Context) error {
	return errors.Join(
		supervise.Recover(ctx, a.config.RecordPath),
		endStrays(filepath.Dir(a.config.RecordPath)),
		a.host.groups.sweep(groupPrefix(a.config.RecordPath)),
	)
}
