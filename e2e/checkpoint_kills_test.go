//go:build e2e

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var checkpointKills = flag.Int("checkpoint-kills", 2,
	"how many agents TestAKilledJobGoesOnSoon ends that run a job with a checkpoint of 16 MiB")

// What was promised for a job whose agent ends and whose state is of 16 MiB: when it runs elsewhere
// if its host refuses the dial, and else; and that it repeats no more than it has done since the
// last checkpoint.
const (
	goesOnWithin = 1500 * time.Millisecond
	silentWithin = 5 * time.Second
	saveEvery    = 2 * time.Second
	stateMiB     = 16
)

// A job whose agent is killed, or falls silent, runs elsewhere from its last checkpoint before
// long, and repeats little. Its program checks the whole state that it goes on from.
func TestAKilledJobGoesOnSoon(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		within time.Duration
	}{
		"refused": {syscall.SIGKILL, goesOnWithin}, "silent": {syscall.SIGSTOP, silentWithin},
	} {
		t.Run(name, func(t *testing.T) {
			m := prepareMeshWith(t, func(s *site) { s.lease = lanLease },
				submitOnly, twoCores, twoCores)
			for _, s := range m.sites {
				s.start(t)
			}
			m.awaitWhole(t)
			var took, lost []time.Duration
			for range *checkpointKills {
				elsewhere, repeated := m.endWithState(t, c.signal)
				took, lost = append(took, elsewhere), append(lost, repeated)
			}
			wantTimes(t, "running elsewhere from its state after", took, c.within)
			wantTimes(t, "work that is repeated", lost, saveEvery)
			m.audit(t)
		})
	}
}

// endWithState ends the agent that runs a job with a large state, at any moment between two
// checkpoints. It tells how long after that the job's program runs elsewhere with that state, and
// how much of its work was for nothing.
func (m *mesh) endWithState(t *testing.T, signal syscall.Signal) (took, lost time.Duration) {
	t.Helper()
	flags := []string{"--checkpoint", fmt.Sprint("every ", saveEvery), "--memory", "256MiB"}
	id := m.begin(t, flags, fmt.Sprint("heavy=", stateMiB), "chain=1000000")
	victim := m.holder(t, id)
	other := m.sites[1]
	if victim == other {
		other = m.sites[2]
	}
	before, after := victim.follow(t, id), other.follow(t, id)
	eventually(t, patience, "a checkpoint counts", func() bool {
		return m.tasks(t, id)[0].Saved != nil
	})
	steps := len(before.said()) + rand.N(int(saveEvery/(10*stepTakes)))
	eventually(t, patience, "it has worked on", func() bool { return len(before.said()) > steps })
	ended := time.Now()
	if err := victim.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the program runs elsewhere", func() bool {
		return len(after.said()) > 0
	})
	first := after.said()[0]
	if want := chainOf(uint64(first.step)); first.step == 0 || first.value != want {
		t.Errorf("it went on from step %d with %d, want %d", first.step, first.value, want)
	}
	took, lost = first.at.Sub(ended), repeated(t, before.said(), first.step, ended)
	m.submit(t, "cancel", string(id)).want(t, 0)
	_ = victim.cmd.Process.Kill() // one that is silent only lives still
	<-victim.ended
	victim.awaitNoProcess(t)
	victim.start(t)
	m.awaitWhole(t)
	return took, lost
}

// stepTakes is about what a step of the guest's chain takes.
const stepTakes = 4 * time.Millisecond

// repeated tells how long a program had worked since a step when its agent ended.
func repeated(t *testing.T, said []saying, step int, ended time.Time) time.Duration {
	t.Helper()
	at := slices.IndexFunc(said, func(s saying) bool { return s.step == step })
	if at < 0 {
		t.Fatalf("it went on from step %d, where it never was", step)
	}
	return ended.Sub(said[at].at)
}

// saying is a line of a program about its steps, and when it was read.
type saying struct {
	step  int
	value uint64
	at    time.Time
}

// follower reads what the program of an attempt says, as soon as it says it. It is safe for
// concurrent use.
type follower struct {
	pattern string // of the file's path

	mu    sync.Mutex
	read  int      // guarded by mu; bytes of the file
	lines []saying // guarded by mu
}

// follow reads what a job's attempt at a site says.
func (s *site) follow(t *testing.T, id grid.JobID) *follower {
	t.Helper()
	f := &follower{pattern: filepath.Join(s.state, "attempts", string(id)+"*", "stderr")}
	ctx := t.Context()
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			f.look(<-tick.C)
		}
	}()
	return f
}

func (f *follower) look(now time.Time) {
	found, _ := filepath.Glob(f.pattern)
	if len(found) == 0 {
		return
	}
	text, err := os.ReadFile(found[0])
	f.mu.Lock()
	defer f.mu.Unlock()
	for err == nil && f.read < len(text) {
		line, _, whole := bytes.Cut(text[f.read:], []byte("\n"))
		if !whole {
			return
		}
		f.read += len(line) + 1
		said := saying{at: now}
		if n, _ := fmt.Sscanf(string(line), "from %d %d", &said.step, &said.value); n == 2 {
			f.lines = append(f.lines, said)
		} else if n, _ := fmt.Sscanf(string(line), "at %d", &said.step); n == 1 {
			f.lines = append(f.lines, said)
		}
	}
}

// said lists what was read so far.
func (f *follower) said() []saying {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}
