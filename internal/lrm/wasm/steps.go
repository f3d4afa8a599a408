package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/tetratelabs/wazero/api"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What step returns. Any other number is a mistake of the program.
const (
	stepsDone   = 0
	stepsMore   = 1   // to 100: more is to be done
	stepPercent = 2   // to 100: and so many percent are done
	mostPercent = 100 // of them
)

// stepper runs a module of steps. Between two calls of step no frame of the guest is live: all that
// it has is its memory, its global variables and its files, and what the host keeps for it is its
// clock, its random numbers and what it has printed. That is its state.
type stepper struct {
	guest          *guest
	program        *program
	problem        string // why no state can be saved; "": none is known
	states         lrm.StateDir
	stdout, stderr *printed

	instance api.Module
	step     api.Function
	result   []uint64 // of step
	steps    uint64
	percent  uint8
}

func newStepper(g *guest, p *program) *stepper {
	s := &stepper{
		guest: g, program: p, problem: p.plan.problem(),
		states: lrm.StateDirIn(g.work.WorkDir), result: make([]uint64, 1),
		stdout: &printed{to: g.stdout}, stderr: &printed{to: g.stderr},
	}
	if g.work.Saves {
		g.jail.hideStates(s.states)
		s.stdout.limit, s.stderr.limit = g.work.OutputBytes, g.work.OutputBytes
	}
	g.stdout, g.stderr, g.variables = s.stdout, s.stderr, nil
	return s
}

// run calls step until there is nothing more to do.
func (s *stepper) run(ctx context.Context) supervise.Report {
	end := s.begin(ctx)
	for k := newKeeper(s); end == nil; end = s.once(ctx) {
		k.look()
	}
	return *end
}

// begin brings the module to where it goes on from, or to its beginning. It returns the end of the
// program if it does not come to a step.
func (s *stepper) begin(ctx context.Context) (end *supervise.Report) {
	instance, err := s.program.rt.InstantiateModule(ctx, s.program.compiled, s.guest.config())
	if err != nil {
		return new(linkFailure(err))
	}
	s.instance, s.step = instance, instance.ExportedFunction(stepName)
	goesOn, err := s.restore()
	if err != nil {
		return new(failure("lay out state", err))
	}
	initialize := instance.ExportedFunction(initName)
	if initialize == nil || goesOn {
		return nil
	}
	if report := call(ctx, initialize); report.Cause != grid.CauseExited || instance.IsClosed() {
		return &report
	}
	return nil
}

// once does one step. It returns the end of the program if this was the last.
func (s *stepper) once(ctx context.Context) (end *supervise.Report) {
	if err := s.step.CallWithStack(ctx, s.result); err != nil {
		return new(endOf(err))
	}
	s.steps++
	switch n := int32(uint32(s.result[0])); {
	case n == stepsDone:
		return &supervise.Report{Cause: grid.CauseExited}
	case n >= stepPercent && n <= mostPercent:
		s.percent = uint8(n)
	case n != stepsMore:
		return &supervise.Report{Cause: grid.CauseBadWork, Text: fmt.Sprintf(
			"step returned %d: want 0 (done), 1 (more), or 2 to 100 (more, percent done)", n)}
	}
	return nil
}

// bounds are those of a state of this task.
func (s *stepper) bounds() bounds {
	return bounds{
		module: s.program.digest, globals: s.program.globals, memory: s.guest.memory.limit,
		disk: s.guest.work.DiskBytes, output: s.guest.work.OutputBytes, hidden: s.guest.jail.hidden,
	}
}

// restore goes on from the state that was laid out, and reports whether there was one. One that
// cannot be used is left alone: the task begins anew. An error is the site's own trouble.
func (s *stepper) restore() (goesOn bool, err error) {
	if !s.guest.work.Saves || s.states.Look() == nil {
		return false, nil
	}
	file, err := s.states.Open()
	if err != nil {
		return false, err
	}
	defer file.Close()
	d, source, err := s.readable(file)
	if errors.Is(err, errState) {
		_ = s.states.Explain(err.Error() + "; the task begins anew")
		return false, nil
	}
	if err == nil {
		err = s.apply(d, source, file)
	}
	return err == nil, err
}

// readable looks whether a state can be used, and changes nothing but that memory may grow.
func (s *stepper) readable(file *os.File) (d description, source *rand.ChaCha8, err error) {
	if s.problem != "" {
		return d, nil, badState("%s", s.problem)
	}
	info, err := file.Stat()
	if err != nil {
		return d, nil, err
	}
	if d, err = readDescription(file, info.Size()); err != nil {
		return d, nil, err
	}
	if err = d.check(s.bounds()); err != nil {
		return d, nil, err
	}
	source = rand.NewChaCha8([32]byte{})
	if err = source.UnmarshalBinary(d.Random); err != nil {
		return d, nil, badState("its random numbers: %v", err)
	}
	have := s.pages()
	if d.Pages < have {
		return d, nil, badState("it has less memory than the module begins with")
	}
	if memory := s.instance.Memory(); d.Pages > have {
		if memory == nil {
			return d, nil, badState("the module has no memory")
		}
		if _, grown := memory.Grow(d.Pages - have); !grown {
			return d, nil, badState("it has more memory than the module can have")
		}
	}
	return d, source, nil
}

// pages counts the guest's memory.
func (s *stepper) pages() uint32 {
	if memory := s.instance.Memory(); memory != nil {
		return memory.Size() / pageBytes
	}
	return 0
}

// memory is all of the guest's memory, in place.
func (s *stepper) memory() []byte {
	memory := s.instance.Memory()
	if memory == nil {
		return nil
	}
	all, _ := memory.Read(0, memory.Size())
	return all
}

// apply puts a state in place.
func (s *stepper) apply(d description, source *rand.ChaCha8, file *os.File) error {
	at := int64(0)
	next := func(n int64) io.Reader {
		part := io.NewSectionReader(file, at, n)
		at += padded(n)
		return part
	}
	memory := s.memory()
	if err := fill(memory, next(int64(len(memory)))); err != nil {
		return err
	}
	for i, g := range s.program.globals {
		global, is := s.instance.ExportedGlobal(g.name).(api.MutableGlobal)
		if !is {
			return fmt.Errorf("global variable %s cannot be set", g.name)
		}
		global.Set(d.Globals[i])
	}
	jail := s.guest.jail
	if err := jail.layOut(d.Files, next); err != nil {
		return err
	}
	jail.quota.entries, jail.clock.now, s.steps = d.Entries, d.Clock, d.Steps
	for _, f := range d.Files {
		jail.quota.used += f.Bytes
	}
	jail.quota.bound()
	*s.guest.random = *source
	if err := s.stdout.replay(next(d.Stdout)); err != nil {
		return err
	}
	return s.stderr.replay(next(d.Stderr))
}

// fill reads memory, and does not touch empty pages that are empty already: untouched memory costs
// the machine nothing.
func fill(memory []byte, from io.Reader) error {
	buffer := make([]byte, pageBytes)
	for len(memory) > 0 {
		page := memory[:min(len(memory), pageBytes)]
		if _, err := io.ReadFull(from, buffer[:len(page)]); err != nil {
			return fmt.Errorf("read memory: %w", err)
		}
		if string(page) != string(buffer[:len(page)]) {
			copy(page, buffer)
		}
		memory = memory[len(page):]
	}
	return nil
}
