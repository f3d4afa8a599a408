package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// weak is a sandbox that can run nothing at this moment.
type weak struct{ lrm.Adapter }

func (weak) Probe(context.Context) lrm.Support {
	return lrm.Support{Kinds: []grid.WorkKind{grid.KindCommand}, Notes: []string{"one", "two"}}
}

// foreseeing is a sandbox that knows its future, and wants to be asked with a deadline.
type foreseeing struct {
	lrm.Adapter
	answer error
	asked  *step.Verify
}

func (f foreseeing) Verify(ctx context.Context, task grid.Task, start, end time.Time) error {
	*f.asked = step.Verify{Task: task, Start: start, End: end}
	if until, is := ctx.Deadline(); !is || time.Until(until) > verifyTimeout {
		return context.DeadlineExceeded
	}
	return f.answer
}

// Before a place is promised it is asked whether the sandbox could keep it: for as long as the
// plan says, and with what it has now.
func TestWhetherASandboxCouldKeepAPlan(t *testing.T) {
	t.Parallel()
	from := time.UnixMilli(1_900_000_000_000)
	var asked step.Verify
	good := fake.New(fake.Config{})
	for _, c := range []struct {
		name    string
		adapter lrm.Adapter
		plan    time.Duration
		owners  time.Duration
		want    string
	}{
		{"good", good, time.Hour, 0, ""},
		{"as long as may be", good, time.Hour, time.Hour, ""},
		{
			"too long", good, time.Hour + 1, time.Hour,
			"the plan gives it 1h0m0.000000001s, and it would be stopped after 1h0m0s",
		},
		{"weak", weak{good}, time.Hour, 0, "the sandbox cannot run wasm at this moment: one; two"},
		{"foreseen", foreseeing{good, nil, &asked}, time.Hour, 0, ""},
		{"foreseen trouble", foreseeing{good, errForTest, &asked}, time.Hour, 0, errForTest.Error()},
		{"none", nil, time.Hour, 0, "this site does not run wasm"},
	} {
		a := &Agent{ctx: t.Context(), adapters: map[grid.WorkKind]lrm.Adapter{grid.KindWasm: c.adapter}}
		if c.adapter == nil {
			delete(a.adapters, grid.KindWasm)
		}
		a.inForce.terms.MaxRuntime = c.owners
		w := &workshop{a: a}
		asked = step.Verify{}
		e := step.Verify{Attempt: testAttempt, Task: wasmTask(), Start: from, End: from.Add(c.plan)}
		err := w.couldRun(e)
		if got := textOf(err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.HasPrefix(c.name, "foreseen") &&
			(!asked.Start.Equal(e.Start) || !asked.End.Equal(e.End) || asked.Task.ID != e.Task.ID) {
			t.Errorf("%s: asked for %+v", c.name, asked)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The answer is told to the site's machine, for the attempt that was asked for.
func TestTheAnswerAboutAPlanIsTold(t *testing.T) {
	b := newBare(t)
	b.adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: fake.New(fake.Config{})}
	b.work = &workshop{a: b.Agent}
	b.perform(step.Verify{Attempt: testAttempt, Task: wasmTask()})
	command := wasmTask()
	command.Kind = grid.KindCommand
	b.group.Wait()
	b.perform(step.Verify{Attempt: testAttempt, Task: command})
	b.group.Wait()
	b.settle(t)
	want := []step.Verified{
		{Attempt: testAttempt},
		{Attempt: testAttempt, Problem: "this site does not run command"},
	}
	if got := heardOf[step.Verified](&b.ofSite); !slices.Equal(got, want) {
		t.Errorf("told %+v, want %+v", got, want)
	}
}

// Whom to tell when the agent dies is prepared for attempts of others alone, where there is a
// command for that and a way to reach them.
func TestWhomToTellOfADeath(t *testing.T) {
	one, two := mates(t, func(c *Config) { c.Herald = []string{"herald", "now"} })
	eventually(t, "there are ways to the other site", func() bool {
		return len(one.mesh.Ways(two.Self())) > 0
	})
	f := one.work.farewell(testAttempt, two.Self())
	if f == nil {
		t.Fatal("nobody will be told")
	}
	text, err := p2p.DeathNote{
		Attempt: testAttempt, To: two.Self(), Addrs: one.mesh.Ways(two.Self()),
	}.Encode()
	if err != nil || string(f.Text) != string(text) {
		t.Errorf("the note is %q, want %q, %v", f.Text, text, err)
	}
	if want := []string{"herald", "now", one.cfg.P2P.KeyFile}; !slices.Equal(f.Command, want) {
		t.Errorf("the command is %q, want %q", f.Command, want)
	}
	if found := one.left(t, "deaths"); f.Dir != one.work.deaths || len(found) != 0 {
		t.Errorf("notes are left in %s, where there is %q", f.Dir, found)
	}
	if one.work.farewell(testAttempt, one.Self()) != nil {
		t.Error("the site's own submitter would be told, which has died")
	}
	if one.work.farewell(testAttempt, one.cfg.P2P.Allow[0]) != nil {
		t.Error("a site would be told that cannot be reached")
	}
	if two.work.farewell(testAttempt, one.Self()) != nil {
		t.Error("somebody would be told by no command")
	}
}
