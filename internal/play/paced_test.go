package play

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// paced is a mesh of machines that keep journals, in which everything takes a time that is known:
// a second driver beside the simulator, as simple as it can be. Nothing fails in it.
type paced struct {
	t        *testing.T
	now      time.Time
	due      []pacedEvent // in the order of their times
	order    []watched
	machines map[watched]step.Machine
	stores   []*store.Store
	dirs     []string // in the order of the sites
	journals map[watched]*store.Journal
	timers   map[pacedTimer]int // which setting of it counts
	settings int
	held     map[grid.SiteID]map[grid.CID]bool
	slow     func(at time.Duration) time.Duration // what every message takes longer; may be nil
}

type pacedEvent struct {
	at time.Time
	do func()
}

type pacedTimer struct {
	watched

	key step.TimerKey
}

// What takes how long in a paced mesh. A program runs for its estimate and overtime.
const (
	pacedWay     = 7 * time.Millisecond
	pacedOwn     = time.Millisecond
	pacedStage   = 11 * time.Millisecond
	pacedFetch   = 17 * time.Millisecond
	pacedStart   = 130 * time.Millisecond
	pacedCollect = 19 * time.Millisecond
	overtime     = 300 * time.Millisecond
)

var pacedBegin = time.Unix(1_900_000_000, 0).UTC()

// newPaced starts agents with so many cores each, and lets them see each other.
func newPaced(t *testing.T, cores ...int64) *paced {
	t.Helper()
	p := &paced{
		t: t, now: pacedBegin, machines: make(map[watched]step.Machine),
		journals: make(map[watched]*store.Journal), timers: make(map[pacedTimer]int),
		held: make(map[grid.SiteID]map[grid.CID]bool),
	}
	var all []broker.Config
	for i, n := range cores {
		c := broker.Default(grid.SiteID("site" + string(rune('A'+i))))
		c.Name, c.Seed = string(rune('a'+i)), 5
		c.Capability = grid.Capability{
			Total: grid.Resources{
				MilliCPUs: n * 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30, MFLOPS: 1000 * n,
			},
			CoreMFLOPS: 1000, DownBps: 1e9, UpBps: 1e9, OS: "linux", Arch: "amd64",
			Kinds: []grid.WorkKind{grid.KindWasm},
		}
		all = append(all, c)
		p.held[c.Owner] = make(map[grid.CID]bool)
		p.begin(c)
	}
	for _, m := range p.order {
		p.tell(m, step.Boot{Incarnation: 1})
		for _, c := range all {
			if c.Owner != m.site {
				p.tell(m, step.PeerSeen{Site: c.Owner, Name: c.Name, Capability: c.Capability})
			}
		}
	}
	return p
}

// begin makes the machines of a site and their journals.
func (p *paced) begin(c broker.Config) {
	p.t.Helper()
	dir := filepath.Join(p.t.TempDir(), c.Name)
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.stores, p.dirs = append(p.stores, s), append(p.dirs, dir)
	of := site.Default(c.Owner, c.Capability)
	for name, config := range map[string]any{siteMachine: of, brokerMachine: c} {
		m := watched{c.Owner, name == brokerMachine}
		text, err := json.Marshal(config)
		if err != nil {
			p.t.Fatal(err)
		}
		if p.journals[m], err = s.Begin(store.Header{Machine: name, Config: text}); err != nil {
			p.t.Fatal(err)
		}
	}
	own, submits := watched{site: c.Owner}, watched{site: c.Owner, broker: true}
	p.machines[own], p.machines[submits] = site.New(of), broker.New(c)
	p.order = append(p.order, own, submits)
}

// machineOf makes machines as headers of journals say.
func machineOf(h store.Header) (step.Machine, error) {
	var of site.Config
	var by broker.Config
	if h.Machine == brokerMachine {
		err := json.Unmarshal(h.Config, &by)
		return broker.New(by), err
	}
	err := json.Unmarshal(h.Config, &of)
	return site.New(of), err
}

// after plans something.
func (p *paced) after(d time.Duration, do func()) {
	e := pacedEvent{p.now.Add(max(d, 0)), do}
	at := len(p.due)
	for at > 0 && p.due[at-1].at.After(e.at) {
		at--
	}
	p.due = slices.Insert(p.due, at, e)
}

// run lets so much time go by.
func (p *paced) run(d time.Duration) {
	end := p.now.Add(d)
	for len(p.due) > 0 && !p.due[0].at.After(end) {
		e := p.due[0]
		p.due = p.due[1:]
		p.now = e.at
		e.do()
	}
	p.now = end
}

// tell gives a machine an input, notes that, and does what it wants.
func (p *paced) tell(m watched, in step.Input) {
	effects := p.machines[m].Step(p.now, in)
	if err := p.journals[m].Record(p.now, in, effects); err != nil {
		p.t.Fatal(err)
	}
	for _, e := range effects {
		p.carryOut(m, e)
	}
}

func (p *paced) later(d time.Duration, m watched, in step.Input) {
	p.after(d, func() { p.tell(m, in) })
}

func (p *paced) carryOut(m watched, e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		p.send(m.site, e.To, e.Message)
	case step.Broadcast:
		for to := range p.order {
			if !p.order[to].broker {
				p.send(m.site, p.order[to].site, e.Message)
			}
		}
	case step.SetTimer:
		p.setTimer(pacedTimer{m, e.Key}, e.At)
	case step.StopTimer:
		delete(p.timers, pacedTimer{m, e.Key})
	case step.Hold:
		for _, cid := range e.CIDs {
			p.held[m.site][cid] = true
		}
		p.later(0, watched{site: m.site}, step.HeldChanged{Added: e.CIDs})
	case step.Stage:
		p.stage(m, e)
	case step.StartAttempt:
		p.after(pacedStart, func() {
			p.tell(m, step.AttemptStarted{Attempt: e.Attempt})
			run, _ := time.ParseDuration(e.Task.Args[0]) // job wrote it
			p.later(run+overtime, m, step.AttemptExited{Attempt: e.Attempt, Exit: grid.Exit{
				Cause: grid.CauseExited, Wall: run + overtime,
				Stdout: grid.Produced{CID: "bout", Bytes: 10},
			}})
		})
	case step.Collect:
		p.later(pacedCollect, m, step.Collected{Attempt: e.Attempt})
	}
}

func (p *paced) send(from, to grid.SiteID, msg protocol.Message) {
	took := pacedWay
	if p.slow != nil {
		took += p.slow(p.now.Sub(pacedBegin))
	}
	if from == to {
		took = pacedOwn
	}
	p.later(took, watched{to, protocol.ForBroker(msg)},
		step.MessageReceived{From: from, Message: msg})
}

func (p *paced) setTimer(id pacedTimer, at time.Time) {
	p.settings++
	setting := p.settings
	p.timers[id] = setting
	p.after(at.Sub(p.now), func() {
		if p.timers[id] == setting {
			delete(p.timers, id)
			p.tell(id.watched, step.TimerFired{Key: id.key})
		}
	})
}

func (p *paced) stage(m watched, e step.Stage) {
	staged, took := step.Staged{Attempt: e.Attempt}, pacedStage
	if !p.held[m.site][e.Module.CID] {
		staged.Bytes, took = e.Module.Bytes, pacedFetch
	}
	p.after(took, func() {
		if staged.Bytes > 0 {
			p.held[m.site][e.Module.CID] = true
			p.tell(m, step.HeldChanged{Added: []grid.CID{e.Module.CID}})
		}
		p.tell(m, staged)
	})
}

// submit hands jobs to an agent.
func (p *paced) submit(by grid.SiteID, jobs ...grid.Job) {
	for i, j := range jobs {
		p.tell(watched{by, true}, step.Submit{Command: uint64(p.settings + i), Job: j})
	}
}

// end closes the journals, and tells where they are.
func (p *paced) end() (dirs []string) {
	p.t.Helper()
	for _, s := range p.stores {
		if err := s.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	return p.dirs
}

// pacedJob is a job of one task of a core that runs for a time.
func pacedJob(name string, run time.Duration) grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: name, Kind: grid.KindWasm, Args: []string{run.String()},
			Module: grid.Input{Path: "/module.wasm", CID: "bmodule", Bytes: 1000},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, MFLOPS: 1000,
			},
			Runtime: run, Weights: grid.DefaultWeights(),
		},
		Count: 1, TTL: time.Second,
	}
}
