// Command deadline shows promises on machines that nobody controls, in a minute and
// with nothing but Go installed:
//
//	go run ./examples/deadline
//
// It builds siteagent and starts four agents as separate processes. The first only
// submits. Ten jobs with one deadline come to the other three, which can run six of
// them in time: six are promised and met, and four are refused immediately, each with the
// earliest time that could be kept. Then best-effort jobs fill all three sites, one
// core is reserved from ten seconds on, and the job that is bound to it starts in its
// second, while the others come and go.
//
// Read run from top to bottom; jobs.go holds what is submitted and table.go what came
// of it.
package main

import (
	"context"
	"errors"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const about = `Starts four agents on this machine, gives them more jobs with a deadline than they
can run in time, and makes a reservation among jobs that fill them. It exits with 0
only if what was promised was kept and what could not be promised was refused
immediately.`

func main() {
	localmesh.Play(localmesh.Example{
		Name: "deadline", About: about, More: "what each site answered", Run: run,
	})
}

const domain = "deadline"

// gifts are four owners' ceilings: one place each, but for the submitter, which has
// no capacity.
func gifts() []localmesh.Gift {
	return []localmesh.Gift{
		{Name: "anna", Cores: 1, GFLOPS: 1, Memory: 16},
		{Name: "ben", Cores: 1, GFLOPS: 2, Memory: 512},
		{Name: "cleo", Cores: 1, GFLOPS: 2, Memory: 512},
		{Name: "dora", Cores: 1, GFLOPS: 2, Memory: 512},
	}
}

// run is the whole story.
func run(ctx context.Context, place *localmesh.Place, out *localmesh.Screen) (err error) {
	out.Say("building siteagent")
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil)
	if err != nil {
		return err
	}

	m := localmesh.New(place, siteagent, domain, gifts(), nil)
	defer func() { err = errors.Join(err, m.Stop(ctx)) }()
	if err = m.Start(ctx, out); err != nil {
		return m.Explain(err)
	}
	s := &story{api: m.Submitter().API, out: out}
	if err = s.deadlines(ctx); err != nil {
		return m.Explain(err)
	}
	if err = s.reservation(ctx); err != nil {
		return m.Explain(err)
	}
	return s.verdict()
}
