//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
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

// behindOneAddress is the number of agents that share an address.
const behindOneAddress = 40

// TestManyBehindOneAddress starts agents behind one NAT at the same moment. All
// know only a site outside, which sees them as one address. It is not parallel: while they look
// for ways to each other they take all processors.
func TestManyBehindOneAddress(t *testing.T) {
	ctx := t.Context()
	m, err := newLabMesh(ctx)
	if errors.Is(err, netlab.ErrUnsupported) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, m.close()) })
	must(t, m.placeBehindNAT(ctx))
	outside := m.sites[0]
	must(t, errors.Join(outside.launch(ctx), outside.ready(ctx)))
	began := time.Now()
	for _, s := range m.sites[1:] {
		must(t, s.launch(ctx))
	}
	err = await(ctx, 2*time.Minute, "all are connected to the site outside", func() (bool, error) {
		status, failed := outside.client.Status(ctx)
		return status.Peers == behindOneAddress, failed
	})
	if err != nil {
		t.Fatalf(
			"%v\noutside:\n%s\none of them:\n%s", err, outside.tail(2000),
			m.sites[behindOneAddress].tail(2000),
		)
	}
	joined := time.Since(began)
	shared, resident := 0, 0
	for _, s := range m.sites {
		must(t, s.ready(ctx))
		shared += memoryKiB(t, s.cmd.Process.Pid, "Pss:")
		resident += memoryKiB(t, s.cmd.Process.Pid, "Rss:")
	}
	fmt.Printf("%d agents behind one address are all connected after %s; the %d agents take %d "+
		"MiB, %d MiB resident each\n",
		behindOneAddress, joined.Round(
			100*time.Millisecond,
		), len(m.sites), shared>>10, resident>>10/len(m.sites))
	runOutside(t, m.sites[17], outside)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// placeBehindNAT makes a site outside and the others behind one NAT.
func (m *labMesh) placeBehindNAT(ctx context.Context) error {
	host, err := m.lab.Host(ctx, "outside", netlab.Link{})
	if err != nil {
		return err
	}
	outside, err := newLabSite(ctx, m.dir, "outside", host, twoCores)
	if err != nil {
		return err
	}
	nat, err := m.lab.NAT(ctx, "nat", netlab.NATConfig{})
	if err != nil {
		return err
	}
	m.sites = []*labSite{outside}
	members := []grid.SiteID{outside.id}
	for i := range behindOneAddress {
		name := "in" + strconv.Itoa(i)
		if host, err = nat.Inside(ctx, name, netlab.Link{}); err != nil {
			return err
		}
		s, failed := newLabSite(ctx, m.dir, name, host, submitOnly)
		if failed != nil {
			return failed
		}
		s.bootstrap = []string{outside.addr()}
		m.sites, members = append(m.sites, s), append(members, s.id)
	}
	var errs []error
	for _, s := range m.sites {
		errs = append(errs, s.configure(members))
	}
	return errors.Join(errs...)
}

// runOutside has a site behind the NAT submit a job that only the one outside
// can run: it fetches the data by the connection that came from inside.
func runOutside(t *testing.T, by, outside *labSite) {
	t.Helper()
	ctx := t.Context()
	ref, err := by.client.PutData(ctx, false, bytes.NewReader(sleeper("through", tick, 1<<20)))
	must(t, err)
	id, err := by.client.Submit(ctx, grid.Job{Count: 1, TTL: 5 * time.Second, Spec: grid.Spec{
		Kind: grid.KindWasm, Module: grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes},
		Runtime: time.Second,
		Weights: grid.DefaultWeights(),
		Need: grid.Resources{
			MilliCPUs: 1000, MFLOPS: 1000, MemoryBytes: 128 << 20, DiskBytes: 1 << 20,
		},
	}})
	must(t, err)
	must(t, await(ctx, 2*time.Minute, "the job has ended", func() (bool, error) {
		detail, failed := by.client.Job(ctx, id)
		return detail.Status.Phase.Ended(), failed
	}))
	tasks, err := by.client.AllTasks(ctx, id)
	must(t, err)
	if len(tasks) != 1 || tasks[0].Phase != view.PhaseDone || tasks[0].Site != outside.id {
		t.Errorf(
			"the job from behind the NAT: %+v\noutside:\n%s\n%s:\n%s", tasks, outside.tail(2000), by.name,
			by.tail(2000),
		)
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
	for range 3 { // nobody waits for the stopped one
		m.submit(t, "run", "--wasm", short).want(t, 0)
	}
	blocked := time.Since(began)
	m.submit(t, "wait", string(id)).want(t, 0)
	fmt.Printf("with a stopped peer three jobs of %s took %s; the job it held had moved and ended "+
		"after %s\n",
		tick, blocked.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	task := m.tasks(t, id)[0]
	if task.Site == stopped.id || task.Token < 2 {
		t.Errorf("the task did not move: %+v", task)
	}
	signal(syscall.SIGCONT)
	m.awaitWhole(t)
	eventually(
		t, patience, "the fenced attempt is gone", func() bool { return len(stopped.processes()) == 0 },
	)
	m.audit(t)
}
