package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Habits of checks.
const (
	checkWait  = 4 * time.Second        // for one site's answer
	checkTTL   = 2 * time.Second        // of the probe that it announces
	checkPause = 250 * time.Millisecond // between two probes for others
	checkQueue = 4                      // checks of others that wait
)

// checks matches answers with who waits for them, and bounds what others may
// ask. It is safe for concurrent use.
type checks struct {
	slots chan struct{} // a token for each check of others that is under way
	turn  sync.Mutex    // held while one is carried out

	mu      sync.Mutex
	last    uint64                             // guarded by mu
	waiting map[question]chan protocol.Checked // guarded by mu
}

type question struct {
	site   grid.SiteID
	number uint64
}

func newChecks() *checks {
	return &checks{
		slots: make(chan struct{}, checkQueue), waiting: make(map[question]chan protocol.Checked),
	}
}

func (c *checks) ask(site grid.SiteID) (question, chan protocol.Checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	q := question{site, c.last}
	answer := make(chan protocol.Checked, 1)
	c.waiting[q] = answer
	return q, answer
}

func (c *checks) forget(q question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, q)
}

func (c *checks) answered(from grid.SiteID, m protocol.Checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := question{from, m.Number}
	if answer, ok := c.waiting[q]; ok {
		answer <- m // buffered for the one answer
		delete(c.waiting, q)
	}
}

// aboutChecks takes the messages that no machine is for, and reports whether
// this was one.
func (a *Agent) aboutChecks(from grid.SiteID, m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.Check:
		select {
		case a.checks.slots <- struct{}{}:
			a.spawn(func() {
				defer func() { <-a.checks.slots }()
				a.send(from, a.checkFor(from, m.Number))
			})
		default:
			a.send(from, protocol.Checked{
				Number: m.Number, Text: "too many sites ask for a check at this moment",
			})
		}
	case protocol.Checked:
		a.checks.answered(from, m)
	default:
		return false
	}
	return true
}

// checkFor announces a probe that any site could run, and says what the one that
// asks for it answered.
func (a *Agent) checkFor(site grid.SiteID, number uint64) protocol.Checked {
	a.checks.turn.Lock()
	defer a.checks.turn.Unlock()
	result := protocol.Checked{Number: number}
	job, state, err := a.probeFor(site)
	switch {
	case err != nil:
		result.Text = short(err.Error())
	default:
		result = verdictOf(site, job, state)
		result.Number = number
	}
	select { // a site that asks again and again does not fill the domain with probes
	case <-time.After(checkPause):
	case <-a.ctx.Done():
	}
	return result
}

func (a *Agent) probeFor(site grid.SiteID) (grid.Job, broker.JobState, error) {
	ctx, cancel := context.WithTimeout(a.ctx, checkWait)
	defer cancel()
	var kinds []grid.WorkKind
	err := a.broker.ask(ctx, func() {
		for _, m := range a.seenBroker().Members() {
			if m.Site == site {
				kinds = m.Capability.Kinds
			}
		}
	})
	job := probeJob(kinds)
	if err != nil {
		return job, broker.JobState{}, err
	}
	id, err := a.Command(ctx, func(n uint64) step.Input { return step.Probe{Command: n, Job: job} })
	if err != nil {
		return job, broker.JobState{}, err
	}
	var state broker.JobState
	err = a.AskBroker(ctx, func(m *broker.Machine) { state, _ = m.Job(id) })
	return job, state, err
}

// probeModule stands for a module that nobody has; nothing is ever run.
const probeModule = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"

// probeJob is as little as a job can ask for, of a kind that the site runs.
func probeJob(kinds []grid.WorkKind) grid.Job {
	spec := grid.Spec{
		Name: "check", Kind: grid.KindWasm,
		Module:  grid.Input{Path: "/module.wasm", CID: probeModule, Bytes: 1},
		Need:    grid.Resources{MilliCPUs: 1, MemoryBytes: 1 << 20, DiskBytes: 1, MFLOPS: 1},
		Runtime: time.Second, Weights: grid.DefaultWeights(),
	}
	if len(kinds) > 0 && !slices.Contains(kinds, grid.KindWasm) {
		spec.Kind, spec.Module, spec.Args = grid.KindCommand, grid.Input{}, []string{"true"}
	}
	return grid.Job{Spec: spec, Count: 1, TTL: checkTTL}
}

func verdictOf(site grid.SiteID, job grid.Job, state broker.JobState) protocol.Checked {
	for _, answer := range state.Answers {
		if answer.Site != site {
			continue
		}
		if answer.Offer == nil {
			return protocol.Checked{Text: short(answer.Refusal.Explain())}
		}
		return protocol.Checked{
			Arrived: true, Distance: answer.Offer.Parts.Distance,
			Took: max(0, answer.At.Sub(state.Submitted)),
		}
	}
	return protocol.Checked{Text: fmt.Sprintf("no answer came within %s", job.TTL)}
}

func short(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 250)], "")
}

// ErrNoAnswer is returned for a site that was asked and says nothing.
var ErrNoAnswer = errors.New("no answer came in time")

// AskCheck lets a site announce a probe, and returns what it saw of this site's
// answer. It is ErrNoAnswer if the site does not say.
func (a *Agent) AskCheck(ctx context.Context, site grid.SiteID) (protocol.Checked, error) {
	q, answer := a.checks.ask(site)
	defer a.checks.forget(q)
	a.sendQuietly(site, protocol.Check{Number: q.number})
	timer := time.NewTimer(checkWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return protocol.Checked{}, fmt.Errorf("wait for the answer of %s: %w", site, ctx.Err())
	case <-timer.C:
		return protocol.Checked{}, ErrNoAnswer
	case v := <-answer:
		return v, nil
	}
}
