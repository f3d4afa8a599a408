package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/given"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// uses sets what a puppet says that it has used.
func (p *puppet) uses(cpu time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu = cpu
}

// given adds up all that was given.
func (b *bench) given() (total given.Share) {
	for _, d := range b.Given(b.ctx) {
		for _, s := range d.Shares {
			total.For, total.Name = s.For, s.Name
			total.CoreSeconds += s.CoreSeconds
			total.Tasks += s.Tasks
		}
	}
	return total
}

// What an attempt uses is accounted for while it runs and at its end, none of it twice, and is
// there after a crash.
func TestWhatAnAttemptIsGiven(t *testing.T) {
	b, p, _ := play(t, wasmTask(), func(c *Config) { c.Name = "me" })
	eventually(t, "it runs", b.running)
	want := given.Share{For: b.Self(), Name: "me", CoreSeconds: 3}
	for range 2 {
		p.uses(3 * time.Second)
		b.work.tally()
		if got := b.given(); got != want {
			t.Errorf("while it runs: %+v, want %+v", got, want)
		}
	}
	p.finished.CPU = 5 * time.Second
	p.end()
	b.wantExit(grid.CauseExited)
	want.CoreSeconds, want.Tasks = 5, 1
	if got := b.given(); got != want {
		t.Errorf("after the end: %+v, want %+v", got, want)
	}
	again, err := given.Open(b.cfg.StateDir, b.log) // as after a crash
	if err != nil {
		t.Fatal(err)
	}
	if days := again.Days(); len(days) != 1 || days[0].Shares[0] != want {
		t.Errorf("on the disk: %+v", days)
	}
}

// What an attempt used that ended for the site's sake counts, its task does not.
func TestATaskThatMovesIsNoTaskGiven(t *testing.T) {
	b, p, _ := play(t, wasmTask())
	eventually(t, "it runs", b.running)
	p.finished.CPU, p.finished.Exit.Cause = time.Second, grid.CauseStopped
	p.end()
	b.wantExit(grid.CauseStopped)
	if got := b.given(); got.CoreSeconds != 1 || got.Tasks != 0 {
		t.Errorf("given: %+v, want 1 s and no task", got)
	}
}

// The last that was used is written when the agent ends.
func TestTheAccountIsClosed(t *testing.T) {
	b, p, _ := play(t, wasmTask())
	eventually(t, "it runs", b.running)
	p.uses(7 * time.Second)
	b.stop()
	again, err := given.Open(b.cfg.StateDir, b.log)
	if err != nil {
		t.Fatal(err)
	}
	if days := again.Days(); len(days) != 1 || days[0].Shares[0].CoreSeconds != 7 {
		t.Errorf("on the disk: %+v", days)
	}
}

// Without its file the account counts for this run, and the owner is told what helps.
func TestWithoutAnAccount(t *testing.T) {
	b, p, _ := play(t, wasmTask(), func(c *Config) {
		if err := os.MkdirAll(filepath.Join(c.StateDir, given.FileName), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	said := false
	for _, n := range b.Config().Notices {
		said = said || strings.HasPrefix(n.Action, "move "+given.FileName)
	}
	if !said {
		t.Errorf("notices: %+v", b.Config().Notices)
	}
	p.finished.CPU = time.Second
	p.end()
	b.wantExit(grid.CauseExited)
	if got := b.given(); got.CoreSeconds != 1 {
		t.Errorf("given: %+v", got)
	}
}
