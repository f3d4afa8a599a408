// Command twodomains shows two domains that help each other, on one machine, in less than two
// minutes and with nothing but Go installed:
//
//	go run ./examples/twodomains
//
// It starts two domains of four agents each and links them as two administrators would. In the
// first one it makes reservations, and kills the site that holds most of them: they move to another
// site before their start. Then it fills that domain with more work than it has places for, and
// what finds none runs in the other domain. At the end it shows what each domain has given and
// taken by receipt, asks the audit whether anything was lost or done twice, and reads everything
// that the agents of each domain have kept and shown for what belongs to the inside of the other.
//
// Read run from top to bottom; story.go holds its steps in this order, reserve.go and overflow.go
// the two halves, report.go what is counted, and leaks.go what is looked for at the end.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const about = `Starts two domains of four agents on this machine, links them, kills a site that
holds reservations, fills its domain, and checks that the reservations were kept elsewhere, that
the rest of the work ran in the other domain, once each, and that neither saw the inside of the
other. It exits with 0 only if all that is so.`

func main() {
	localmesh.Play(localmesh.Example{
		Name: "twodomains", About: about, More: "the report of the audit", Run: run,
	})
}

// cores are those of a site that runs work, one for a task or a reservation. No site gives more
// than the machine has.
const cores = 2

// labSites and campusSites are called what nothing else is: their names are looked for. The first
// of each holds the link, the second submits and runs nothing, and these two and the third are the
// domain's group.
func labSites() [4]string {
	return [...]string{"quillmoor", "brambleholt", "thistlefen", "wrenhollow"}
}

func campusSites() [4]string {
	return [...]string{"zephyrcote", "marlgate", "ospreylaw", "fernquarry"}
}

// gifts are the ceilings of a domain's owners.
func gifts(names [4]string) []localmesh.Gift {
	var all []localmesh.Gift
	for _, name := range names {
		all = append(all, localmesh.Gift{Name: name, Cores: cores, GFLOPS: 4 * cores, Memory: 1024})
	}
	all[1] = localmesh.Gift{Name: names[1], Cores: 1, GFLOPS: 1, Memory: 16}
	return all
}

// outward are the sites of a domain that its neighbours may have to dial: those of its group, of
// which one speaks for it.
const outward = 3

// tune has reservations leave a site that is away for longer than 15 s, which is a minute as a
// rule, and leaves the last site out of the domain's group.
func tune(c *config.Agent) {
	c.Lease.Length, c.Lease.Reserved = 3*time.Second, 15*time.Second
	if c.Name == labSites()[outward] || c.Name == campusSites()[outward] {
		c.Control.Accept = "none"
	}
}

// run is the whole story.
func run(ctx context.Context, place *localmesh.Place, out *localmesh.Screen) (err error) {
	out.Say("building siteagent")
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil)
	if err != nil {
		return err
	}
	s := newStory(place, siteagent, out)
	stop := func() error { return errors.Join(s.lab.Stop(ctx), s.campus.Stop(ctx)) }
	defer func() { err = errors.Join(err, stop()) }()
	if err = s.tell(ctx); err != nil {
		return s.campus.Explain(s.lab.Explain(err))
	}
	shown, err := s.shown(ctx)
	if err != nil {
		return err
	}
	if err = stop(); err != nil { // the audit reads what the agents wrote to the end
		return err
	}
	if err = s.inspect(shown); err != nil {
		return err
	}
	return s.result.verdict(out)
}
