package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// factBatch is brought to the disk of the raw limit by one sync, as an entry of a group's log is.
const factBatch = 256 << 10

// measureFacts times how long it takes until an owner's two standbys have the facts of a job of
// many tasks, and until two new standbys have a table that large.
func (b *bench) measureFacts(ctx context.Context) error {
	tasks, rows := burst, int(grid.MaxTasks)
	if b.quick {
		tasks, rows = jobTasks, rows/10
	}
	bytes, err := b.replicateJobs(ctx, tasks)
	if err != nil {
		return err
	}
	return b.sendTables(ctx, rows, bytes/int64(tasks)*int64(rows))
}

// The name of the raw limit.
const rawReplicas = "the bytes over TCP to 2, each 256 KiB synced by all 3"

// replicateJobs times jobs from their submission until both standbys have all that their awards
// say, beside as many bytes over TCP and onto three disks. It tells how many these are.
func (b *bench) replicateJobs(ctx context.Context, tasks int) (bytes int64, err error) {
	t, err := b.newTrio(ctx, "facts")
	if err == nil {
		err = t.grow(ctx)
	}
	var ours, raw sample
	if err == nil {
		err = b.repeat(5, time.Minute, func() error {
			took, grown, wrong := t.replicate(ctx, tasks)
			if wrong != nil {
				return wrong
			}
			if len(ours) == 0 { // later ones find facts of those before, which are on their way out
				bytes = grown
			}
			ours = append(ours, took)
			return timed(&raw, func() error { return b.replicas(ctx, bytes) })
		})
	}
	if err = errors.Join(err, t.close()); err != nil {
		return 0, err
	}
	sum := ours.rates(tasks)
	b.add(figure{
		Figure: fmt.Sprintf("facts of %d tasks at both standbys, from submission", tasks),
		Value:  sum.P50, Unit: "tasks/s", summary: sum,
	}).against(rawReplicas, raw.rates(tasks).P50).atLeast(20_000)
	return bytes, nil
}

// sendTables times how long two new standbys take to get a table of so many rows and bytes.
func (b *bench) sendTables(ctx context.Context, rows int, bytes int64) error {
	var ours, raw sample
	err := b.repeat(5, time.Minute, func() error {
		t, err := b.newTrio(ctx, fmt.Sprint("table", len(ours)))
		if err == nil {
			err = t.fill(rows, bytes)
		}
		if err == nil {
			err = t.grow(ctx)
		}
		ours = append(ours, time.Since(t.asked()))
		return errors.Join(err, t.close(), timed(&raw, func() error {
			return b.replicas(ctx, bytes)
		}))
	})
	if err != nil {
		return err
	}
	b.add(spanned(
		fmt.Sprintf("two new standbys have a table of %d rows, %d MB", rows, bytes/1e6), ours,
		time.Millisecond,
	)).against(rawReplicas, raw.in(time.Millisecond).P50)
	return nil
}

// trio is an owner that wants standbys, and two agents that stand by, with their state on the
// disk. They start when it grows.
type trio struct {
	crowd
	live    context.Context //nolint:containedctx // the life of its agents
	configs []agent.Config
	members []grid.SiteID
}

func (b *bench) newTrio(ctx context.Context, name string) (*trio, error) {
	live, end := context.WithCancel(ctx)
	t := &trio{live: live, crowd: crowd{
		end: end, clears: clears{gone: make(map[grid.JobID]map[grid.SiteID]bool)},
	}}
	for i := range 3 {
		c := b.crowdConfig(2, i)
		c.StateDir = filepath.Join(b.dir, fmt.Sprint(name, i))
		c.P2P.KeyFile = c.StateDir + ".key"
		c.Standbys.Accept = i > 0
		c.Capability.Total = grid.Resources{
			MilliCPUs: 4 * grid.MaxTasks, MemoryBytes: 4 << 40, DiskBytes: 4 << 40,
			MFLOPS: 4 * grid.MaxTasks,
		}
		identity, err := p2p.LoadIdentity(c.P2P.KeyFile)
		if err != nil {
			return t, err
		}
		t.members, t.configs = append(t.members, identity.Site()), append(t.configs, c)
	}
	t.configs[0].Standbys.Count = 2
	return t, nil
}

// fill puts rows into the table of the owner, which has not started.
func (t *trio) fill(rows int, bytes int64) error {
	disk, err := store.Open(t.configs[0].StateDir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	value := []byte(`"` + strings.Repeat("x", int(bytes)/rows) + `"`)
	var facts []step.Fact
	for i := range rows {
		facts = append(facts, step.Fact{
			Kind: broker.FactGroup, Key: fmt.Sprintf("filler %06d", i), Value: value,
		})
	}
	return errors.Join(disk.Apply("broker", facts), disk.Close())
}

// grow starts the agents and waits until the owner has two standbys with all that it has.
func (t *trio) grow(ctx context.Context) error {
	for i := range t.configs {
		t.configs[i].P2P.Allow = t.members
		for _, earlier := range t.nodes {
			t.configs[i].P2P.Bootstrap = append(t.configs[i].P2P.Bootstrap, earlier.Addrs()...)
		}
		//nolint:contextcheck // agents live longer than this call
		if err := t.start(t.live, t.configs[i], t.members[i]); err != nil {
			return err
		}
	}
	owner := t.nodes[0]
	return await(ctx, 2*time.Minute, "two standbys", func() bool {
		groups, err := owner.Groups(ctx)
		if err != nil || len(groups) == 0 || len(groups[0].Members) < 3 || groups[0].Changing {
			return false
		}
		return t.same(ctx)
	})
}

// asked is when the owner first asked for a standby.
func (t *trio) asked() time.Time {
	w := &t.nodes[0].watch
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stood
}

// same reports whether both standbys have all that the owner has.
func (t *trio) same(ctx context.Context) bool {
	want, _ := t.nodes[0].Replica(ctx, t.members[0])
	for _, n := range t.nodes[1:] {
		if has, _ := n.Replica(ctx, t.members[0]); has < want {
			return false
		}
	}
	return true
}

// replicate submits jobs with so many tasks together, waits until all awards have left and both
// standbys have the facts, and withdraws them. It tells how long that took and how many bytes the
// facts are.
func (t *trio) replicate(
	ctx context.Context, tasks int,
) (took time.Duration, bytes int64, err error) {
	owner, others := t.nodes[0], len(t.nodes)-1
	_, before := owner.Replica(ctx, t.members[0])
	jobs := max(tasks/jobTasks, 1)
	done := owner.watch.begin(byEither, jobs*others, tasks)
	defer owner.watch.end()
	job := emptyJob(tasks/jobs, 10*time.Second)
	job.Spec.Need = grid.Resources{
		MilliCPUs: 1, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, MFLOPS: 1,
	}
	began := time.Now()
	var ids []grid.JobID
	for range jobs {
		id, wrong := owner.Submit(ctx, job, "")
		if wrong != nil {
			return 0, 0, wrong
		}
		ids = append(ids, id)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		return 0, 0, fmt.Errorf("%+v of %d tasks", owner.watch.end(), tasks)
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	err = await(ctx, time.Minute, "the standbys to have all", func() bool { return t.same(ctx) })
	took = time.Since(began)
	_, after := owner.Replica(ctx, t.members[0])
	for _, id := range ids {
		if err == nil {
			err = owner.Cancel(ctx, id)
		}
	}
	for _, id := range ids {
		if err == nil {
			err = t.clears.await(ctx, id, others)
		}
	}
	return took, after - before, err
}

// Jobs are as large as what two sites are awarded in one round. Awards are kept back, so a burst is
// to be over before the first of them are given up, after 2 s, and awarded again.
const (
	jobTasks = 10_000
	burst    = 4 * jobTasks
)

// replicas writes as many bytes to a file here and, over TCP, to two others, and waits until all
// three are on the disk. Each 256 KiB are synced, as an entry of a log may be.
func (b *bench) replicas(ctx context.Context, bytes int64) error {
	var wait sync.WaitGroup
	errs := make([]error, 4)
	var conns []net.Conn
	for i := range 2 {
		here, there, err := connect(ctx)
		if err != nil {
			return err
		}
		conns = append(conns, here)
		wait.Go(func() { errs[i] = errors.Join(b.keep(there), there.Close()) })
	}
	here, own := io.Pipe()
	wait.Go(func() { errs[2] = b.keep(here) })
	chunk := make([]byte, factBatch)
	var wrong error
	for left := bytes; left > 0 && wrong == nil; left -= factBatch {
		for _, to := range []io.Writer{conns[0], conns[1], own} {
			_, err := to.Write(chunk[:min(left, factBatch)])
			wrong = errors.Join(wrong, err)
		}
	}
	errs[3] = errors.Join(wrong, conns[0].Close(), conns[1].Close(), own.Close())
	wait.Wait()
	return errors.Join(errs...)
}

// connect makes a TCP connection of this machine with itself.
func connect(ctx context.Context) (here, there net.Conn, err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	var dialer net.Dialer
	if here, err = dialer.DialContext(ctx, "tcp", listener.Addr().String()); err == nil {
		there, err = listener.Accept()
	}
	return here, there, errors.Join(err, listener.Close())
}

// keep writes what it reads into a new file and syncs it after each batch.
func (b *bench) keep(from io.Reader) error {
	f, err := os.CreateTemp(b.dir, "raw-")
	if err != nil {
		return err
	}
	for err == nil {
		if _, err = io.CopyN(f, from, factBatch); err == nil || errors.Is(err, io.EOF) {
			err = errors.Join(err, f.Sync())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
