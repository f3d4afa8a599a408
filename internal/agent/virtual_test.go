package agent_test

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// virtual plays a scenario on the real stack in virtual time: whole agents with
// libp2p hosts, gossip, bitswap, stores on disk; only the sandboxes are scripted
// and the network is simulated.
type virtual struct {
	t     *testing.T
	s     scenario.Scenario
	begin time.Time
	net   *simnet.Simnet
	sites map[string]*virtualSite
	order []*virtualSite
	jobs  []virtualJob
	ids   map[string]grid.JobID   // of jobs, by their names
	byIP  map[string]*virtualSite // guarded by mu

	mu  sync.Mutex
	rng *rand.Rand // guarded by mu
}

// running is an agent and its face.
type running struct {
	*agent.Agent
	*backend.Backend
}

// virtualSite is a site over all its lives. cut and mute are guarded by the
// world's mu.
type virtualSite struct {
	spec   scenario.Site
	dir    string
	key    crypto.PrivKey
	place  int // among the sites, from 0
	lives  int
	host   host.Host
	agent  *running
	end    context.CancelFunc
	done   chan error
	cut    bool // reaches nobody
	mute   bool // says nothing
	leaves bool // it may end by itself
	deaths []time.Time
	counts map[string]int64 // of its earlier lives
}

type virtualJob struct {
	name  string
	by    *virtualSite
	id    grid.JobID
	count int
}

// never is a latency that no scenario sees the end of: the simulated network
// loses nothing.
const never = 1000 * time.Hour

func (v *virtual) latency(p *simnet.Packet) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	from, to := v.byIP[ipOf(p.From)], v.byIP[ipOf(p.To)]
	if from == nil || to == nil || from != to && (from.cut || to.cut || from.mute) ||
		v.rng.Float64() < v.s.Net.Loss {
		return never
	}
	return v.s.Net.Latency + time.Duration(v.rng.Float64()*float64(v.s.Net.Jitter))
}

func ipOf(a net.Addr) string {
	if udp, ok := a.(*net.UDPAddr); ok {
		return udp.IP.String()
	}
	return ""
}

// playVirtual gives the outcome of a scenario on the real stack. It must be
// called in a bubble.
func playVirtual(t *testing.T, dir string, s scenario.Scenario) scenario.Outcome {
	t.Helper()
	v := openVirtual(t, dir, s)
	defer v.net.Close()
	v.begin = time.Now()
	for _, a := range s.Timeline() {
		time.Sleep(time.Until(v.begin.Add(a.At)))
		v.do(a)
	}
	time.Sleep(time.Until(v.begin.Add(s.Run.For)))
	o := v.outcome()
	for _, site := range v.order {
		v.kill(site)
	}
	o.Doubled = v.doubled()
	return o
}

// openVirtual starts the sites of a scenario. The caller closes the network after them.
func openVirtual(t *testing.T, dir string, s scenario.Scenario) *virtual {
	t.Helper()
	v := &virtual{
		t: t, s: s, begin: time.Now(), sites: make(map[string]*virtualSite),
		byIP: make(map[string]*virtualSite),
		ids:  make(map[string]grid.JobID),
		rng:  rand.New(rand.NewPCG(s.Run.Seed, 0)),
	}
	v.net = &simnet.Simnet{LatencyFunc: v.latency, Logger: slog.New(slog.DiscardHandler)}
	v.net.Start()
	for i, spec := range s.Sites {
		site := &virtualSite{
			spec: spec, place: i, dir: filepath.Join(dir, spec.Name), key: newKey(t),
			counts: make(map[string]int64),
		}
		v.sites[spec.Name] = site
		v.order = append(v.order, site)
	}
	for _, site := range v.order {
		v.start(site)
	}
	v.settle()
	return v
}

func newKey(t *testing.T) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// wallNow is its wall clock.
func (s *virtualSite) wallNow() time.Time { return time.Now().Add(s.spec.Skew) }

func (v *virtual) start(site *virtualSite) {
	v.t.Helper()
	ip := simnet.IntToPublicIPv4(site.place + 256*site.lives)
	site.lives++
	v.mu.Lock()
	v.byIP[ip.String()] = site
	v.mu.Unlock()
	site.host = v.newHost(site, ip)
	config := p2p.Config{
		Host: site.host, Domain: site.spec.Domain, AcceptAnyone: true, Preset: p2p.PresetLAN,
		AddressFile: filepath.Join(site.dir, "peers.json"),
		Now:         site.wallNow,
	}
	for _, other := range v.order {
		if other != site && other.host != nil {
			addrs, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{
				ID: other.host.ID(), Addrs: other.host.Addrs(),
			})
			if err != nil {
				v.t.Fatal(err)
			}
			config.Bootstrap = append(config.Bootstrap, addrs[0].String())
		}
	}
	clock := func() lrm.BootTime { return lrm.BootTime(time.Now().UnixNano()) }
	a, err := agent.New(v.t.Context(), agent.Config{
		StateDir: site.dir, Version: "virtual", Name: site.spec.Name, P2P: config,
		Data:       data.Config{QuotaBytes: 1 << 30},
		Capability: site.spec.Capability, Seed: v.s.Run.Seed, BootNow: clock, WallNow: site.wallNow,
		Adapters: map[grid.WorkKind]lrm.Adapter{grid.KindWasm: fake.New(fake.Config{Now: clock})},
	})
	if err != nil {
		v.t.Fatalf("start %s: %v", site.spec.Name, err)
	}
	ctx, cancel := context.WithCancel(v.t.Context())
	site.agent, site.end, site.done = &running{a, backend.New(a)}, cancel, make(chan error, 1)
	go func() {
		err := a.Run(ctx)
		if ctx.Err() == nil && !site.leaves {
			v.t.Errorf("%s ended by itself: %v", site.spec.Name, err)
		}
		site.done <- err
	}()
}

func (v *virtual) newHost(site *virtualSite, ip net.IP) host.Host {
	v.t.Helper()
	bps := func(rate int64) simnet.LinkSettings {
		if rate <= 0 {
			rate = 1_000_000_000
		}
		return simnet.LinkSettings{BitsPerSecond: int(rate)}
	}
	link := simnet.NodeBiDiLinkSettings{
		Downlink: bps(site.spec.Capability.DownBps), Uplink: bps(site.spec.Capability.UpBps),
	}
	h, err := libp2p.New(
		libp2p.Identity(site.key), libp2p.ListenAddrStrings(fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", ip)),
		libp2p.DisableIdentifyAddressDiscovery(), libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableMetrics(), libp2p.DisableRelay(), simlibp2p.QUICSimnet(v.net, link),
	)
	if err != nil {
		v.t.Fatal(err)
	}
	return h
}

// kill crashes an agent, as far as that is possible in one process: its packets
// are lost before it closes anything.
func (v *virtual) kill(site *virtualSite) {
	if site.agent == nil {
		return
	}
	v.mu.Lock()
	for ip, owner := range v.byIP {
		if owner == site {
			delete(v.byIP, ip)
		}
	}
	v.mu.Unlock()
	site.deaths = append(site.deaths, time.Now())
	for event, n := range site.agent.Known().Counters {
		site.counts[event] += n
	}
	site.end()
	if err := errors.Join(<-site.done, site.agent.Close(), site.host.Close()); err != nil {
		v.t.Errorf("kill %s: %v", site.spec.Name, err)
	}
	site.agent, site.host = nil, nil
}

// settle waits until all sites are connected to each other.
func (v *virtual) settle() {
	v.t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		whole := true
		for _, site := range v.order {
			whole = whole && len(site.agent.Stores().Mesh.Peers()) == len(v.order)-1
		}
		if whole {
			time.Sleep(2 * time.Second) // gossip grafts its mesh within a heartbeat
			return
		}
		if time.Now().After(limit) {
			v.t.Fatal("the mesh is not whole after a minute")
		}
	}
}

func (v *virtual) do(a scenario.Action) {
	v.t.Helper()
	site := v.sites[a.Event.Site]
	switch a.Kind {
	case scenario.Crash:
		v.kill(site)
	case scenario.Restart:
		v.start(site)
	case scenario.Isolate, scenario.Rejoin:
		v.set(func() { site.cut = a.Kind == scenario.Isolate })
	case scenario.Silent, scenario.Speak:
		v.set(func() { site.mute = a.Kind == scenario.Silent })
	case scenario.Pause:
		v.must(site.agent.Pause(v.t.Context(), 0))
	case scenario.Resume:
		v.must(site.agent.Resume(v.t.Context()))
	case scenario.Busy:
		v.must(site.agent.Order(v.t.Context(), step.OwnerBusy{
			Reason: grid.ReasonOwnerBusy, Text: "as the scenario says",
		}))
	case scenario.Away:
		v.must(site.agent.Order(v.t.Context(), step.OwnerAway{}))
	case scenario.Upset, scenario.Settle:
		v.t.Fatalf("agents in virtual time know no %s", a.Event.Trouble.Word)
	case scenario.Submit:
		v.submit(a.Event.Submit)
	case scenario.Cancel:
		for _, j := range v.jobs {
			if j.name == a.Event.Job {
				v.must(j.by.agent.Cancel(v.t.Context(), j.id))
			}
		}
	case scenario.Migrate:
		for _, j := range v.jobs {
			if j.name == a.Event.Job {
				v.must(j.by.agent.Migrate(v.t.Context(), j.id, view.MoveRequest{Restart: true}))
			}
		}
	}
}

func (v *virtual) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

func (v *virtual) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// submit stores the data that a scenario's job only names, and submits it.
func (v *virtual) submit(s scenario.Submission) {
	v.t.Helper()
	by := v.sites[s.By]
	if by.agent == nil || !s.Ready(v.ids) {
		return // a user whose agent died has no job
	}
	job := s.Job(v.begin.Add(by.spec.Skew), v.ids)
	job.Spec.Args = []string{"run=" + s.Lasts().String()}
	if s.Reserve {
		job.Spec.Args = nil
	} else {
		job.Spec.Module = v.store(by, job.Spec.Module)
	}
	for i := range job.Spec.Inputs {
		job.Spec.Inputs[i] = v.store(by, job.Spec.Inputs[i])
	}
	for _, name := range s.Names() {
		id, err := by.agent.Command(v.t.Context(), func(n uint64) step.Input {
			return step.Submit{Command: n, Job: job, NoWait: s.NoWait}
		})
		v.must(err)
		v.ids[name] = id
		v.jobs = append(v.jobs, virtualJob{name: name, by: by, id: id, count: int(s.Count)})
	}
}

func (v *virtual) store(by *virtualSite, in grid.Input) grid.Input {
	v.t.Helper()
	content := make([]byte, in.Bytes)
	rng := rand.NewChaCha8(sha256.Sum256([]byte(in.CID))) // the name that the scenario made up
	_, _ = rng.Read(content)
	ref, err := by.agent.PutData(v.t.Context(), false, bytes.NewReader(content))
	v.must(err)
	in.CID = ref.CID
	return in
}

func (v *virtual) outcome() scenario.Outcome {
	v.t.Helper()
	o := scenario.Outcome{
		Peers: make(map[string]int), Heard: make(map[string]int), Sites: make(map[string]int),
		Announced: len(v.jobs),
	}
	for _, site := range v.order {
		if site.agent == nil {
			continue
		}
		o.Peers[site.spec.Name] = len(site.agent.Stores().Mesh.Peers())
		o.Heard[site.spec.Name] = int(site.agent.Stores().Mesh.Count(p2p.CountIn, "Announce"))
		for event, n := range site.agent.Known().Counters {
			site.counts[event] += n
		}
	}
	for _, site := range v.order {
		for event, n := range site.counts {
			o.Sites[event] += int(n)
		}
	}
	o.Brokers = o.Sites // the agent counts the events of its machines together
	names := make(map[grid.SiteID]string)
	for _, site := range v.order {
		if id, err := peer.IDFromPrivateKey(site.key); err == nil {
			names[grid.SiteID(id.String())] = site.spec.Name
		}
	}
	for _, j := range v.jobs {
		o.Jobs = append(o.Jobs, v.jobOutcome(j, names))
	}
	return o
}

func (v *virtual) jobOutcome(j virtualJob, names map[grid.SiteID]string) scenario.JobOutcome {
	v.t.Helper()
	o := scenario.JobOutcome{Name: j.name, Took: -1, Count: j.count}
	if j.by.agent == nil {
		return o
	}
	var state broker.JobState
	known := false
	v.must(j.by.agent.AskBroker(v.t.Context(), func(m *broker.Machine) { state, known = m.Job(j.id) }))
	if !known { // it has left for the history
		record, _, err := j.by.agent.History().Record(j.id)
		v.must(err)
		if record != nil {
			state, err = broker.ReadRecord(j.id, record)
			v.must(err)
		}
	}
	if !state.Ended.IsZero() {
		o.Took = state.Ended.Sub(state.Submitted)
	}
	o.Answers = len(state.Answers)
	for _, task := range state.Tasks {
		o.Tasks = append(o.Tasks, taskOutcome(task, v.begin.Add(j.by.spec.Skew), names))
	}
	return o
}

func taskOutcome(
	t broker.TaskState, begin time.Time, names map[grid.SiteID]string,
) scenario.TaskOutcome {
	o := scenario.TaskOutcome{
		Phase: t.Phase, Site: names[t.Site], First: names[t.Site], Token: int(t.Token.Number()),
	}
	o.NoteStart(t.StartedAt, begin)
	for i, try := range t.Tries {
		o.NoteStart(try.StartedAt, begin)
		if i == 0 {
			o.First = names[try.Site]
		}
		if try.Token < t.Token {
			o.Moves++
		}
	}
	return o
}

// doubled asks the audit, which reads what the agents left on disk.
func (v *virtual) doubled() int {
	v.t.Helper()
	var sources []audit.Source
	for _, site := range v.order {
		sources = append(sources, audit.Source{
			Site: site.spec.Name, StateDir: site.dir, RunRecord: filepath.Join(site.dir, agent.RecordFile),
			Ends: site.deaths,
		})
	}
	records, err := audit.Collect(sources)
	v.must(err)
	report := audit.Audit(records)
	if len(report.Lost) > 0 {
		v.t.Errorf("the audit counts %d lost tasks", len(report.Lost))
	}
	return len(report.Doubled)
}

// TestScenariosOnTheRealStack plays the same files as the simulator does, with
// the same expectations.
func TestScenariosOnTheRealStack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays all scenarios, for a minute: run it without -short")
	}
	paths, err := filepath.Glob("../../testdata/scenarios/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario was found: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if word := s.OnlySimulated(); word != "" {
				t.Skip("only the simulation knows " + word)
			}
			if jobs := len(s.Submissions()); raceDetector && s.Submissions()[jobs-1].Jobs > 100 {
				t.Skip("hundreds of jobs on whole agents take minutes under the race detector; " +
					"they are played without it")
			}
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				o := playVirtual(t, dir, s)
				if err := s.Expect.Check(o); err != nil {
					t.Errorf("%v\n%s", err, o.Summary())
				}
			})
		})
	}
}
