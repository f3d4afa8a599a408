//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// python must be among the programs of the system: tasks see these, and none
// of a home.
const python = "/usr/bin/python3"

// needEngine skips a test where a workflow engine, or what it needs to speak TES, is missing.
func needEngine(t *testing.T, program string) {
	t.Helper()
	needBubblewrap(t)
	if _, err := os.Stat(filepath.Join("/usr/bin", program)); err != nil {
		t.Skipf("%s is not installed among the programs of the system", program)
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import tes").Run(); err != nil {
		t.Skipf("%s cannot speak TES: %s finds no package tes (py-tes)", program, python)
	}
}

// roomy are the settings of a site with space for two jobs of an engine, which ask for a lot.
// They run at low priority: at idle priority each waits for whatever else the machine does.
const roomy = "ceilings: {cpus: 2, memory: 3GiB, disk: 3GiB, gflops: 8}\n" +
	"kinds: wasm,command\nowner: {priority: low}\n"

// engineMesh starts an agent that takes tasks of engines, and three sites that run them. The
// agent's user is in the directory m.work, which tasks may use.
func engineMesh(t *testing.T, settings string) *mesh {
	t.Helper()
	m := prepareMeshWith(t, func(s *site) {
		if s.name == "a" {
			s.web = fmt.Sprintf("127.0.0.1:%d", freePort(t))
			work := filepath.Join(filepath.Dir(s.state), "work")
			s.settings += strings.ReplaceAll(settings, "WORK", work)
		}
	}, submitOnly, roomy, roomy, roomy)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	for _, s := range m.sites[1:] {
		status, err := s.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(status.Kinds, " "), "command") {
			t.Skipf("commands do not work here: %+v", status.Notices)
		}
	}
	return m
}

// engine runs a workflow engine in the directory of the agent's user until the test ends.
type engine struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when cmd has ended
}

// startEngine starts it. In its words and its variables @ stands for the agent's token.
func (m *mesh) startEngine(t *testing.T, env []string, command ...string) *engine {
	t.Helper()
	token := strings.TrimSpace(readFile(t, filepath.Join(m.sites[0].state, "api.token")))
	e := &engine{log: filepath.Join(m.dir, "engine.log"), ended: make(chan struct{})}
	log, err := os.Create(e.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i, word := range command {
		command[i] = strings.ReplaceAll(word, "@", token)
	}
	e.cmd = exec.CommandContext(t.Context(), command[0], command[1:]...)
	e.cmd.Dir, e.cmd.Stdout, e.cmd.Stderr = m.work, log, log
	e.cmd.Env = append(os.Environ(), "HOME="+m.work, "PYTHONDONTWRITEBYTECODE=1")
	for _, v := range env {
		e.cmd.Env = append(e.cmd.Env, strings.ReplaceAll(v, "@", token))
	}
	e.cmd.Cancel = func() error { return e.cmd.Process.Signal(os.Interrupt) }
	e.cmd.WaitDelay = 10 * time.Second
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = e.cmd.Wait() // who asks looks at the process state
		close(e.ended)
	}()
	t.Cleanup(func() {
		<-e.ended // the context of the test has ended
		if t.Failed() {
			t.Logf("the engine said:\n%s", readFile(t, e.log))
		}
	})
	return e
}

// want waits for the engine's end, which must be a good one.
func (e *engine) want(t *testing.T) {
	t.Helper()
	select {
	case <-e.ended:
	case <-time.After(patience):
		t.Fatalf("the engine has not ended")
	}
	if !e.cmd.ProcessState.Success() {
		t.Fatalf("the engine ended with %s", e.cmd.ProcessState)
	}
}

// killInTheMiddle kills a site that runs a task, as soon as so many have ended.
func (m *mesh) killInTheMiddle(t *testing.T, e *engine, after int) {
	t.Helper()
	eventually(t, patience, "a site to run a task in the middle", func() bool {
		select {
		case <-e.ended:
			t.Fatal("the engine ended before")
		default:
		}
		ended, busy := 0, grid.SiteID("")
		for _, job := range m.allJobs(t) {
			switch {
			case job.Phase.Ended():
				ended++
			case job.Phase == view.PhaseRunning:
				busy = m.tasks(t, job.ID)[0].Site
			}
		}
		if ended < after || busy == "" {
			return false
		}
		m.siteOf(busy).kill(t)
		return true
	})
}

// TestSnakemake runs a workflow of 22 jobs over three sites, of which one is killed in the middle.
func TestSnakemake(t *testing.T) {
	t.Parallel()
	needEngine(t, "snakemake")
	if _, err := os.Stat("/usr/bin/python"); err != nil {
		t.Skip("there is no /usr/bin/python, which jobs of Snakemake run")
	}
	m := engineMesh(t, "tes: {images: 'snakemake/snakemake*', files: 'WORK'}\n")
	if err := copyTree("testdata/snakemake", m.work); err != nil {
		t.Fatal(err)
	}
	e := m.startEngine(
		t, []string{"TES_TOKEN=@"}, "snakemake", "--tes", "http://"+m.sites[0].web,
		"--jobs", "20", "--max-status-checks-per-second", "5", "--latency-wait", "0",
	)
	m.killInTheMiddle(t, e, 6)
	e.want(t)
	sum := 0
	for n := range 20 {
		square := (n + 1) * (n + 1)
		got := readFile(t, filepath.Join(m.work, "squares", strconv.Itoa(n)+".txt"))
		if got != strconv.Itoa(square)+"\n" {
			t.Errorf("squares/%d.txt is %q, want %d", n, got, square)
		}
		sum += square
	}
	if got := readFile(t, filepath.Join(m.work, "sum.txt")); got != strconv.Itoa(sum)+"\n" {
		t.Errorf("sum.txt is %q, want %d", got, sum)
	}
	m.wantSpread(t, 22)
	m.audit(t)
}

// allJobs are the jobs of the agent that the engine talks to.
func (m *mesh) allJobs(t *testing.T) []view.JobView {
	t.Helper()
	jobs, err := m.sites[0].client.Jobs(t.Context(), view.JobQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// wantSpread wants at least so many jobs, all done, of which each of the three sites had some; and
// one that was lost with the site that was killed, and ran again.
func (m *mesh) wantSpread(t *testing.T, least int) {
	t.Helper()
	jobs, had, again := m.allJobs(t), map[grid.SiteID]int{}, 0
	if len(jobs) < least {
		t.Errorf("%d jobs, want %d", len(jobs), least)
	}
	for _, job := range jobs {
		if job.Phase != view.PhaseDone {
			t.Errorf("job %s is %s", job.ID, job.Phase)
		}
		for _, attempt := range m.tasks(t, job.ID)[0].Attempts {
			had[attempt.Site]++
			lost := !attempt.Started.IsZero() && attempt.Cause != "exited"
			if lost && !m.siteOf(attempt.Site).alive() {
				again++
			}
		}
	}
	if len(had) != 3 || again == 0 {
		t.Errorf("%d sites had tasks, and %d ran again: %v", len(had), again, had)
	}
}

// TestToil runs a workflow in CWL over three sites, of which one is killed in the middle. Toil's
// workers write into its job store, which is a directory that tasks may change.
func TestToil(t *testing.T) {
	t.Parallel()
	needEngine(t, "toil-cwl-runner")
	m := engineMesh(t, "tes: {images: '*/toil:*', files: 'WORK', mounts: 'WORK/store'}\n")
	if err := copyTree("testdata/toil", m.work); err != nil {
		t.Fatal(err)
	}
	e := m.startEngine(
		t, nil, "toil-cwl-runner", "--batchSystem", "tes", "--tesEndpoint",
		"http://"+m.sites[0].web, "--tesBearerToken", "@", "--jobStore",
		"file:"+filepath.Join(m.work, "store"), "--outdir", "out", "--noLinkImports",
		"--disableCaching", "--defaultMemory", "256Mi", "--defaultDisk", "64Mi",
		"squares.cwl", "numbers.json",
	)
	m.killInTheMiddle(t, e, 6)
	e.want(t)
	if got := readFile(t, filepath.Join(m.work, "out", "sum.txt")); got != "2870\n" {
		t.Errorf("sum.txt is %q, want 2870", got)
	}
	m.wantSpread(t, 20)
	m.audit(t)
}
