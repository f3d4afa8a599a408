package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// inBubble makes the configuration of an agent that lives alone, in a bubble of virtual time.
func inBubble(t *testing.T, c Config) Config {
	t.Helper()
	sim := &simnet.Simnet{
		LatencyFunc: func(*simnet.Packet) time.Duration { return time.Millisecond },
		Logger:      slog.New(slog.DiscardHandler),
	}
	sim.Start()
	t.Cleanup(sim.Close)
	link := simnet.LinkSettings{BitsPerSecond: 1e9}
	host, err := libp2p.New(
		libp2p.ListenAddrStrings("/ip4/"+simnet.IntToPublicIPv4(1).String()+"/udp/8000/quic-v1"),
		libp2p.DisableIdentifyAddressDiscovery(), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics(), libp2p.DisableRelay(),
		simlibp2p.QUICSimnet(sim, simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	c.P2P = p2p.Config{Host: host, Domain: "home", AcceptAnyone: true, Preset: p2p.PresetLAN}
	c.BootNow = virtualBoot
	return c
}

// Over hours an agent looks after itself: it shortens the run record, writes that it lives,
// learns, makes its ballast anew, and lets go of old jobs.
func TestAnAgentOverHours(t *testing.T) {
	c := plans(t, 2)[1]
	synctest.Test(t, func(t *testing.T) {
		c = inBubble(t, c)
		var said sentence
		var tidied atomic.Int64
		c.Log, c.Ballast = logged(&said, -4), 1<<10
		c.Tidy = func() error { tidied.Add(1); return errForTest }
		c.Past.Jobs = 90 * time.Minute
		b := newBenchOf(t, c)
		begin := time.Now()
		if n := tidied.Load(); n != 1 || said.count("the run record cannot be made shorter") != 1 {
			t.Errorf("at its start it tidied %d times: %s", n, said.String())
		}
		ended := store.HistoryJob{ArchivedJob: step.ArchivedJob{
			Job: "mfrggzdfmztwq2lk", Submitted: begin, Ended: begin, Record: []byte("{}"),
		}}
		if err := b.archive.history.Add([]store.HistoryJob{ended}); err != nil {
			t.Fatal(err)
		}
		lived := filepath.Join(c.StateDir, history.FileName)
		before, err := os.ReadFile(lived)
		if err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(c.StateDir, BallastFile)
		if err = os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Millisecond)
		if _, err = os.Stat(ballast); err != nil {
			t.Errorf("the ballast was not made anew: %v", err)
		}
		if n := tidied.Load(); n != 1+int64(time.Minute/tidyEvery) {
			t.Errorf("in a minute it tidied %d times", n)
		}
		time.Sleep(3 * history.Every)
		after, err := os.ReadFile(lived)
		if err != nil || slices.Equal(before, after) {
			t.Errorf("it does not write that it lives: %v", err)
		}
		learned := func() int { return len(list[step.AvailabilityLearned](b)) }
		if n := learned(); n != 1 {
			t.Errorf("it learned %d times, want once at its start", n)
		}
		sums := func() int64 {
			s, err := b.archive.history.Sums()
			if err != nil {
				t.Error(err)
			}
			return s.Jobs
		}
		time.Sleep(time.Until(begin.Add(80 * time.Minute)))
		if n := learned(); n != 2 || sums() != 1 {
			t.Errorf("after 80 minutes it learned %d times and has %d jobs, want 2 and 1", n, sums())
		}
		time.Sleep(time.Until(begin.Add(140 * time.Minute)))
		if n := learned(); n != 3 || sums() != 0 {
			t.Errorf("after 140 minutes it learned %d times and has %d jobs, want 3 and 0", n, sums())
		}
		if n := b.reports.counters()[eventExpired]; n != 1 || said.count("1 ended jobs left") != 1 {
			t.Errorf("that a job left is counted %d times: %s", n, said.String())
		}
		if n := len(b.outlook.pairs); n != 1 && n != 2 {
			t.Errorf("%d forecasts were checked in 140 minutes", n)
		}
	})
}

// A clock that is set is told to both machines, which learn anew, once.
func TestASetClockIsToldToBothMachines(t *testing.T) {
	c := plans(t, 2)[1]
	synctest.Test(t, func(t *testing.T) {
		c = inBubble(t, c)
		var said sentence
		var set atomic.Int64
		c.Log = logged(&said, 0)
		c.WallNow = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
		b := newBenchOf(t, c)
		time.Sleep(history.Every + history.Every/2) // between two beats, which see steps, too
		if n := len(list[step.ClockStepped](b)); n != 0 {
			t.Errorf("without a step the site is told of %d", n)
		}
		set.Store(int64(time.Hour))
		time.Sleep(lookEvery)
		synctest.Wait()
		want := step.ClockStepped{By: time.Hour}
		s, o := list[step.ClockStepped](b), heardOf[step.ClockStepped](&b.ofBroker)
		if !slices.Equal(s, []step.ClockStepped{want}) || !slices.Equal(o, s) {
			t.Errorf("the site is told %v, the submitter %v, want an hour", s, o)
		}
		if n := len(list[step.AvailabilityLearned](b)); n != 2 {
			t.Errorf("it learned %d times, want at the start and then", n)
		}
		time.Sleep(time.Minute)
		if n := len(list[step.ClockStepped](b)); n != 1 ||
			said.count("clock of this machine was set") != 1 {
			t.Errorf("told %d times: %s", n, said.String())
		}
	})
}

// At its start an agent tells both machines which run they are of, and the site what is here,
// what it has learned, and what its owner wants.
func TestWhatMachinesAreToldFirst(t *testing.T) {
	c := plans(t, 2)[1]
	b := newBenchOf(t, c)
	ref := b.store(t, "held")
	kept := b.Agent.store
	want := step.Boot{
		Incarnation: kept.Incarnation(), Nonce: kept.Nonce(), Line: kept.Line(),
		Clock: b.clock.continuous(history.BootID()),
	}
	if want.Incarnation == 0 || want.Nonce == 0 || want.Line == 0 {
		t.Errorf("a run without a name: %+v", want)
	}
	if err := b.broker.ask(t.Context(), func() {}); err != nil { // it has begun
		t.Fatal(err)
	}
	b.ofBroker.mu.Lock()
	first := slices.Clone(b.ofBroker.heard)
	b.ofBroker.mu.Unlock()
	if len(first) == 0 || first[0] != step.Input(want) {
		t.Errorf("the submitter's machine is told first %+v, want %+v", first, want)
	}
	if boot := await[step.Boot](b); boot != want {
		t.Errorf("the site's machine is told %+v, want %+v", boot, want)
	}
	b.stop()
	b = newBenchOf(t, c)
	if got := await[step.Boot](b).Incarnation; got <= want.Incarnation {
		t.Errorf("the second start is number %d after %d", got, want.Incarnation)
	}
	if held := await[step.HeldChanged](b); !slices.Equal(held.Added, []grid.CID{ref.CID}) {
		t.Errorf("held are %v, want what an earlier run stored", held.Added)
	}
	if n := len(list[step.AvailabilityLearned](b)); n != 1 {
		t.Errorf("it learned %d times", n)
	}
	if n := len(list[step.OwnerBusy](b)); n != 0 {
		t.Errorf("its owner is busy %d times", n)
	}
}

// What an agent keeps is for its user alone.
func TestWhatAnAgentKeepsIsPrivate(t *testing.T) {
	c := plans(t, 2)[1]
	c.Ballast = 1 << 10
	p := newPuppet()
	c.Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: p}
	b := newBenchOf(t, c)
	b.stage()
	seen := 0
	err := filepath.WalkDir(c.StateDir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, os.ErrNotExist) {
			return nil // of a moment
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s", strings.TrimPrefix(path, c.StateDir), info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 8 {
		t.Errorf("%d files and directories, %v", seen, err)
	}
	for _, dir := range []string{"", "attempts", "deaths", "modules", "spare"} {
		info, err := os.Stat(filepath.Join(c.StateDir, dir))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("directory %q: %v, %v", dir, info, err)
		}
	}
}

// unrecoverable is an adapter whose earlier attempts cannot be ended; it looks at what the
// agent has made by then.
type unrecoverable struct {
	lrm.Adapter
	look func()
}

func (u unrecoverable) Recover(context.Context) error { u.look(); return errForTest }

// What keeps an agent from starting is said, and nothing of it stays: the state can be used
// again.
func TestWhatKeepsAnAgentFromStarting(t *testing.T) {
	good := plans(t, 2)[1]
	good.Ballast = 1 << 10
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Config){
		"make the state directory": func(c *Config) { c.StateDir = filepath.Join(file, "state") },
		"recover what an earlier run left: as the test says": func(c *Config) {
			c.Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: unrecoverable{newPuppet(), func() {
				// The ballast of an earlier life may be what the facts need now: it comes first.
				if _, err := os.Stat(filepath.Join(c.StateDir, BallastFile)); err != nil {
					t.Error(err)
				}
			}}}
		},
		"configuration of the machines": func(c *Config) { c.Planning.Policy = "best" },
		"lease: want at least":          func(c *Config) { c.Lease = 1 },
		"MaxRuntime":                    func(c *Config) { c.MaxRuntime = -1 },
		"join the mesh":                 func(c *Config) { c.P2P.Preset = "none" },
		"open the data":                 func(c *Config) { c.Data.QuotaBytes = -1 },
		"open history": func(c *Config) {
			c.StateDir = filepath.Join(t.TempDir(), "state")
			if err := os.MkdirAll(filepath.Join(c.StateDir, store.HistoryFile), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		bad := good
		spoil(&bad)
		a, err := New(t.Context(), bad)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it starts with %v, want %q", err, want)
		}
		if err := a.Close(); err != nil { // once more is once too often, and does not matter
			t.Logf("%s: %v", want, err)
		}
	}
	newBenchOf(t, good)
}
