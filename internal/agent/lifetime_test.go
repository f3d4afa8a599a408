package agent

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An agent ends without an error when it is told to, and with the reason otherwise.
func TestHowAnAgentEnds(t *testing.T) {
	for name, c := range map[string]struct {
		leave error
		want  error
	}{
		"told to":          {nil, nil},
		"by its owner":     {errStopped, nil},
		"for other causes": {errForTest, errForTest},
	} {
		b := newBare(t)
		if c.leave != nil {
			b.leave(c.leave)
			<-b.site.ended // by itself
			<-b.broker.ended
		}
		if err := b.end(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		b.end = func() error { return nil }
	}
}

// A machine that breaks ends the other one, too, and its journal tells why.
func TestABrokenMachineEndsTheAgent(t *testing.T) {
	b := newBare(t)
	b.broker.machine = scripted(func(time.Time, step.Input) []step.Effect { panic("lost count") })
	b.broker.tell(step.Resume{})
	<-b.site.ended
	if err := b.end(); err == nil || err.Error() != "broker machine: lost count" {
		t.Errorf("the agent ends with %v", err)
	}
	b.end = func() error { return nil }
	for _, text := range []string{
		"the machine broke an invariant", "machine=broker", "lost count", "stack=",
	} {
		if b.said.count(text) == 0 {
			t.Errorf("the log lacks %q: %s", text, b.said.String())
		}
	}
}

// An agent that hears of a newer run of its site ends with that reason, and leaves a note, so
// that it does not start again.
func TestAnAgentGivesWay(t *testing.T) {
	for _, noted := range []bool{true, false} {
		b := newBare(t)
		b.cfg.StateDir = filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(b.cfg.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if b.store, err = store.OpenWith(b.cfg.StateDir, store.Options{}, b.log); err != nil {
			t.Fatal(err)
		}
		if !noted {
			if err = os.RemoveAll(filepath.Clean(b.cfg.StateDir)); err != nil { // made above
				t.Fatal(err)
			}
		}
		newer := protocol.Run{Number: 9, SinceMS: 1_900_000_000_000}
		b.giveWay(newer)
		<-b.site.ended
		if err = b.end(); !errors.Is(err, store.ErrSuperseded) ||
			!strings.Contains(err.Error(), b.cfg.StateDir) {
			t.Errorf("the agent ends with %v", err)
		}
		b.end = func() error { return nil }
		got, is, err := store.Superseded(b.cfg.StateDir)
		want := store.Newer{Incarnation: 9, Since: newer.Since()}
		if is != noted || noted && (got.Incarnation != want.Incarnation || !got.Since.Equal(want.Since)) {
			t.Errorf("noted is %+v, %t, %v, want %+v", got, is, err, want)
		}
		if said := b.said.count("the next start does not know"); (said == 0) != noted {
			t.Errorf("noted %t, and said %d times that it is not", noted, said)
		}
		if err := b.store.Close(); err != nil && noted {
			t.Error(err)
		}
	}
}

// An agent whose loops were never made, as its start failed, tells nobody anything.
func TestAnAgentThatNeverWoke(t *testing.T) {
	t.Parallel()
	one := newLoop("test", nil, nil, newClock(nil, nil), nil, nil)
	for _, loops := range [][2]*loop{{}, {one, nil}} {
		a := &Agent{ready: make(chan struct{}), checks: newChecks(), site: loops[0], broker: loops[1]}
		close(a.ready)
		if a.awake() {
			t.Error("it is said to be awake")
		}
		a.tellBoth(step.Resume{})
		a.tellBans()
		a.received("other", protocol.Cancel{})
		if loops[0] != nil && len(loops[0].queue) != 0 {
			t.Errorf("told %+v", loops[0].queue)
		}
	}
}

// awaitOwners waits until a started agent has let go of what nobody owns: its submitter's machine
// has booted, and its loop has asked the site's.
func (b *bench) awaitOwners() {
	b.t.Helper()
	eventually(b.t, "the submitter's machine boots", func() bool {
		return len(heardOf[step.Boot](&b.ofBroker)) > 0
	})
	done := make(chan struct{})
	b.broker.soon(func() { b.site.soon(func() { close(done) }) })
	<-done
}

// What an earlier run kept for nobody is let go at the start, unless the history that could tell
// for whom it was kept is damaged, which is said.
func TestWhatNobodyOwnsAtTheStart(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		c := plans(t, 2)[1]
		c.Notices = make([]view.Notice, 1, 9) // with room, which is the caller's
		b := newBenchOf(t, c)
		b.awaitOwners()
		cid := b.add("kept for somebody")
		if err := b.data.Pin(cid, time.Time{}); err != nil {
			t.Fatal(err)
		}
		b.stop()
		if damaged {
			path := filepath.Join(c.StateDir, store.HistoryFile)
			if err := os.WriteFile(path, []byte(strings.Repeat("rubbish", 9000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b = newBenchOf(t, c)
		b.awaitOwners()
		b.wantPin(cid, pin{damaged, damaged}, "after the start")
		notices := b.Config().Notices
		if len(notices) != 1 != damaged {
			t.Errorf("damaged %t: notices %+v", damaged, notices)
		}
		if damaged && (!strings.Contains(notices[1].Text, "damaged") ||
			!strings.Contains(notices[1].Action, b.archive.history.DamagedFile())) {
			t.Errorf("it is said as %+v", notices[1])
		}
		if spare := c.Notices[:2][1]; spare.Text != "" {
			t.Errorf("the caller's own notices were changed: %+v", spare)
		}
	}
}

// A state that was moved here is taken for restored until it was taken up, and no longer.
func TestARestoredStateIsTakenUpOnce(t *testing.T) {
	c := plans(t, 2)[1]
	c.Machine = "one"
	restored := func() bool {
		b := newBenchOf(t, c)
		boot := await[step.Boot](b)
		if err := b.broker.ask(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		if told := heardOf[step.Boot](&b.ofBroker); len(told) != 1 || told[0] != boot {
			t.Errorf("the submitter's machine is told %+v, the site's %+v", told, boot)
		}
		b.stop()
		return boot.Restored
	}
	if restored() {
		t.Error("the first start counts as restored")
	}
	if err := store.Adopt(c.StateDir, "two"); err != nil {
		t.Fatal(err)
	}
	c.Machine = "two"
	if !restored() {
		t.Error("a state that was moved does not count as restored")
	}
	if restored() {
		t.Error("it still counts as restored after it was taken up")
	}
}

// What the machines are told of bans and of how far data moves comes at the start as well.
func TestWhatIsKnownFromEarlierRuns(t *testing.T) {
	c := plans(t, 2)[1]
	b := newBenchOf(t, c)
	other := c.P2P.Allow[0]
	if _, err := b.members.Ban(other, "other", ""); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b = newBenchOf(t, c)
	if bans := await[step.BansChanged](b); !slices.Equal(bans.Banned, []grid.SiteID{other}) {
		t.Errorf("banned are %v", bans.Banned)
	}
	b.stop()
	if err := b.Close(); err != nil { // it is closed already
		t.Errorf("closed once more: %v", err)
	}
	if b.Self() != c.P2P.Allow[1] || len(b.Addrs()) == 0 && b.Addrs() != nil {
		t.Errorf("it is %s at %v", b.Self(), b.Addrs())
	}
}

// A site's death certificate reaches the machine of the submitter that it is for.
func TestADeathCertificateIsTold(t *testing.T) {
	t.Parallel()
	one, two := mates(t, func(c *Config) { c.Herald = []string{"herald"} })
	eventually(t, "there is a way", func() bool { return len(one.mesh.Ways(two.Self())) > 0 })
	f := one.work.farewell(testAttempt, two.Self())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note"), f.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	one.stop()
	// It ignores these, as it expects to have a process for itself.
	t.Cleanup(func() { signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) })
	if code := p2p.TellDeaths(append(f.Command[1:], dir)); code != 0 {
		t.Errorf("it is told with exit code %d", code)
	}
	var died []step.AttemptsDied
	eventually(t, "it is told", func() bool {
		died = heardOf[step.AttemptsDied](&two.ofBroker)
		return len(died) > 0
	})
	if len(died) != 1 || died[0].Site != one.cfg.P2P.Allow[1] ||
		!slices.Equal(died[0].Attempts, []grid.AttemptID{testAttempt}) {
		t.Errorf("died are %+v", died)
	}
	if n := len(list[step.AttemptsDied](two)); n != 0 {
		t.Errorf("the site's machine hears of it %d times", n)
	}
}

// Questions are answered on the machines' own goroutines, by the machines themselves.
func TestQuestionsOfMachines(t *testing.T) {
	b := newBare(t)
	ctx, cancel := context.WithCancel(t.Context())
	gate := make(chan struct{})
	b.site.soon(func() { <-gate })
	cancel()
	asked := false
	if err := b.site.ask(ctx, func() { asked = true }); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up is told %v", err)
	}
	close(gate)
	b.settle(t)
	if asked {
		t.Error("a question that nobody waits for was asked")
	}
}
