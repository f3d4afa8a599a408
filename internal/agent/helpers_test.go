package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestMain plays the agent's program, too, where that starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == intake.Arg {
		os.Exit(intake.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m,
		// A process-wide cache of memory statistics of the resource manager's limits.
		goleak.IgnoreTopFunction("github.com/filecoin-project/go-clock.(*realClock).Sleep"))
}

// patience bounds how long a test waits for an expected event, also on a machine that compiles
// other tests meanwhile.
const patience = time.Minute

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("after %s still not true: %s", patience, what)
}

// plans makes the configurations of agents that know each other. The first gives
// nothing and only submits.
func plans(t *testing.T, n int) []Config {
	t.Helper()
	dir := t.TempDir()
	var all []Config
	var members []grid.SiteID
	for i := range n {
		name := string(rune('a' + i))
		state := filepath.Join(dir, name)
		identity, err := p2p.LoadIdentity(filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, identity.Site())
		c := Config{
			StateDir: state, Version: "test", Name: name, Seed: 1,
			P2P: p2p.Config{
				KeyFile: filepath.Join(dir, name+".key"), Listen: []string{"/ip4/127.0.0.1/tcp/0"},
				Domain: "home", Preset: p2p.PresetTest,
			},
			Data:  data.Config{QuotaBytes: 64 << 20},
			Lease: time.Second, LeaseMargin: 200 * time.Millisecond, OutputBytes: 1 << 20,
			Capability: grid.Capability{
				Total: grid.Resources{
					MilliCPUs: 2000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 8000,
				},
				CoreMFLOPS: 4000, DownBps: 1e9, UpBps: 1e9, DiskBps: 1e9,
				Kinds: []grid.WorkKind{grid.KindWasm}, OS: "linux", Arch: "amd64",
			},
			Adapters: map[grid.WorkKind]lrm.Adapter{grid.KindWasm: fake.New(fake.Config{})},
		}
		if i == 0 {
			c.Capability.Total = grid.Resources{
				MilliCPUs: 1, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, MFLOPS: 1,
			}
		}
		all = append(all, c)
	}
	for i := range all {
		all[i].P2P.Allow = members
	}
	return all
}
