//go:build e2e

package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// behindOneAddress is how many agents share an address.
const behindOneAddress = 40

// TestManyBehindOneAddress starts agents behind one NAT at the same moment. All
// know only a site outside, which sees them as one address.
func TestManyBehindOneAddress(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, err := newLabMesh(ctx)
	if errors.Is(err, netlab.ErrUnsupported) {
		t.Skip(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	host, err := m.lab.Host(ctx, "outside", netlab.Link{})
	must(err)
	outside, err := newLabSite(ctx, m.dir, "outside", host, twoCores)
	must(err)
	nat, err := m.lab.NAT(ctx, "nat", netlab.NATConfig{})
	must(err)
	m.sites = []*labSite{outside}
	for i := range behindOneAddress {
		name := "in" + strconv.Itoa(i)
		host, err := nat.Inside(ctx, name, netlab.Link{})
		must(err)
		s, err := newLabSite(ctx, m.dir, name, host, submitOnly)
		must(err)
		s.bootstrap = []string{outside.addr()}
		m.sites = append(m.sites, s)
	}
	members := []grid.SiteID{}
	for _, s := range m.sites {
		members = append(members, s.id)
	}
	for _, s := range m.sites {
		must(s.configure(members))
	}
	must(errors.Join(outside.launch(ctx), outside.ready(ctx)))
	began := time.Now()
	for _, s := range m.sites[1:] {
		must(s.launch(ctx))
	}
	peers := 0
	if err := await(ctx, 2*time.Minute, "all are connected to the site outside", func() (bool, error) {
		status, err := outside.client.Status(ctx)
		peers = status.Peers
		return peers == behindOneAddress, err
	}); err != nil {
		last := m.sites[behindOneAddress]
		t.Fatalf("%d of %d: %v\noutside:\n%s\n%s:\n%s", peers, behindOneAddress, err, outside.tail(2000), last.name, last.tail(2000))
	}
	joined := time.Since(began)
	own, resident := 0, 0
	for _, s := range m.sites {
		must(s.ready(ctx))
		own += memoryKiB(t, s.cmd.Process.Pid, "Pss:")
		resident += memoryKiB(t, s.cmd.Process.Pid, "Rss:")
	}
	fmt.Printf("%d agents behind one address are all connected after %s; the %d agents take %d MiB, %d MiB resident each\n",
		behindOneAddress, joined.Round(100*time.Millisecond), len(m.sites), own>>10, resident>>10/len(m.sites))

	// One of them has its job run outside: the data goes out by its connection.
	by := m.sites[17]
	ref, err := by.client.PutData(ctx, false, bytes.NewReader(sleeper("through", tick, 1<<20)))
	must(err)
	id, err := by.client.Submit(ctx, grid.Job{Count: 1, TTL: 5 * time.Second, Spec: grid.Spec{
		Kind: grid.KindWasm, Module: grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}, Runtime: time.Second,
		Weights: grid.DefaultWeights(), Need: grid.Resources{MilliCPUs: 1000, MFLOPS: 1000, MemoryBytes: 128 << 20, DiskBytes: 1 << 20},
	}})
	must(err)
	must(await(ctx, 2*time.Minute, "the job has ended", func() (bool, error) {
		detail, err := by.client.Job(ctx, id)
		return detail.Status.Phase.Ended(), err
	}))
	tasks, err := by.client.AllTasks(ctx, id)
	must(err)
	if len(tasks) != 1 || tasks[0].Phase != view.PhaseDone || tasks[0].Site != outside.id {
		t.Errorf("the job from behind the NAT: %+v", tasks)
	}
	if t.Failed() {
		t.Logf("outside:\n%s\n%s:\n%s", outside.tail(2000), by.name, by.tail(2000))
	}
}

// memoryKiB is the memory of a process: resident as Rss, and as Pss with what it
// shares with others divided among them.
func memoryKiB(t *testing.T, pid int, kind string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(lineWith(string(text), kind))
	if len(fields) < 2 {
		t.Fatalf("the system does not tell the memory of process %d", pid)
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStoppedPeer stops an agent as a debugger or a hanging disk does: its
// connections stay, and nobody reads from them.
func TestStoppedPeer(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores, twoCores)
	long, short := filepath.Join(m.work, "long.wasm"), filepath.Join(m.work, "short.wasm")
	writeFile(t, long, string(sleeper("long", 2*time.Second, 4<<10)))
	writeFile(t, short, string(sleeper("short", tick, 4<<10)))
	held := m.submit(t, "run", "--parsable", "-d", "--wasm", long)
	id := grid.JobID(strings.TrimSpace(held.out))
	stopped := m.holder(t, id)
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := stopped.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = stopped.cmd.Process.Signal(syscall.SIGCONT) }) // or it could not end
	signal(syscall.SIGSTOP)
	began := time.Now()
	for range 3 { // nobody waits for the one that stands still
		m.submit(t, "run", "--wasm", short).want(t, 0)
	}
	blocked := time.Since(began)
	m.submit(t, "wait", string(id)).want(t, 0)
	fmt.Printf("with a peer that stands still three jobs of %s took %s; the job it held had moved and ended after %s\n",
		tick, blocked.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	task := m.tasks(t, id)[0]
	if task.Site == stopped.id || task.Token < 2 {
		t.Errorf("the task did not move: %+v", task)
	}
	signal(syscall.SIGCONT)
	m.awaitWhole(t)
	eventually(t, patience, "the fenced attempt is gone", func() bool { return len(stopped.processes()) == 0 })
	m.audit(t)
}
