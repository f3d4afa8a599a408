//go:build e2e

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/freeport"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// patience bounds the time for anything that must happen, on a busy machine.
const patience = 3 * time.Minute

// lease and margin of the test meshes: long enough for a busy machine.
const (
	leaseLength = 2 * time.Second
	leaseMargin = 500 * time.Millisecond
)

// mesh is a few agents on this machine, and a user of the first.
type mesh struct {
	dir   string // of everything
	work  string // where the user is
	sites []*site
	also  []grid.SiteID // members besides the sites
}

// site is one agent.
type site struct {
	name, state, socket, config, log string
	id                               grid.SiteID
	port                             int
	settings                         string // the configuration besides what every site has
	quic                             bool   // it listens for QUIC alone, and else for TCP
	web                              string // address of its interface over TCP; empty = none
	lease                            time.Duration
	cmd                              *exec.Cmd
	ended                            chan struct{} // closed when cmd has ended
	client                           *client.Client
}

// addr is the address others dial.
func (s *site) addr() string { return s.listens() + "/p2p/" + string(s.id) }

func (s *site) listens() string {
	if s.quic {
		return fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", s.port)
	}
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", s.port)
}

// twoCores are the settings of a site that is given little.
const twoCores = "ceilings: {cpus: 2, memory: 1GiB, disk: 1GiB, gflops: 8}\n"

// oneCore gives room for one task of the default size.
const oneCore = "ceilings: {cpus: 1, memory: 1GiB, disk: 1GiB, gflops: 4}\n"

// submitOnly gives so little that no task of the default size fits.
const submitOnly = "ceilings: {cpus: 0.1, memory: 16MiB, disk: 16MiB, gflops: 0.1}\n"

// newMesh starts a mesh with a site for each text of settings, and waits until
// all are connected.
func newMesh(t *testing.T, settings ...string) *mesh {
	t.Helper()
	m := prepareMesh(t, settings...)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	return m
}

// prepareMesh makes the sites without starting them.
func prepareMesh(t *testing.T, settings ...string) *mesh {
	t.Helper()
	return prepareMeshWith(t, nil, settings...)
}

// prepareMeshWith changes each site before it gets its identity.
func prepareMeshWith(t *testing.T, change func(*site), settings ...string) *mesh {
	t.Helper()
	dir, err := os.MkdirTemp(bin.dir, "m") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	m := &mesh{dir: dir, work: filepath.Join(dir, "work")}
	if err := os.Mkdir(m.work, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, text := range settings {
		name := string(rune('a' + i))
		s := &site{
			name: name, state: filepath.Join(dir, name), socket: filepath.Join(dir, name+".sock"),
			config: filepath.Join(dir, name+".yaml"), log: filepath.Join(dir, name+".log"), settings: text,
			port: freePort(t),
		}
		m.sites = append(m.sites, s)
		if change != nil {
			change(s)
		}
		s.init(t)
	}
	m.acquaint(t)
	t.Cleanup(func() { m.end(t) })
	return m
}

// init makes the site's identity.
func (s *site) init(t *testing.T) {
	t.Helper()
	if err := acquire(t.Context(), s.state); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.config, s.base())
	out, err := exec.Command(bin.siteagent, "--config", s.config, "init").Output()
	if err != nil {
		t.Fatalf("siteagent init: %v", err)
	}
	s.id = grid.SiteID(strings.TrimSpace(string(out)))
}

// acquaint writes into each site's configuration who the others are.
func (m *mesh) acquaint(t *testing.T) {
	t.Helper()
	for _, s := range m.sites {
		var peers, bootstrap []string
		for _, other := range m.sites {
			peers = append(peers, string(other.id))
			if other != s {
				bootstrap = append(bootstrap, other.addr())
			}
		}
		for _, id := range m.also {
			peers = append(peers, string(id))
		}
		writeFile(
			t, s.config,
			s.base()+fmt.Sprintf(
				"peers: %q\nbootstrap: %q\n", strings.Join(peers, ","), strings.Join(bootstrap, ","),
			),
		)
	}
}

func (s *site) base() string {
	api := "socket: " + s.socket
	if s.web != "" {
		api += ", listen: '" + s.web + "'"
	}
	return fmt.Sprintf("preset: test\nstate: %s\nname: %s\nlisten: %s\napi: "+
		"{%s}\nlease: {length: %s, margin: %s}\n%s",
		s.state, s.name, s.listens(), api, cmp.Or(s.lease, leaseLength), leaseMargin, s.settings)
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Pick()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts the agent and waits until its interface answers.
func (s *site) start(t *testing.T) {
	t.Helper()
	s.launch(t)
	eventually(t, patience, "the agent "+s.name+" answers", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("the agent %s ended:\n%s", s.name, s.tail())
		default:
		}
		_, err := s.client.Status(t.Context())
		return err == nil
	})
}

// launch starts the agent's process.
func (s *site) launch(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(bin.siteagent, "--config", s.config, "run")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // who asks looks at the process state
		close(ended)
	}()
	if s.client != nil {
		s.client.Close()
	}
	if s.client, err = client.New("unix:"+s.socket, ""); err != nil {
		t.Fatal(err)
	}
}

// kill ends the agent as a power failure would.
func (s *site) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
}

// terminate asks the agent to end and waits until it has.
func (s *site) terminate(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Errorf("the agent %s did not end after SIGTERM", s.name)
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ended
	}
}

func (s *site) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return s.cmd != nil
	}
}

// tail is the end of what the agent told.
func (s *site) tail() string {
	text, _ := os.ReadFile(s.log)
	return string(text[max(0, len(text)-4000):])
}

// processes lists the living processes that work below the site's state: the
// attempts' supervisors and programs, but not the agent.
func (s *site) processes() []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range entries {
		cwd, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(cwd, s.state+"/") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(link), "stat"))
		_, after, _ := bytes.Cut(stat, []byte(") "))
		if err == nil && len(after) > 0 && after[0] != 'Z' && after[0] != 'X' {
			found = append(found, filepath.Base(filepath.Dir(link))+" in "+cwd)
		}
	}
	return found
}

// awaitNoProcess wants every job process of the site gone within 2 s.
func (s *site) awaitNoProcess(t *testing.T) {
	t.Helper()
	left := s.processes()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Second); len(left) > 0 &&
		time.Now().Before(deadline); <-tick.C {
		left = s.processes()
	}
	if len(left) > 0 {
		t.Errorf("2 s later these processes of site %s are left: %v", s.name, left)
	}
}

func (m *mesh) awaitWhole(t *testing.T) {
	t.Helper()
	eventually(t, patience, "all sites are connected", func() bool {
		for _, s := range m.sites {
			if !s.alive() {
				continue
			}
			status, err := s.client.Status(t.Context())
			if err != nil || status.Peers < m.running()-1 {
				return false
			}
		}
		return true
	})
}

func (m *mesh) running() int {
	n := 0
	for _, s := range m.sites {
		if s.cmd != nil && s.alive() {
			n++
		}
	}
	return n
}

// end stops the agents, and shows their logs if the test failed.
func (m *mesh) end(t *testing.T) {
	for _, s := range m.sites {
		if s.cmd != nil && s.alive() {
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, s := range m.sites {
		if s.cmd == nil {
			continue
		}
		s.terminate(t)
		s.client.Close()
		s.awaitNoProcess(t)
		if t.Failed() {
			t.Logf("agent %s:\n%s", s.name, s.tail())
		}
	}
	if err := os.RemoveAll(m.dir); err != nil { // made by prepareMesh, nothing is mounted below it
		t.Error(err)
	}
}

// answer is the outcome of a command.
type answer struct {
	code     int
	out, err string
}

// submit runs the submitter's command line against the first site.
func (m *mesh) submit(t testing.TB, args ...string) answer {
	t.Helper()
	return m.submitWith(t, "", args...)
}

func (m *mesh) submitWith(t testing.TB, stdin string, args ...string) answer {
	t.Helper()
	cmd := m.submitCommand(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("submit %v: %v", args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (m *mesh) submitCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin.submit, args...)
	cmd.Dir = m.work
	cmd.Env = append(
		os.Environ(), "MRS_ADDR="+m.sites[0].socket, "XDG_CONFIG_HOME="+m.work, "NO_COLOR=1",
	)
	return cmd
}

// run submits the guest with these arguments and waits for it.
func (m *mesh) run(t testing.TB, args ...string) answer {
	t.Helper()
	return m.submit(t, append([]string{"run", "--wasm", bin.guest, "--"}, args...)...)
}

// begin submits the guest without waiting, and gives the job's ID.
func (m *mesh) begin(t testing.TB, flags []string, args ...string) grid.JobID {
	t.Helper()
	all := append([]string{"run", "--parsable", "-d", "--wasm", bin.guest}, flags...)
	a := m.submit(t, append(append(all, "--"), args...)...)
	id := grid.JobID(strings.TrimSpace(a.out))
	if a.code != 0 || id.Validate() != nil {
		t.Fatalf("submit run -d: %+v", a)
	}
	return id
}

// want checks a command's exit code and what it printed where.
func (a answer) want(t testing.TB, code int, inErr ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("exit code %d, want %d; stdout %q stderr %q", a.code, code, a.out, a.err)
	}
	for _, part := range inErr {
		if !strings.Contains(a.err, part) {
			t.Errorf("stderr lacks %q: %q", part, a.err)
		}
	}
}

// job is a job's status.
func (m *mesh) job(t testing.TB, id grid.JobID) view.JobView {
	t.Helper()
	detail, err := m.sites[0].client.Job(t.Context(), id)
	if err != nil {
		t.Fatalf("job %s: %v", id, err)
	}
	return detail.Status
}

// tasks are a job's tasks.
func (m *mesh) tasks(t testing.TB, id grid.JobID) []view.TaskView {
	t.Helper()
	tasks, err := m.sites[0].client.AllTasks(t.Context(), id)
	if err != nil {
		t.Fatalf("tasks of %s: %v", id, err)
	}
	return tasks
}

// awaitPhase waits until a job stands there.
func (m *mesh) awaitPhase(t testing.TB, id grid.JobID, phase view.Phase) {
	t.Helper()
	var last view.JobView
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		last = m.job(t, id)
		if last.Phase == phase {
			return
		}
		if last.Phase.Ended() {
			break
		}
	}
	t.Fatalf("job %s is %s, want %s: %+v %+v", id, last.Phase, phase, last, m.tasks(t, id))
}

// holder is the site that a job's only task runs at.
func (m *mesh) holder(t testing.TB, id grid.JobID) *site {
	t.Helper()
	m.awaitPhase(t, id, view.PhaseRunning)
	task := m.tasks(t, id)[0]
	for _, s := range m.sites {
		if s.id == task.Site {
			return s
		}
	}
	t.Fatalf("task %s runs at %s, which is no site of this mesh", task.ID, task.Site)
	return nil
}

// audit wants that nothing was lost and nothing ran twice at the same time.
func (m *mesh) audit(t testing.TB) {
	t.Helper()
	args := []string{"audit"}
	for _, s := range m.sites {
		args = append(args, s.state)
	}
	out, err := exec.Command(bin.siteagent, args...).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "0 lost, 0 doubled") {
		t.Errorf("siteagent audit: %v:\n%s", err, out)
	}
}

// replay wants that every journal gives the same effects again.
func (m *mesh) replay(t testing.TB) {
	t.Helper()
	for _, s := range m.sites {
		out, err := exec.Command(bin.siteagent, "replay", s.state).CombinedOutput()
		if err != nil {
			t.Errorf("siteagent replay of %s: %v:\n%s", s.name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "the same effects") {
				t.Errorf("siteagent replay of %s: %s", s.name, line)
			}
		}
	}
}

// metrics reads what the agent shows to a monitoring system.
func (s *site) metrics(t testing.TB) string {
	t.Helper()
	dialer := net.Dialer{}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", s.socket)
	}
	transport := &http.Transport{DialContext: dial}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s, %v", answer.Status, err)
	}
	return string(text)
}

// command runs an owner's command against a site.
func (s *site) command(t testing.TB, args ...string) answer {
	t.Helper()
	cmd := exec.Command(bin.siteagent, append([]string{"--config", s.config}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("siteagent %v: %v", args, err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}
