//go:build e2e

package p2p

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// costEnv names a siteagent, which is flooded by each kind of attack.
const costEnv = "MRS_FLOODED"

// TestWhatAFloodCostsAnAgent floods a real agent as fast as this machine can, and compares what it
// used of a core from the tenth second on with what one member may cost.
func TestWhatAFloodCostsAnAgent(t *testing.T) {
	program := os.Getenv(costEnv)
	if program == "" {
		t.Skip(costEnv + " names no siteagent to be flooded")
	}
	length := time.Minute
	if text := os.Getenv(costEnv + "_FOR"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for kind := range floods {
		t.Run(kind, func(t *testing.T) {
			victim, pid := startVictim(t, program)
			cfg := testConfig(t)
			cfg.Bootstrap = []string{victim.Addrs[0].String() + "/p2p/" + victim.ID.String()}
			honest := startSite(t, cfg)
			eventually(t, "an honest site is there", func() bool { return honest.peers() == 1 })
			a := newAttacker(t, victim)
			usual := usualShare(t, honest, victim, pid)
			ctx, cancel := context.WithTimeout(t.Context(), length)
			defer cancel()
			before := used(t, pid)
			early := time.AfterFunc(10*time.Second, func() {
				now := used(t, pid)
				t.Logf("in the first 10 s: %.1f %% of a core", 10*(now-before).Seconds())
				before = now
			})
			defer early.Stop()
			rounds := make(chan []time.Duration, 1)
			go func() { rounds <- honest.rounds(ctx, wire.SiteOf(victim.ID), 2_000_000) }()
			away := a.attack(ctx, kind)
			took := <-rounds
			share := (used(t, pid) - before).Seconds() / (length - 10*time.Second).Seconds()
			t.Logf("after that: %.1f %% of a core, %.1f %% of it as before the flood; turned away %d times",
				100*share, 100*usual, away)
			slices.Sort(took)
			p95 := took[len(took)*95/100]
			t.Logf("%d honest rounds: half within %s, 95 %% within %s, all within %s",
				len(took), took[len(took)/2], p95, took[len(took)-1])
			if p95 > 150*time.Millisecond || len(honest.losses()) > 0 {
				t.Errorf("honest rounds take %s, lost %v", p95, honest.losses())
			}
			if share > 0.05 {
				t.Errorf("a flood of %s costs too much, want at most 5 %%", kind)
			}
		})
	}
}

// usualShare has the part of a core that the victim uses for an honest site, without a flood.
func usualShare(t *testing.T, honest node, victim peer.AddrInfo, pid int) float64 {
	t.Helper()
	const length = 10 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	before := used(t, pid)
	honest.rounds(ctx, wire.SiteOf(victim.ID), 1_000_000)
	return (used(t, pid) - before).Seconds() / length.Seconds()
}

// rounds asks a site for offers again and again, by announcements that are numbered from the first
// one on, and tells how long each answer took.
func (n node) rounds(ctx context.Context, site grid.SiteID, first int) (took []time.Duration) {
	for ctx.Err() == nil {
		began, before := time.Now(), n.count()
		if n.Send(site, announcement(n.Self(), first+len(took))) != nil {
			break
		}
		for n.count() == before && ctx.Err() == nil {
			wire.Pause(ctx, time.Millisecond, nil)
		}
		if ctx.Err() == nil {
			took = append(took, time.Since(began))
		}
		wire.Pause(ctx, 100*time.Millisecond, nil)
	}
	return took
}

// startVictim runs an agent in a directory of its own.
func startVictim(t *testing.T, program string) (peer.AddrInfo, int) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "siteagent.yaml")
	text := "state: " + dir + "/state\ndomain: lab\naccept: anyone\n" +
		"listen: [/ip4/127.0.0.1/tcp/0]\napi:\n  socket: " + dir + "/s\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--config", file)
	log := filepath.Join(dir, "log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log)
			t.Logf("the agent said: %s", said)
		}
	})
	var info *peer.AddrInfo
	eventually(t, "the agent says where it listens", func() bool {
		said, _ := os.ReadFile(log)
		for _, word := range strings.FieldsFunc(string(said), func(r rune) bool {
			return strings.ContainsRune(" \n\"=,[]", r)
		}) {
			if strings.Contains(word, "/p2p/") {
				info, err = peer.AddrInfoFromString(word)
				return err == nil
			}
		}
		return false
	})
	return *info, cmd.Process.Pid
}

// used is the processor time that a process has used.
func used(t *testing.T, pid int) time.Duration {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
