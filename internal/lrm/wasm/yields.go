package wasm

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What an ordinary program calls where it can be interrupted: () -> (), without effect.
const (
	yieldModule = "mrs"
	yieldName   = "yield"
)

// asyncify lists the functions that Binaryen adds to a program so that its frames can be put into
// its memory and taken from there again. Those that start take the address of a place for them.
//
//nolint:gochecknoglobals // a constant table
var asyncify = [...]struct {
	name   string
	params []api.ValueType
}{
	{"asyncify_start_unwind", []api.ValueType{api.ValueTypeI32}},
	{"asyncify_stop_unwind", nil},
	{"asyncify_start_rewind", []api.ValueType{api.ValueTypeI32}},
	{"asyncify_stop_rewind", nil},
}

// The place of a program's frames, behind the memory that it begins with: where the next one goes,
// where the place ends, and the frames. Pages that no frame has reached cost nothing.
const (
	framePages = 16
	frameHead  = 8
)

// yielder runs an ordinary program whose states can be saved while it yields. To save one its
// frames are unwound into its memory; then it is like a module of steps between two of them, and
// goes on by being called anew with its frames rewound. The program notices nothing of that.
type yielder struct {
	*stepper
	keeper *keeper
	wanted func() bool // whether a state is, asked at each yield

	start                       api.Function
	unwind, unwound             api.Function
	rewind, rewound             api.Function
	frames                      uint32 // the address of their place
	inMemory, leaving, entering bool   // the frames
}

func newYielder(g *guest, p *program) *yielder {
	y := &yielder{stepper: newStepper(g, p)}
	y.keeper = newKeeper(y.stepper)
	y.wanted = y.keeper.due
	return y
}

// linkYield gives programs what they call to yield. Where no states are saved it does nothing.
func linkYield(ctx context.Context, rt wazero.Runtime, y func() *yielder) error {
	call := func(ctx context.Context, _ []uint64) {
		if running := y(); running != nil {
			running.yield(ctx)
		}
	}
	_, err := rt.NewHostModuleBuilder(yieldModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(call), nil, nil).Export(yieldName).Instantiate(ctx)
	return err
}

// run calls the program until it ends, and saves a state whenever it has left its frames for that.
func (y *yielder) run(ctx context.Context) supervise.Report {
	end := y.begin(ctx)
	for ; end == nil; end = y.once(ctx) {
		if y.inMemory {
			y.keeper.keep()
		}
	}
	return *end
}

// begin brings the program to where it goes on from, or to its beginning.
func (y *yielder) begin(ctx context.Context) (end *supervise.Report) {
	instance, err := y.program.rt.InstantiateModule(ctx, y.program.compiled, y.guest.config())
	if err != nil {
		return new(linkFailure(err))
	}
	y.instance, y.start = instance, instance.ExportedFunction("_start")
	y.frames = y.pages() * pageBytes
	into := []*api.Function{&y.unwind, &y.unwound, &y.rewind, &y.rewound}
	for i, f := range asyncify {
		*into[i] = instance.ExportedFunction(f.name)
		kind := (*into[i]).Definition()
		if !slices.Equal(kind.ParamTypes(), f.params) || len(kind.ResultTypes()) > 0 {
			y.problem = "its " + f.name + " is not asyncify's"
		}
	}
	if y.inMemory, err = y.restore(); err != nil {
		return new(failure("lay out state", err))
	}
	if !y.inMemory && y.problem == "" {
		if _, grown := instance.Memory().Grow(framePages); !grown {
			y.problem = "there is no memory left for its frames"
			y.guest.memory.denied.Store(false) // the program has asked for none
		}
	}
	return nil
}

// once calls the program until it ends or its frames are in its memory. It returns the end.
func (y *yielder) once(ctx context.Context) (end *supervise.Report) {
	if y.inMemory {
		if _, err := y.rewind.Call(ctx, uint64(y.frames)); err != nil {
			return new(endOf(err))
		}
		y.inMemory, y.entering = false, true
	}
	if _, err := y.start.Call(ctx); err != nil {
		return new(endOf(err))
	}
	if !y.leaving {
		return &supervise.Report{Cause: grid.CauseExited}
	}
	if _, err := y.unwound.Call(ctx); err != nil {
		return new(endOf(err))
	}
	y.leaving, y.inMemory = false, true
	y.steps++
	return nil
}

// yield lets the program leave its frames if a state is wanted, or enter them again. A mistake of
// the program is a trap, which ends it.
func (y *yielder) yield(ctx context.Context) {
	var err error
	switch {
	case y.entering:
		y.entering = false
		_, err = y.rewound.Call(ctx)
	case y.problem == "" && y.wanted():
		place := binary.LittleEndian.AppendUint32(nil, y.frames+frameHead)
		place = binary.LittleEndian.AppendUint32(place, y.frames+framePages*pageBytes)
		y.instance.Memory().Write(y.frames, place)
		y.leaving = true
		_, err = y.unwind.Call(ctx, uint64(y.frames))
	}
	if err != nil {
		panic(err)
	}
}
