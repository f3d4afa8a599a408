//go:build e2e

package wasm

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
)

// What saving costs a job of a minute whose state grows to tens of mebibytes. On a machine that has
// not failed for a week auto takes a state after each interval of Daly, some minutes, and the job
// looks for wishes all the time. To measure, it is asked every 10 s, the shortest interval that
// auto ever takes.
func TestSavingCostsLittle(t *testing.T) {
	const (
		length, every = time.Minute, 10 * time.Second
		week          = 7 * 24 * time.Hour
		most          = .02 // of the run time
	)
	begin := func() job {
		return stepsJob(t, stepsModule(t), nil, strconv.Itoa(1<<30), "100000", "grow")
	}
	work := begin()
	beside := startChild(t, begin(), os.Args[0], ArgRun) // the same without checkpoints
	s, _, _ := inProcess(t, work)
	k := newKeeper(s)
	var saving, sum, longest time.Duration
	states, next := 0, time.Duration(0)
	begun := time.Now()
	for time.Since(begun) < length {
		if since := time.Since(begun); since >= next {
			next += every
			if err := s.states.Ask(false); err != nil {
				t.Fatal(err)
			}
			if err := s.states.Ask(true); err != nil {
				t.Fatal(err)
			}
		}
		before, look := s.states.Look(), time.Now()
		k.look()
		took := time.Since(look)
		saving += took
		if after := s.states.Look(); !lrm.SameState(before, after) {
			states++
			sum += took
			longest = max(longest, took)
		}
		if end := s.once(t.Context()); end != nil {
			t.Fatalf("%+v", end)
		}
	}
	total := time.Since(begun)
	beside.kill()
	alone := beside.cmd.ProcessState.UserTime() + beside.cmd.ProcessState.SystemTime()
	interval, err := ckpt.Daly(longest.Seconds(), week.Seconds())
	if err != nil {
		t.Fatal(err)
	}
	looking := saving - sum
	auto := looking.Seconds()/total.Seconds() + longest.Seconds()/interval
	t.Logf("%d states of %d MiB in %s, %d steps: %.3f %% for looking, %.3f %% for saving every "+
		"%s, the longest %s; auto: %.3f %% with a state every %.0f s; the same job "+
		"beside it used %s of a processor in that time", states, len(stateOf(t, work))>>20,
		total.Round(time.Second), s.steps, 100*looking.Seconds()/total.Seconds(),
		100*sum.Seconds()/total.Seconds(), every, longest, 100*auto, interval,
		alone)
	if states < 5 || auto > most {
		t.Errorf("saving has cost %.3f %% of the run time, want less than 2", 100*auto)
	}
}
