package scripttest

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	defaultCores = 4
	giftGFLOPS   = 8
	giftMemory   = 4096 // MiB
)

// meshes has the mesh of each script that uses one.
var meshes sync.Map //nolint:gochecknoglobals // testscript gives its commands no other place

// mesh gives a script agents to talk to.
func (h *harness) mesh(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: mesh [-commands] [NAME[:CORES]]...")
	}
	if len(args) == 0 {
		h.once.Do(func() {
			h.shared = plan(h.place, h.place, false, []localmesh.Gift{
				gift("anna", defaultCores),
				gift("ben", defaultCores),
			})
			h.failed = start(h.shared)
		})
		ts.Check(h.failed)
		use(ts, h.shared)
		return
	}
	commands := args[0] == "-commands"
	if commands {
		args = args[1:]
	}
	var gifts []localmesh.Gift
	for _, arg := range args {
		name, text, given := strings.Cut(arg, ":")
		cores := defaultCores
		if given {
			var err error
			cores, err = strconv.Atoi(text)
			ts.Check(err)
		}
		gifts = append(gifts, gift(name, cores))
	}
	own, err := localmesh.MakePlace("mrs-script-") // $WORK is too long for a socket
	ts.Check(err)
	m := plan(own, h.place, commands, gifts)
	ts.Defer(func() {
		if err := m.Stop(context.Background()); err != nil {
			ts.Logf("stop the mesh: %v", err)
		}
		if err := own.Remove(); err != nil {
			ts.Logf("%v", err)
		}
	})
	ts.Check(start(m))
	use(ts, m)
}

func gift(name string, cores int) localmesh.Gift {
	return localmesh.Gift{Name: name, Cores: int64(cores), GFLOPS: giftGFLOPS, Memory: giftMemory}
}

func plan(place, programs *localmesh.Place, commands bool, gifts []localmesh.Gift) *localmesh.Mesh {
	return localmesh.New(place, programs.File("siteagent"), "home", gifts, func(c *config.Agent) {
		if commands {
			c.Kinds, c.Commands = []grid.WorkKind{grid.KindWasm, grid.KindCommand}, Commands()
			c.TES.Images = []string{"debian*"}
		}
	})
}

func start(m *localmesh.Mesh) error {
	if err := m.Start(context.Background(), localmesh.NewScreen(io.Discard, false)); err != nil {
		return m.Explain(fmt.Errorf("start the mesh: %w", err))
	}
	return nil
}

// use points submit and siteagent at the first agent.
func use(ts *testscript.TestScript, m *localmesh.Mesh) {
	first := m.Submitter()
	ts.Setenv("MRS_ADDR", "unix:"+first.Config.API.Socket)
	for _, a := range m.Agents {
		name := strings.ToUpper(a.Name)
		ts.Setenv(name, string(a.ID))
		ts.Setenv(name+"_ADDR", "unix:"+a.Config.API.Socket)
		ts.Setenv(name+"_CONFIG", a.ConfigFile())
	}
	meshes.Store(ts, m)
	ts.Defer(func() { meshes.Delete(ts) })
}

// crash kills an agent.
func crash(ts *testscript.TestScript, neg bool, args []string) {
	known, ok := meshes.Load(ts)
	if neg || len(args) != 1 || !ok {
		ts.Fatalf("usage: crash NAME, after mesh")
	}
	//nolint:forcetypeassert // nothing else is stored
	for _, a := range known.(*localmesh.Mesh).Agents {
		if a.Name == args[0] {
			ts.Check(a.Process.Signal(os.Kill))
			<-a.Exited
			return
		}
	}
	ts.Fatalf("no agent is called %s", args[0])
}
