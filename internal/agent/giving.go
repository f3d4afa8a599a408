package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/given"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// accountEvery is the pause between two looks at what running attempts have used. What was given
// since the last one is lost when the machine crashes.
const accountEvery = 10 * time.Second

// openAccount opens the account of what this site gave. Without its file the site works, and
// counts for this run alone.
func (a *Agent) openAccount() {
	var err error
	if a.account, err = given.Open(a.cfg.StateDir, a.log); err != nil {
		a.log.Warn("the account of what was given cannot be used; what this run gives is lost "+
			"at its end", "error", err)
		a.cfg.Notices = append(slices.Clip(a.cfg.Notices), view.Notice{
			Text:  "what this site gives is not written down",
			Cause: err.Error(),
			Action: "move " + given.FileName + " out of the state directory, " +
				"then start the agent again",
		})
	}
}

// keepAccount accounts for what attempts use, until the agent ends.
func (a *Agent) keepAccount() {
	tick := time.NewTicker(accountEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-a.ctx.Done():
		}
		a.work.tally()
		a.saveAccount(a.ctx)
		if a.ctx.Err() != nil {
			return
		}
	}
}

// saveAccount makes the account durable, with the names that submitters have now, where the broker
// can be asked for them.
func (a *Agent) saveAccount(ctx context.Context) {
	if !a.account.Changed() {
		return
	}
	names := map[grid.SiteID]string{a.mesh.Self(): a.cfg.Name}
	for domain, name := range a.NeighbourNames() {
		names[domain] = "domain " + string(name)
	}
	err := a.AskBroker(ctx, func(m *broker.Machine) {
		for _, member := range m.Members() {
			names[member.Site] = member.Name
		}
	})
	if err == nil {
		a.account.Name(names)
	}
	if err = a.account.Save(); err != nil {
		a.reports.count("account_unsaved")
		a.log.Warn("what was given is not written down yet", "error", err)
	}
}

// Given lists what this site gave, ascending by day, durable as far as the disk takes it: what
// was shown once is there after a crash.
func (a *Agent) Given(ctx context.Context) []given.Day {
	a.saveAccount(ctx)
	return a.account.Days()
}

// tally accounts for what the attempts that run have used since the last time.
func (w *workshop) tally() {
	type metered struct {
		job   *work
		meter lrm.Meter
	}
	var running []metered
	w.mu.Lock()
	for _, job := range w.attempts {
		if m, ok := job.process.(lrm.Meter); ok && job.state == workRunning {
			running = append(running, metered{job, m})
		}
	}
	w.mu.Unlock()
	for _, r := range running {
		if used, known := r.meter.CPUTime(); known {
			w.accountFor(r.job, used, 0)
		}
	}
}

// settle accounts for an attempt that has ended.
func (w *workshop) settle(job *work, r lrm.Result) {
	tasks := 0
	if r.Exit.Cause.Final() {
		tasks = 1
	}
	w.accountFor(job, r.CPU, tasks)
}

// accountFor adds what an attempt has used beyond what was added before. When nothing is to be
// added any more, all is in the account.
func (w *workshop) accountFor(job *work, used time.Duration, tasks int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := max(used-job.accounted, 0)
	job.accounted += more
	w.a.account.Add(given.Work{At: w.a.clock.real(), For: job.submitter, CPU: more, Tasks: tasks})
}
