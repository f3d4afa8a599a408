//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// labSite is an agent in a namespace of its own, over all its lives. Unlike
// site it reports errors, so that several meshes can be played at the same
// time. It has one owner.
type labSite struct {
	name, dir, state, socket string
	settings                 string // the configuration besides what every site has
	host                     *netlab.Host
	everywhere               bool // listens on all its links
	id                       grid.SiteID
	bootstrap                []string // addresses that it dials; empty: it is dialled
	cmd                      *exec.Cmd
	ended                    chan struct{} // closed when cmd has ended
	client                   *client.Client
	deaths                   []time.Time
	counts                   map[string]int // of its earlier lives
}

// labPort is the port agents listen on: each has an address of its own.
const labPort = 4801

func (s *labSite) addr() string {
	return fmt.Sprintf("/ip4/%s/tcp/%d/p2p/%s", s.host.Addr(), labPort, s.id)
}

// newLabSite makes a site's folders and its identity in a host.
func newLabSite(
	ctx context.Context, dir, name string, host *netlab.Host, settings string,
) (*labSite, error) {
	s := &labSite{
		name: name, dir: dir, state: filepath.Join(dir, name), socket: filepath.Join(dir, name+".sock"),
		settings: settings, host: host, counts: make(map[string]int),
	}
	if err := errors.Join(
		os.Mkdir(s.state, 0o700), copySpeed(ctx, s.state), s.configure(nil),
	); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, bin.siteagent, "--config", s.file(), "init").Output()
	if err != nil {
		return nil, fmt.Errorf("siteagent init: %w", err)
	}
	s.id = grid.SiteID(strings.TrimSpace(string(out)))
	return s, nil
}

// speed is this machine's, measured once for all sites.
var speed struct {
	sync.Mutex
	dir    string
	mflops int64 // of all cores
}

// measureSpeed measures once.
func measureSpeed(ctx context.Context) (int64, error) {
	speed.Lock()
	defer speed.Unlock()
	if speed.dir != "" {
		return speed.mflops, nil
	}
	dir := filepath.Join(bin.dir, "speed")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	machine, err := hostinfo.Probe(ctx, dir)
	if err != nil {
		return 0, err
	}
	found, err := hostinfo.Measure(ctx, machine, dir, hostinfo.Measured{}, hostinfo.Want{Core: true})
	if err != nil {
		return 0, err
	}
	speed.dir, speed.mflops = dir, found.CoreMFLOPS*int64(machine.Cores)
	return speed.mflops, nil
}

func copySpeed(ctx context.Context, state string) error {
	if _, err := measureSpeed(ctx); err != nil {
		return err
	}
	return copyTree(speed.dir, state)
}

func (s *labSite) file() string { return filepath.Join(s.dir, s.name+".yaml") }

func (s *labSite) log() string { return filepath.Join(s.dir, s.name+".log") }

// configure writes the site's configuration; members are all sites of the mesh.
func (s *labSite) configure(members []grid.SiteID) error {
	var peers []string
	for _, id := range members {
		peers = append(peers, string(id))
	}
	at := s.host.Addr()
	if s.everywhere {
		at = netip.IPv4Unspecified()
	}
	text := fmt.Sprintf("state: %s\nname: %s\nlisten: %q\napi: {socket: %s, listen: \"\"}\npeers: "+
		"%q\nbootstrap: %q\n%s",
		s.state, s.name, fmt.Sprintf("/ip4/%[1]s/tcp/%[2]d,/ip4/%[1]s/udp/%[2]d/quic-v1", at, labPort),
		s.socket, strings.Join(peers, ","), strings.Join(s.bootstrap, ","), s.settings)
	return os.WriteFile(s.file(), []byte(text), 0o600)
}

// launch starts the agent's process and does not wait until it answers.
func (s *labSite) launch(ctx context.Context) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.host.Command(ctx, bin.siteagent, "--config", s.file(), "run")
	cmd.Stdout, cmd.Stderr = log, log
	if err = cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // who asks looks at the process state
		close(ended)
	}()
	if s.client == nil {
		s.client, err = client.New("unix:"+s.socket, "")
	}
	return err
}

func (s *labSite) alive() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// ready waits until the agent answers.
func (s *labSite) ready(ctx context.Context) error {
	return await(ctx, patience, "the agent "+s.name+" answers", func() (bool, error) {
		if !s.alive() {
			return false, fmt.Errorf("the agent %s ended:\n%s", s.name, s.tail(2000))
		}
		_, err := s.client.Status(ctx)
		return err == nil, nil
	})
}

// kill ends the agent as kill -9 does, and keeps what it has counted.
func (s *labSite) kill(ctx context.Context) error {
	if status, err := s.client.Status(ctx); err == nil {
		s.add(status.Counters)
	}
	s.deaths = append(s.deaths, time.Now())
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	<-s.ended
	return nil
}

func (s *labSite) add(counters map[string]int64) {
	for event, n := range counters {
		s.counts[event] += int(n)
	}
}

// end asks the agent to end, and makes it if it does not.
func (s *labSite) end() error {
	if !s.alive() {
		return nil
	}
	s.deaths = append(s.deaths, time.Now())
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.ended:
		return nil
	case <-timer.C:
	}
	err := netlab.Kill(s.cmd)
	<-s.ended
	return errors.Join(err, fmt.Errorf("the agent %s did not end after SIGTERM", s.name))
}

// tail is the end of what the agent told.
func (s *labSite) tail(bytes int) string {
	text, _ := os.ReadFile(s.log())
	return string(text[max(0, len(text)-bytes):])
}

// counter is the value of a line of the agent's metrics, 0 if it has none.
func (s *labSite) counter(ctx context.Context, line string) (int, error) {
	dialer := net.Dialer{}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", s.socket)
	}
	transport := &http.Transport{DialContext: dial}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	value := strings.TrimPrefix(strings.TrimSpace(lineWith(string(all), line)), line)
	if strings.TrimSpace(value) == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return int(n), err
}

// labMesh is a mesh in a lab.
type labMesh struct {
	dir   string
	lab   *netlab.Lab
	sites []*labSite
}

// acquaint makes all sites members of one mesh; each dials those before it.
func (m *labMesh) acquaint() error {
	var members []grid.SiteID
	for _, s := range m.sites {
		members = append(members, s.id)
	}
	var before []string
	var errs []error
	for _, s := range m.sites {
		s.bootstrap = append([]string(nil), before...)
		before = append(before, s.addr())
		errs = append(errs, s.configure(members))
	}
	return errors.Join(errs...)
}

// start starts all agents and waits until each is connected to each.
func (m *labMesh) start(ctx context.Context) error {
	for _, s := range m.sites {
		if err := s.launch(ctx); err != nil {
			return err
		}
	}
	for _, s := range m.sites {
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	return await(ctx, patience, "all sites are connected", func() (bool, error) {
		for _, s := range m.sites {
			status, err := s.client.Status(ctx)
			if err != nil || status.Peers < len(m.sites)-1 {
				return false, err
			}
		}
		return true, nil
	})
}

// stop ends all agents.
func (m *labMesh) stop() error {
	var group errgroup.Group
	for _, s := range m.sites {
		group.Go(s.end)
	}
	return group.Wait()
}

// endWith ends the mesh with the test, and shows the sites' logs if that has failed.
func (m *labMesh) endWith(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range m.sites {
				t.Logf("%s:\n%s", s.name, s.tail(4000))
			}
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
}

// close ends what still lives and removes everything.
func (m *labMesh) close() error {
	err := m.stop()
	for _, s := range m.sites {
		if s.client != nil {
			s.client.Close()
		}
	}
	// made by newLabMesh, nothing is mounted below it
	return errors.Join(err, m.lab.Close(), os.RemoveAll(m.dir))
}

// newLabMesh makes an empty mesh.
func newLabMesh(ctx context.Context) (*labMesh, error) {
	lab, err := netlab.New(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(bin.dir, "l")
	if err != nil {
		return nil, errors.Join(err, lab.Close())
	}
	return &labMesh{dir: dir, lab: lab}, nil
}

// startLab makes an empty mesh that ends with the test, or skips it where there are
// no namespaces.
func startLab(ctx context.Context, t *testing.T) *labMesh {
	t.Helper()
	if why := netlab.Supported(ctx); why != "" {
		t.Skip(why)
	}
	m, err := newLabMesh(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// add makes one more site behind a link of its own.
func (m *labMesh) add(
	ctx context.Context, t *testing.T, name string, link netlab.Link, settings string,
) *labSite {
	t.Helper()
	host, err := m.lab.Host(ctx, name, link)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newLabSite(ctx, m.dir, name, host, settings)
	if err != nil {
		t.Fatal(err)
	}
	m.sites = append(m.sites, s)
	return s
}

// await waits until the condition holds; its error ends the waiting.
func await(
	ctx context.Context, limit time.Duration, what string, holds func() (bool, error),
) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("not within %s: %s", limit, what)
}

// until waits for a moment.
func until(ctx context.Context, moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
