package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// open is a link with a neighbour that gives and takes all.
func open(name grid.DomainID) step.Link {
	return step.Link{
		Name: name, Give: 100, Take: 100, Kinds: []grid.WorkKind{grid.KindWasm, grid.KindCommand},
	}
}

// realms are domains of so many sites each, all linked with the next one, and the last with the
// first if there are more than two.
func realms(sites ...int) ([]SiteSpec, []Realm) {
	var specs []SiteSpec
	var all []Realm
	names := []grid.DomainID{"a", "b", "c"}
	for i, n := range sites {
		r := Realm{Name: names[i]}
		for k := range n {
			id := grid.SiteID(fmt.Sprintf("%s%d", names[i], k))
			specs = append(specs, SiteSpec{ID: id, Capability: fleet(1)[0].Capability})
			r.Members = append(r.Members, id)
		}
		for k := range sites {
			if k != i {
				r.Links = append(r.Links, open(names[k]))
			}
		}
		all = append(all, r)
	}
	return specs, all
}

// twoDomains is a world of a and b, in which a0 is the gateway of one and b0 that of the other.
func twoDomains(t *testing.T, change func(*Config)) (*World, *Oracle) {
	t.Helper()
	o := NewOracle()
	cfg := Config{
		Seed: 1, CheckFacts: true, Watch: o.Watch,
		Network: Network{Latency: 2 * time.Millisecond, Detect: 5 * time.Millisecond},
	}
	cfg.Sites, cfg.Realms = realms(2, 2)
	if change != nil {
		change(&cfg)
	}
	w := New(cfg)
	if err := w.Run(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	return w, o
}

// bags is a job of so many tasks, each of which takes all of a site.
func bags(n uint32, run time.Duration) grid.Job {
	j := wasmJob(n, run)
	j.Spec.Need.MilliCPUs = fleet(1)[0].Capability.Total.MilliCPUs
	return j
}

func TestATaskThatTheOwnDomainCannotTakeRunsAtANeighbours(t *testing.T) {
	w, o := twoDomains(t, nil)
	id, err := w.Submit("a1", bags(4, 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	o.Submitted(w, id, Truth{Run: 30 * time.Second})
	if err := w.Run(3 * time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, f := range o.Judge(w, 0) {
		t.Error(f)
	}
	s, _ := w.Job("a1", id)
	for _, task := range s.Tasks {
		t.Logf("%v %v at %s of %q: %+v", task.ID, task.Phase, task.Site, task.Domain, task.Tries)
	}
	t.Logf("%v\n%v\n%v", s.Ended.Sub(s.Submitted), w.Trace().Borders, w.Trace().Sent)
	for _, a := range []grid.SiteID{"a0", "b0"} {
		t.Logf("%s: %+v", a, w.hosts[a].border.Links())
	}
}

var (
	_ = border.Default
	_ = broker.Default
	_ = site.Default
)
