package p2p

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// childEnv makes the test binary a site that joins the given bootstrap address
// and runs until it is killed.
const childEnv = "P2P_TEST_CHILD"

func runChild() {
	cfg := Config{
		KeyFile: os.Getenv("P2P_TEST_KEY"), Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Domain: "lab",
		Incarnation: 1, AcceptAnyone: true, Preset: PresetTest, Bootstrap: []string{os.Getenv(childEnv)},
	}
	m, err := New(context.Background(), cfg, Handlers{
		OnMessage:  func(grid.SiteID, protocol.Message) {},
		OnPeerSeen: func(grid.SiteID, Facts) {},
		OnPeerGone: func(grid.SiteID, bool) {},
	}, nil)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("site", m.Self())
	select {}
}

func TestAKilledAgentIsSeenToRefuse(t *testing.T) {
	nodes := cluster(t, 2, nil)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(
		os.Environ(), childEnv+"="+nodes[0].Addrs()[0], "P2P_TEST_KEY="+t.TempDir()+"/key",
	)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatalf("start child: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	site, ok := strings.CutPrefix(strings.TrimSpace(line), "site ")
	if err != nil || !ok {
		t.Fatalf("child said %q, %v", line, err)
	}
	for _, n := range nodes {
		eventually(t, "the child is admitted", func() bool {
			_, ok := n.facts(grid.SiteID(site))
			return ok
		})
		eventually(t, "its address is known", func() bool {
			n.Mesh.mu.Lock()
			r := n.remotes[grid.SiteID(site)]
			n.Mesh.mu.Unlock()
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.knocked) > 0
		})
	}
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("kill: %v", err)
	}
	_ = cmd.Wait()
	for i, n := range nodes {
		eventually(t, "the loss is told", func() bool { return len(n.losses()) > 0 })
		loss := n.losses()[0]
		if loss.site != grid.SiteID(site) || !loss.refusing || len(n.losses()) != 1 {
			t.Errorf("site %d was told %+v, want one loss of a host that refuses: %s", i, n.losses(), site)
		}
		if took := loss.at.Sub(killed); took > 2*time.Second {
			t.Errorf("site %d was told after %s", i, took)
		}
		t.Logf("site %d was told after %s", i, loss.at.Sub(killed))
	}
}
