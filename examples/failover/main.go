// Command failover shows a job that outlives two machines, its submitter's among them, in a
// minute and with nothing but Go installed:
//
//	go run ./examples/failover
//
// It builds siteagent and starts seven agents as separate processes. The first submits one job, a
// sieve that saves its state every second; two more are its standbys, and any of the other four
// can run it. The agent that runs the job is killed, and the job goes on elsewhere from its last
// checkpoint. Then the submitter's agent is killed and its state is deleted: a standby acts in its
// place, and the job runs on. When it has ended the submitter comes back with nothing but its key
// file, and has the result.
//
// Read run from top to bottom; story.go holds what happens and report.go what is counted.
package main

import (
	"context"
	"errors"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const about = `Starts seven agents on this machine, kills the one that runs a job and then the one
that has submitted it, deletes the state of the latter, and checks that the job ends
once, with the right result. It exits with 0 only if nothing was lost, nothing was
done twice and the result matches a local run.`

func main() {
	localmesh.Play(localmesh.Example{
		Name: "failover", About: about, More: "the report of the audit", Run: run,
	})
}

const (
	domain   = "failover"
	standbys = 2
)

// gifts are seven owners' ceilings. The first three are old machines that run nothing: one
// submits, two stand by.
func gifts() []localmesh.Gift {
	return []localmesh.Gift{
		{Name: "anna", Cores: 1, GFLOPS: 1, Memory: 16},
		{Name: "ben", Cores: 1, GFLOPS: 1, Memory: 16},
		{Name: "cleo", Cores: 1, GFLOPS: 1, Memory: 16},
		{Name: "dora", Cores: 2, GFLOPS: 8, Memory: 1536},
		{Name: "emil", Cores: 1, GFLOPS: 5, Memory: 768},
		{Name: "finn", Cores: 2, GFLOPS: 6, Memory: 1024},
		{Name: "gina", Cores: 1, GFLOPS: 4, Memory: 1024},
	}
}

// tune gives the first agent its two standbys. Of three members of a group one may be lost at a
// time: a member that also ran the job would be two.
func tune(c *config.Agent) {
	switch c.Name {
	case "anna":
		c.Standby.Count = standbys
	case "ben", "cleo":
	default:
		c.Standby.Accept = "none"
	}
}

// run is the whole story.
func run(ctx context.Context, place *localmesh.Place, out *localmesh.Screen) (err error) {
	out.Say("building siteagent and the sieve")
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil)
	if err != nil {
		return err
	}
	module, err := place.BuildModule(ctx, "sieve.wasm", "examples/failover/sieve")
	if err != nil {
		return err
	}

	m := localmesh.New(place, siteagent, domain, gifts(), tune)
	defer func() { err = errors.Join(err, m.Stop(ctx)) }()
	if err = m.Start(ctx, out); err != nil {
		return m.Explain(err)
	}
	s := &story{mesh: m, place: place, out: out, owner: m.Submitter()}
	if err = s.tell(ctx, module); err != nil {
		return m.Explain(err)
	}
	if err = m.Stop(ctx); err != nil { // the audit reads what the agents wrote to the end
		return err
	}
	if s.result.audit, err = auditAll(m, out); err != nil {
		return err
	}
	return s.result.verdict(out)
}
