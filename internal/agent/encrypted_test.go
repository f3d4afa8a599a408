package agent_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What a job of these tests reads and leaves, so long that it lies in files of blocks.
const (
	markModule = "plainmodule"
	markInput  = "plaininput"
	markFolder = "plainfolder"
	markName   = "plainname"
	markOutput = "plainoutput"
	markLog    = "plainlog"
	markState  = "plainstate"
)

func marks() []string {
	return []string{
		markModule, markInput, markFolder, markName, markOutput, markLog, markState,
	}
}

func long(mark string) string { return strings.Repeat(mark+" ", 2000) }

// reader plays a program that reads its inputs, saves its state, and leaves what it has read. It ends
// only where it starts after its first site was lost.
func reader(lost *atomic.Bool) func(lrm.Attempt) fake.Behaviour {
	return func(a lrm.Attempt) fake.Behaviour {
		read := func(path string) string {
			text, err := os.ReadFile(path)
			if err != nil {
				return err.Error()
			}
			return string(text)
		}
		b := fake.Behaviour{
			Run: -1, Save: 20 * time.Millisecond, Note: long(markState), Stdout: long(markLog),
		}
		if lost.Load() {
			b.Run = time.Second
		}
		seen := "module " + fmt.Sprint(read(a.ModulePath) == long(markModule))
		for _, in := range a.Inputs {
			switch in.SandboxPath {
			case "/in/file":
				seen += ", file " + fmt.Sprint(read(in.HostPath) == long(markInput))
			case "/in/folder":
				inside := read(filepath.Join(in.HostPath, markName))
				seen += ", folder " + fmt.Sprint(inside == long(markFolder))
			}
		}
		b.Files = map[string]string{"/out/x": seen + "\n" + long(markOutput)}
		return b
	}
}

const seenAll = "module true, file true, folder true\n"

// folder is a directory of one file, as it is uploaded.
func folder(t *testing.T) *bytes.Buffer {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	text := long(markFolder)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: markName, Mode: 0o600, Size: int64(len(text)),
	})
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return &packed
}

const keyName = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// secretJob is a job of one task with a module, inputs and an output; its content is encrypted or,
// to compare, in the clear.
func (n *node) secretJob(t *testing.T, encrypted bool) grid.Job {
	t.Helper()
	put := func(path string, u view.Upload, body io.Reader) grid.Input {
		var ref view.DataRef
		var err error
		if encrypted {
			ref, err = n.PutEncrypted(t.Context(), keyName, u, body)
		} else {
			ref, err = n.PutData(t.Context(), u.Tar, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		return grid.Input{Path: path, CID: ref.CID, Bytes: ref.Bytes, Dir: ref.Dir}
	}
	text := func(mark string) io.Reader { return strings.NewReader(long(mark)) }
	job := n.job(t)
	job.Spec.Module = put("/module.wasm", view.Upload{}, text(markModule))
	job.Spec.Inputs = []grid.Input{
		put("/in/file", view.Upload{}, text(markInput)),
		put("/in/folder", view.Upload{Tar: true}, folder(t)),
	}
	job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
	if encrypted {
		job.Spec.Encrypted, job.Encryption.Name = true, keyName
	}
	return job
}

// result reads the one output of a task, as its submitter does.
func (n *node) result(t *testing.T, id grid.TaskID, task view.TaskView) string {
	t.Helper()
	if len(task.Outputs) != 1 {
		t.Fatalf("task = %+v", task)
	}
	ref, body, err := n.GetOutput(t.Context(), id, task.Outputs[0].CID)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || int64(len(text)) != ref.Bytes {
		t.Fatalf("%d bytes of %d: %v", len(text), ref.Bytes, err)
	}
	return string(text)
}

// kept lists the marks in all that an agent has on its disk, blocks, logs and journals, but for the
// directories of attempts that run there.
func (n *node) kept(t *testing.T, what ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(n.cfg.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // gone meanwhile
		}
		inside, _ := filepath.Rel(n.cfg.StateDir, path)
		if top, _, _ := strings.Cut(inside, string(filepath.Separator)); top == "attempts" ||
			top == "modules" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile
		}
		for _, mark := range what {
			if bytes.Contains(text, []byte(mark)) && !slices.Contains(found, mark) {
				found = append(found, mark)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// awards keeps the awards that an agent sends.
type awards struct {
	mu  sync.Mutex
	all []protocol.Award
	to  []grid.SiteID
}

func (w *awards) take(to grid.SiteID, m protocol.Message) bool {
	if behalf, is := m.(protocol.OnBehalf); is {
		m = behalf.Message
	}
	if award, is := m.(protocol.Award); is {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all, w.to = append(w.all, award), append(w.to, to)
	}
	return true
}

// secretMesh is a submitter with two standbys and two sites more, each of which plays the reader.
func secretMesh(t *testing.T, sent *awards, lost *atomic.Bool) []*node {
	t.Helper()
	c := agent.Plans(t, 5)
	c[0].Standbys.Count = 2
	c[0].Taps.Sending = sent.take
	var nodes []*node
	for i := range c {
		c[i].Standbys.Accept = true
		c[i].Adapters[grid.KindWasm] = fake.New(fake.Config{Script: reader(lost)})
		nodes = append(nodes, start(t, c[i], nodes...))
	}
	for _, n := range nodes {
		n.awaitPeers(t, 4)
	}
	agent.Eventually(t, "the first agent has two standbys", func() bool {
		own := nodes[0].standing(t, nodes[0].Self())
		return len(own.Members) == 3 && own.Acting == nodes[0].Self() && !own.Changing
	})
	return nodes
}

// moved runs a job until a checkpoint of it counts, loses its site, and waits for its end
// elsewhere. It gives the task, and the marks that each node has kept.
func moved(
	t *testing.T, nodes []*node, job grid.Job, lost *atomic.Bool,
) (grid.TaskID, view.TaskView, [][]string) {
	t.Helper()
	owner := nodes[0]
	job.Spec.Checkpoint = grid.Saving{Every: time.Second}
	id := owner.submit(t, job)
	var first grid.SiteID
	agent.Eventually(t, "a checkpoint counts", func() bool {
		task := owner.task(t, id)
		first = task.Site
		return task.Saved != nil
	})
	// Inputs and the checkpoint are with the standbys, too, when the owner has asked them for that.
	agent.Eventually(t, "the standbys keep what the job needs", func() bool {
		for _, n := range standbysOf(t, nodes, owner) {
			if !n.Stores().Data.Has(job.Spec.Inputs[0].CID) {
				return false
			}
		}
		return true
	})
	found := make([][]string, len(nodes))
	for i, n := range nodes {
		found[i] = n.kept(t, marks()...)
	}
	lost.Store(true)
	for _, n := range nodes {
		if n.Self() == first {
			n.die(t)
		}
	}
	task := owner.await(t, id, view.PhaseDone)
	if task.Site == first || len(task.Attempts) < 2 {
		t.Errorf("it was at %s, and ended at %s after %d attempts",
			first, task.Site, len(task.Attempts))
	}
	for i, n := range nodes {
		found[i] = append(found[i], n.kept(t, marks()...)...)
		slices.Sort(found[i])
		found[i] = slices.Compact(found[i])
	}
	return id, task, found
}

// An encrypted job with a module, inputs, a checkpoint and an output loses its site and goes on at
// another one, and its result is right. Nothing of it can be read in what any member keeps, its
// submitter, its standbys and its sites included; of the same job in the clear, all can. Its log is
// read while it runs and after.
func TestOnlyItsSitesReadAnEncryptedJob(t *testing.T) {
	t.Parallel()
	for name, encrypted := range map[string]bool{"encrypted": true, "in the clear": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent awards
			var lost atomic.Bool
			nodes := secretMesh(t, &sent, &lost)
			owner := nodes[0]
			standbys := standbysOf(t, nodes, owner)
			id, task, found := moved(t, nodes, owner.secretJob(t, encrypted), &lost)
			want := seenAll + long(markOutput)
			if got := owner.result(t, id, task); got != want {
				t.Errorf("the result has %d bytes and begins %.60q", len(got), got)
			}
			if got := owner.log(t, id, view.LogQuery{Stream: "stdout"}); got != long(markLog) {
				t.Errorf("the log has %d bytes and begins %.60q", len(got), got)
			}
			offset := view.LogQuery{Stream: "stdout", Offset: int64(len(markLog)) + 1}
			if got := owner.log(t, id, offset); len(got) != len(long(markLog))-len(markLog)-1 {
				t.Errorf("from an offset on the log has %d bytes", len(got))
			}
			for i, n := range nodes {
				if encrypted && len(found[i]) > 0 {
					t.Errorf("%s keeps %q in the clear", n.cfg.Name, found[i])
				}
			}
			all := slices.Compact(sorted(found...))
			if !encrypted && !slices.Equal(all, sorted(marks())) {
				t.Errorf("in the clear only %q are found: the search is worth nothing", all)
			}
			for _, standby := range standbys {
				i := slices.Index(nodes, standby)
				if !encrypted && !slices.Contains(found[i], markInput) {
					t.Errorf("the standby %s keeps %q", standby.cfg.Name, found[i])
				}
			}
			if encrypted {
				others := slices.DeleteFunc(slices.Clone(nodes[1:]), func(n *node) bool {
					return slices.Contains(standbys, n) // it may have to award anew
				})
				checkKeys(t, owner, others, &sent)
			}
		})
	}
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return all
}

// checkKeys wants that awards had a key that is not in the clear, that members who are no standbys
// have the key nowhere, and that nobody is shown it.
func checkKeys(t *testing.T, owner *node, others []*node, sent *awards) {
	t.Helper()
	key, err := owner.JobKey(keyName)
	if err != nil {
		t.Fatal(err)
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	if len(sent.all) < 2 {
		t.Fatalf("%d awards", len(sent.all))
	}
	for i, award := range sent.all {
		text, wrong := protocol.Encode(award)
		if wrong != nil || len(award.Key) == 0 || bytes.Contains(text, []byte(string(key))) {
			t.Errorf("award %d to %s: a key of %d bytes, %v", i, sent.to[i], len(award.Key), wrong)
		}
	}
	if bytes.Equal(sent.all[0].Key, sent.all[len(sent.all)-1].Key) {
		t.Error("two sites got the same")
	}
	if len(owner.kept(t, string(key))) == 0 {
		t.Error("the search for keys is worth nothing: its submitter has none")
	}
	for _, n := range others {
		if found := n.kept(t, string(key)); len(found) > 0 {
			t.Errorf("%s keeps the key", n.cfg.Name)
		}
	}
	jobs, err := owner.Jobs(t.Context(), view.JobQuery{Limit: 10})
	if err != nil || len(jobs) == 0 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	detail, err := owner.Job(t.Context(), jobs[0].ID)
	shown := fmt.Sprintf("%+v %#v %+v %#v", jobs, jobs, detail, detail)
	if err != nil || strings.Contains(shown, string(key)) {
		t.Errorf("the key is shown: %v", err)
	}
	if detail.Spec.Encrypt != keyName {
		t.Errorf("it is shown as encrypted with %q", detail.Spec.Encrypt)
	}
}

// The submitter's machine is lost before its job's site is: a standby, which has the job's key,
// awards it anew, and the submitter that comes back reads the result.
func TestAnEncryptedJobOutlivesItsSubmitter(t *testing.T) {
	t.Parallel()
	var sent awards
	var lost atomic.Bool
	nodes := secretMesh(t, &sent, &lost)
	owner := nodes[0]
	// The standbys take no work, as one of them is to act when the site is lost.
	for _, n := range standbysOf(t, nodes, owner) {
		if err := n.Pause(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	id := owner.submit(t, owner.secretJob(t, true))
	first := owner.await(t, id, view.PhaseRunning).Site
	agent.Eventually(t, "the standbys keep its inputs", func() bool {
		for _, n := range standbysOf(t, nodes, owner) {
			if len(n.Stores().Data.Roots()) < 3 {
				return false
			}
		}
		return true
	})
	owner.die(t)
	acting := actsFor(t, nodes[1:], owner.Self())
	lost.Store(true)
	for _, n := range nodes[1:] {
		if n.Self() == first {
			n.die(t)
		}
	}
	agent.Eventually(t, "the job has ended", func() bool {
		return acting.standing(t, owner.Self()).Open == 0
	})
	var alive []*node
	for _, n := range nodes[1:] {
		if n.Self() != first {
			alive = append(alive, n)
		}
	}
	back := start(t, owner.cfg, alive...)
	task := back.await(t, id, view.PhaseDone)
	if got := back.result(t, id, task); task.Site == first || !strings.HasPrefix(got, seenAll) {
		t.Errorf("it ended at %s, was at %s, and begins %.60q", task.Site, first, got)
	}
}
