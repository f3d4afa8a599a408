//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestBadJobFiles(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly)
	in := func(name string) string { return filepath.Join(m.work, name) }
	if err := os.Link(bin.guest, in("w.wasm")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, in("text.wasm"), "no module")
	for _, dir := range []string{"linked", "inner"} {
		if err := os.Mkdir(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"linked/out": "/etc/passwd", "direct": "/etc/passwd", "parent": "..",
	} {
		if err := os.Symlink(target, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	const ok = "wasm: ./w.wasm\nruntime: 1m\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":        {"wasm: [", []string{"want YAML or JSON"}},
		"list":           {"[1]", []string{":1:", "want keys with values"}},
		"nothing to run": {"name: x\n", []string{":1:", "exactly one of wasm and command"}},
		"unknown key":    {ok + "runtme: 1m\n", []string{":3:", "runtme", "runtime"}},
		"unknown inner key": {
			ok + "resources: {memroy: 1GiB}\n", []string{":3:", "resources.memroy", "memory"},
		},
		"no unit": {
			ok + "resources:\n  memory: 512\n", []string{":4:", "resources.memory", "512MiB"},
		},
		"wrong unit":     {ok + "ttl: 3 bananas\n", []string{":3:", "ttl", "1s"}},
		"not a number":   {ok + "resources: {cpus: .nan}\n", []string{":3:", "resources.cpus"}},
		"missing module": {"wasm: ./none.wasm\n", []string{":1:", "wasm", "none.wasm"}},
		"no module": {
			"wasm: ./text.wasm\n", []string{":1:", "wasm", "want a WebAssembly module"},
		},
		"missing input": {
			ok + "inputs: [{path: /in/x, from: ./none}]\n", []string{":3:", "inputs[0].from", "none"},
		},
		"input above": {
			ok + "inputs: [{path: /in/x, from: ../../x}]\n", []string{":3:", "inputs[0].from"},
		},
		"link out": {
			ok + "inputs: [{path: /in/x, from: ./direct}]\n", []string{":3:", "inputs[0].from", "direct"},
		},
		"folder linked out": {
			ok + "inputs: [{path: /in/x, from: ./parent}]\n", []string{":3:", "inputs[0].from", "parent"},
		},
		"link in a folder": {
			ok + "inputs: [{path: /in/x, from: ./linked}]\n", []string{":3:", "inputs[0].from", "link"},
		},
		"output above": {
			ok + "outputs: [{path: /out/x, to: ../x}]\n", []string{":3:", "outputs[0].to"},
		},
		"too many tasks": {ok + "count: 1000000\n", []string{":3:", "count"}},
	} {
		file := in(strings.ReplaceAll(name, " ", "-") + ".yaml")
		writeFile(t, file, c.text)
		a := m.submit(t, "job", file)
		if a.code != 2 || a.out != "" {
			t.Errorf("%s: exit code %d, stdout %q; want 2 and nothing", name, a.code, a.out)
		}
		for _, want := range c.want {
			if !strings.Contains(a.err, want) {
				t.Errorf("%s: stderr lacks %q: %s", name, want, a.err)
			}
		}
	}
	m.submit(t, "job", "none.yaml").want(t, 2, "none.yaml")
	m.submit(t, "job").want(t, 2, "job file")
	m.submit(t, "run", "--wasm").want(t, 2)
	m.submit(t, "status", "aaaaaaaaaaaaaaaa").want(t, 3, "not found")
	every := view.JobQuery{}
	if jobs, err := m.sites[0].client.Jobs(t.Context(), every); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs came of it, %v; want none", len(jobs), err)
	}
	unreachable := m.submitCommand(t, "list")
	unreachable.Env = append(unreachable.Env, "MRS_ADDR="+in("no.sock"))
	_ = unreachable.Run() // the code is looked at
	if code := unreachable.ProcessState.ExitCode(); code != 5 {
		t.Errorf("without an agent: exit code %d, want 5", code)
	}
}

func TestBadPrograms(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	fine := m.begin(t, append([]string{"--cpus", "0.1"}, result...), "ticks=50", "put=/out/r:result 0")
	m.awaitPhase(t, fine, view.PhaseRunning)
	broken := filepath.Join(m.work, "broken.wasm")
	writeFile(t, broken, "\x00asm\x01\x00\x00\x00 and then nothing that a runtime knows")
	small := []string{"--cpus", "0.1", "--memory", "64MiB", "--disk", "8MiB"}
	bad := map[string]struct {
		id   grid.JobID
		want string // in how it ended
	}{
		"broken": {id: m.begin(t, append([]string{"--wasm", broken}, small...)), want: "module"},
		"hog":    {id: m.begin(t, small, "hog"), want: "memory"},
		"spin":   {id: m.begin(t, append([]string{"--limit", "1s"}, small...), "spin"), want: "1s"},
		"flood":  {id: m.begin(t, small, "flood"), want: "printed"},
		"fill": {
			id: m.begin(t, append([]string{"--out", "/out/fill0:x"}, small...), "fill"), want: "disk",
		},
	}
	for name, c := range bad {
		a := m.submit(t, "wait", string(c.id))
		task := m.tasks(t, c.id)[0]
		t.Logf("%s ends with code %d: %s: %s", name, a.code, task.Cause, task.Text)
		if !strings.Contains(a.err, c.want) {
			t.Errorf("%s: submit wait does not say %q: %s", name, c.want, a.err)
		}
		if a.code != 125 || task.Phase != view.PhaseFailed ||
			!strings.Contains(task.Cause+" "+task.Text, c.want) {
			t.Errorf(
				"%s: exit code %d, want 125; cause %q text %q, want %q", name, a.code, task.Cause, task.Text,
				c.want,
			)
		}
		if moves := m.job(t, c.id).Moves; moves != 0 {
			t.Errorf(
				"%s: begun %d times again; what is wrong with the program is wrong everywhere", name, moves,
			)
		}
	}
	if phase := m.job(t, fine).Phase; phase != view.PhaseRunning && phase != view.PhaseDone {
		t.Errorf("another job is %s", phase)
	}
	m.wantResults(t, fine, 1)
	m.run(t, "exit=0").want(t, 0)
	m.sites[1].awaitNoProcess(t)
	m.audit(t)
}

// intruder joins the mesh without an agent.
func intruder(t *testing.T, m *mesh, identity string) *p2p.Mesh {
	t.Helper()
	var members []grid.SiteID
	var addrs []string
	for _, s := range m.sites {
		members = append(members, s.id)
		addrs = append(addrs, s.addr())
	}
	mesh, err := p2p.New(context.Background(), p2p.Config{
		KeyFile: identity, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Domain: "home", Name: "intruder",
		Incarnation: 1,
		Allow:       members, Bootstrap: addrs, Preset: p2p.PresetTest,
	}, p2p.Handlers{
		OnMessage:  func(grid.SiteID, protocol.Message) {},
		OnPeerSeen: func(grid.SiteID, p2p.Facts) {},
		OnPeerGone: func(grid.SiteID, bool) {},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mesh.Close() }) // may be closed already
	return mesh
}

func TestIntruders(t *testing.T) {
	t.Parallel()
	m := prepareMesh(t, submitOnly, twoCores)
	member := filepath.Join(m.dir, "member.key")
	identity, err := p2p.LoadIdentity(member)
	if err != nil {
		t.Fatal(err)
	}
	m.also = []grid.SiteID{identity.Site()}
	m.acquaint(t)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	id := m.begin(t, result, "ticks=40", "put=/out/r:result 0")
	holder := m.holder(t, id)
	attempt := grid.AttemptID{Task: grid.TaskID{Job: id}, Token: 1}

	// A member that is not the job's submitter, nor its holder.
	rogue := intruder(t, m, member)
	eventually(
		t, patience, "the rogue member is admitted", func() bool { return len(rogue.Peers()) == 2 },
	)
	later := attempt
	later.Token = 99
	send := func(to *site, messages ...protocol.Message) {
		for _, message := range messages {
			if err := rogue.Send(to.id, message); err != nil {
				t.Errorf("send %T: %v", message, err)
			}
		}
	}
	send(holder, protocol.Cancel{Job: id}, protocol.Fence{Below: []grid.AttemptID{later}},
		protocol.Lease{Renewal: 1, Attempts: []grid.AttemptID{attempt}, Duration: 1})
	send(m.sites[0], protocol.Renew{Renewal: 1, Attempts: []grid.AttemptID{attempt}},
		protocol.Exited{Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseExited}},
		protocol.Progress{Attempt: attempt, Phase: grid.PhaseFrozen})
	counted := func(s *site, event string) int64 {
		status, err := s.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return status.Counters[event]
	}
	eventually(
		t, patience, "the site counts orders by someone else",
		func() bool { return counted(holder, "not_submitter") >= 2 },
	)
	eventually(
		t, patience, "the submitter counts the request for a lease",
		func() bool { return counted(m.sites[0], "fenced") >= 1 },
	)

	// A peer outside the allow-list.
	stranger := intruder(t, m, filepath.Join(m.dir, "stranger.key"))
	eventually(t, patience, "the site counts the stranger", func() bool {
		return strings.Contains(holder.metrics(t), "mrs_p2p_refused_total{reason=")
	})
	for _, s := range m.sites {
		if status, err := s.client.Status(t.Context()); err != nil || status.Peers != 2 {
			t.Errorf(
				"site %s has %d peers, %v; want the other site and the rogue member", s.name, status.Peers, err,
			)
		}
	}
	if err := stranger.Close(); err != nil {
		t.Error(err)
	}

	m.wantResults(t, id, 1)
	if task := m.tasks(t, id)[0]; len(task.Attempts) != 1 {
		t.Errorf("the job was disturbed: %+v", task)
	}
	m.audit(t)
}
