package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	moduleName = "module.wasm" // the first argument
	sigAbort   = 6             // the code of a trap
	wasmMagic  = "\x00asm"
	exitFailed = 1
)

// RunnerMain is the body of the runner's process: it runs the one job that it is
// told on its standard input and reports its end. It returns the exit code.
func RunnerMain() int {
	var work job
	report := supervise.Report{Cause: grid.CauseSandbox}
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		report.Text = "the runner was told no job: " + err.Error()
	} else {
		report = runJob(context.Background(), work)
	}
	if err := supervise.WriteReport(report); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}

// runJob runs a job in this process, around which it builds the walls.
func runJob(ctx context.Context, work job) supervise.Report {
	module, err := os.ReadFile(work.Module)
	if err != nil {
		return failure("read module", err)
	}
	if !strings.HasPrefix(string(module[:min(len(module), len(wasmMagic))]), wasmMagic) {
		return supervise.Report{
			Cause: grid.CauseBadWork, Text: "the module is not WebAssembly: compile it for wasip1",
		}
	}
	jail, err := newJail(work.WorkDir, work.Inputs, work.DiskBytes)
	if err != nil {
		return failure("build sandbox", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(work.CacheDir)
	if err != nil {
		return failure("open cache", err)
	}
	if err := enclose(work); err != nil {
		return failure("close sandbox", err)
	}
	return newGuest(work, jail).run(ctx, cache, module)
}

// failure reports that the sandbox could not be made.
func failure(verb string, err error) supervise.Report {
	// The sandbox's owner needs the host's path, the submitter does not.
	if path, is := errors.AsType[*fs.PathError](err); is {
		fmt.Fprintln(os.Stderr, "runner:", path.Op, path.Err)
		err = path.Err
	}
	return supervise.Report{Cause: grid.CauseSandbox, Text: verb + ": " + err.Error()}
}

// guest is the one program that this process runs.
type guest struct {
	work           job
	jail           *jail
	memory         *memory
	random         *rand.ChaCha8
	stdout, stderr io.Writer
	variables      [][2]string
	announce       func(preparing bool) error // to the supervisor
	yielder        *yielder                   // that runs the program; nil: nothing is saved
}

func newGuest(work job, jail *jail) *guest {
	return &guest{
		work: work, jail: jail, variables: work.Variables, random: random(work.Task.Original()),
		memory: &memory{limit: uint64(min(max(work.MemoryBytes, 0), maxMemory))},
		stdout: os.Stdout, stderr: os.Stderr, announce: supervise.WritePreparing,
	}
}

func (g *guest) run(
	ctx context.Context, cache wazero.CompilationCache, module []byte,
) (report supervise.Report) {
	defer func() {
		// wazero panics when not even the module's first memory is granted.
		if r := recover(); r != nil {
			report = g.blame(supervise.Report{
				Cause: grid.CauseSandbox, Text: fmt.Sprint("the runtime failed: ", r),
			})
		}
	}()
	p, err := g.prepare(ctx, cache, module)
	if err != nil {
		return compileFailure(err)
	}
	ctx = experimental.WithMemoryAllocator(ctx, g.memory)
	switch {
	case p.plan.isStepped():
		return g.blame(newStepper(g, p).run(ctx))
	case p.plan.isYielding() && g.work.Saves:
		g.yielder = newYielder(g, p)
		return g.blame(g.yielder.run(ctx))
	}
	instance, err := p.rt.InstantiateModule(ctx, p.compiled, g.config())
	if err != nil {
		return g.blame(linkFailure(err))
	}
	start := instance.ExportedFunction("_start")
	if start == nil {
		return supervise.Report{
			Cause: grid.CauseBadWork,
			Text: "the module exports neither _start nor step: build a command, " +
				"or a module of steps",
		}
	}
	return g.blame(call(ctx, start))
}

// program is a module that can be run.
type program struct {
	rt       wazero.Runtime
	compiled wazero.CompiledModule
	plan     *layout
	globals  []exposed // that can be saved
	digest   string    // sha256 of the module as it was submitted, in hex
}

// prepare compiles the module; one of steps with its global variables exposed, if they are saved.
func (g *guest) prepare(
	ctx context.Context, cache wazero.CompilationCache, module []byte,
) (*program, error) {
	plan, err := examine(module)
	if err != nil {
		plan = &layout{} // wazero says what is wrong
	}
	sum := sha256.Sum256(module)
	p := &program{plan: plan, digest: hex.EncodeToString(sum[:])}
	if (plan.isStepped() || plan.isYielding()) && g.work.Saves && plan.problem() == "" {
		module, p.globals = plan.expose(module)
	}
	p.rt = wazero.NewRuntimeWithConfig(ctx, g.engine().WithCompilationCache(cache))
	wasi_snapshot_preview1.MustInstantiate(ctx, p.rt)
	if err = linkYield(ctx, p.rt, func() *yielder { return g.yielder }); err != nil {
		return p, err
	}
	p.compiled, err = g.compile(ctx, p.rt, module)
	return p, err
}

// engine runs the code.
func (g *guest) engine() wazero.RuntimeConfig {
	config := wazero.NewRuntimeConfig()
	if g.work.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	return config.WithDebugInfoEnabled(false)
}

// compileFailure tells a module that is wrong everywhere from a machine that could not keep
// the compiled one: that task goes elsewhere, and a full disk is nobody's fault.
func compileFailure(err error) supervise.Report {
	var trouble syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return supervise.Report{Cause: grid.CauseStopped, Text: "the site's disk is full"}
	case errors.As(err, &trouble):
		return supervise.Report{
			Cause: grid.CauseSandbox, Text: "the compiled module cannot be kept: " + err.Error(),
		}
	}
	return supervise.Report{
		Cause: grid.CauseBadWork, Text: "the module does not compile: " + err.Error(),
	}
}

// preparingAfter limits how long compiling may take before it is announced: a module that
// is in the cache is ready long before.
const preparingAfter = 300 * time.Millisecond

// compile compiles the module, or takes it from the site's cache, and tells the supervisor
// when that takes long.
func (g *guest) compile(
	ctx context.Context, rt wazero.Runtime, module []byte,
) (wazero.CompiledModule, error) {
	told := make(chan struct{})
	timer := time.AfterFunc(preparingAfter, func() {
		defer close(told)
		if err := g.announce(true); err != nil {
			fmt.Fprintln(os.Stderr, "runner:", err)
		}
	})
	done := takeTurn(g.work.CacheDir, module)
	compiled, err := rt.CompileModule(ctx, module)
	done()
	if !timer.Stop() {
		<-told // the one before the other
		if wrong := g.announce(false); wrong != nil {
			fmt.Fprintln(os.Stderr, "runner:", wrong)
		}
	}
	return compiled, err
}

func (g *guest) config() wazero.ModuleConfig {
	clock := g.jail.clock
	//nolint:forcetypeassert // as wazero documents it
	files := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(g.jail, "/")
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithArgs(append([]string{moduleName}, g.work.Task.Args...)...).
		WithStdin(strings.NewReader("")).WithStdout(g.stdout).WithStderr(g.stderr).
		WithFSConfig(files).WithRandSource(g.random).
		WithWalltime(clock.walltime, sys.ClockResolution(clockTick)).
		WithNanotime(clock.nanotime, sys.ClockResolution(clockTick)).WithNanosleep(clock.sleep)
	for _, v := range g.variables {
		config = config.WithEnv(v[0], v[1])
	}
	for _, e := range g.work.Task.Env {
		config = config.WithEnv(e.Name, e.Value)
	}
	return config
}

func linkFailure(err error) supervise.Report {
	if strings.HasPrefix(err.Error(), "start function") {
		return trap(err)
	}
	return supervise.Report{Cause: grid.CauseBadWork, Text: "the module does not link: " + err.Error()}
}

// call runs the program to its end.
func call(ctx context.Context, start api.Function) supervise.Report {
	_, err := start.Call(ctx)
	if err == nil {
		return supervise.Report{Cause: grid.CauseExited}
	}
	return endOf(err)
}

// endOf is the end of a program by the error of a call.
func endOf(err error) supervise.Report {
	if exit, is := errors.AsType[*sys.ExitError](err); is {
		return supervise.Report{Cause: grid.CauseExited, Code: int(exit.ExitCode())}
	}
	return trap(err)
}

// trap is the end of a program that did what WebAssembly forbids.
func trap(err error) supervise.Report {
	return supervise.Report{Cause: grid.CauseSignal, Code: sigAbort, Text: "trap: " + err.Error()}
}

// blame finds the limit behind a failure: programs that were refused memory or
// disk end in ways of their own.
func (g *guest) blame(r supervise.Report) supervise.Report {
	own := ""
	switch {
	case r.Cause == grid.CauseExited && r.Code == 0:
		return r
	case r.Cause == grid.CauseExited:
		own = fmt.Sprintf("; it ended with code %d", r.Code)
	case r.Text != "":
		own = "; " + r.Text
	}
	switch {
	case g.memory.denied.Load():
		return supervise.Report{
			Cause: grid.CauseMemory, Code: r.Code,
			Text: "wanted more than its " + grid.FormatBytes(g.work.MemoryBytes) + " of memory" + own,
		}
	case g.jail.quota.denied.Load():
		return supervise.Report{
			Cause: grid.CauseDisk, Code: r.Code,
			Text: "wanted more than its " + grid.FormatBytes(g.work.DiskBytes) + " of disk" + own,
		}
	case g.jail.quota.hostFull.Load():
		return supervise.Report{Cause: grid.CauseSandbox, Text: "the site's disk is full" + own}
	default:
		return r
	}
}
