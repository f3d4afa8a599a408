package owner

import (
	"cmp"
	"context"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// asked are those that are asked now and then whether the machine is shared. It belongs to one
// goroutine.
type asked struct{ hook, heat, metered, input *asker }

func newAsked(root string) asked {
	return asked{hook: newHook(), heat: newHeat(root), metered: newMetered(), input: newInput()}
}

func (a asked) each(do func(*asker)) {
	for _, one := range [...]*asker{a.hook, a.heat, a.metered, a.input} {
		do(one)
	}
}

// use asks what is to be asked from now on.
func (a asked) use(ctx context.Context, cfg Config) {
	a.hook.use(ctx, cfg.Hook)
	a.heat.use(ctx, asksHeat(cfg.Heat))
	a.metered.use(ctx, asksMetered(cfg.Unmetered))
	a.input.use(ctx, asksInput(cfg.asksInput()))
}

// await waits for the first answer of each.
func (a asked) await(ctx context.Context) { a.each(func(one *asker) { one.await(ctx) }) }

func (a asked) stop() { a.each((*asker).stop) }

// judge adds what they said, which is told before what was seen: the owner's program first. The
// hours outlast all of it. Keyboard and mouse in use give less, or nothing.
func (a asked) judge(s State, cfg Config) State {
	hook, heat, metered, input := a.hook.verdict(), a.heat.verdict(), a.metered.verdict(),
		a.input.verdict()
	s.Hook, s.Heat, s.Input = hook.Trouble, heat.Trouble, input.Trouble
	s.Given = cfg.InUse.While(input.Why != "", s.Given.Cores)
	if !cfg.Input {
		input.Why = ""
	}
	why := cmp.Or(hook.Why, heat.Why, metered.Why, input.Why)
	if why != "" && s.Reason != grid.ReasonOwnerHours {
		s.Reason, s.Why = grid.ReasonOwnerBusy, why
	}
	return s
}
