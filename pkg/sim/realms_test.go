package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
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

// mine runs a job to its end and judges the world.
func (w *World) mine(t *testing.T, o *Oracle, at grid.SiteID, job grid.Job) broker.JobState {
	t.Helper()
	return w.mineOf(t, o, at, job, Truth{Run: job.Spec.Runtime})
}

// mineOf is mine with the truth about the job.
func (w *World) mineOf(
	t *testing.T, o *Oracle, at grid.SiteID, job grid.Job, truth Truth,
) broker.JobState {
	t.Helper()
	id, err := w.Submit(at, job)
	if err != nil {
		t.Fatal(err)
	}
	o.Submitted(w, id, truth)
	s := mustEnd(t, w, w.elapsed+10*time.Minute, at, id)
	if err := w.Run(w.elapsed + time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, f := range o.Judge(w, 0) {
		t.Error(f)
	}
	return s
}

// abroad counts a job's tasks by the domains that have run them; "" is its own.
func abroad(s broker.JobState) map[grid.DomainID]int {
	n := make(map[grid.DomainID]int)
	for _, task := range s.Tasks {
		n[task.Domain]++
	}
	return n
}

func TestWhatTheOwnDomainCannotTakeRunsAtANeighbours(t *testing.T) {
	w, o := twoDomains(t, nil)
	s := w.mine(t, o, "a1", bags(4, 30*time.Second))
	wantAllDone(t, s)
	if n := abroad(s); n[""] != 2 || n["b"] != 2 {
		t.Errorf("ran at %v, want two tasks at home and two at the neighbour's", n)
	}
	if !strings.HasPrefix(s.Abroad, "own domain: ") || !strings.Contains(s.Abroad, "; domain b: ") {
		t.Errorf("%q, want what both domains said", s.Abroad)
	}
	t.Log(s.Abroad)
	used := 2 * 2 * 30. // two tasks, two cores, 30 s
	for _, c := range []struct {
		gateway      grid.SiteID
		given, taken float64
	}{{"a0", 0, used}, {"b0", used, 0}} {
		l := w.hosts[c.gateway].border.Links()[0]
		if l.Given != c.given || l.Taken != c.taken || l.Here+l.There != 0 {
			t.Errorf("%s: %+v, want %v given and %v taken", c.gateway, l, c.given, c.taken)
		}
	}
	for _, id := range w.hosts["b0"].broker.Jobs() {
		t.Errorf("b0 still has the job %s", id)
	}
}

// Tasks for which no member will ever do wait for a neighbour that takes one at a time. Where no
// neighbour will ever do either they are refused.
func TestWhatNoMemberCanRunWaitsForANeighbour(t *testing.T) {
	for _, small := range []string{"a", "ab"} {
		w, o := twoDomains(t, func(cfg *Config) {
			for i := range cfg.Sites {
				if strings.Contains(small, string(cfg.Sites[i].ID[:1])) {
					cfg.Sites[i].Capability.Total.MilliCPUs /= 4
				}
			}
		})
		job, want := bags(4, 10*time.Second), grid.PhaseDone
		if small == "ab" {
			want = grid.PhaseRefused
		}
		truth := Truth{Run: job.Spec.Runtime, MayRefuse: want == grid.PhaseRefused}
		s := w.mineOf(t, o, "a1", job, truth)
		for _, task := range s.Tasks {
			if task.Phase != want {
				t.Errorf("%s too small: %s is %s, want %s", small, task.ID, task.Phase, want)
			}
		}
	}
}

// What the members take costs no message to anybody else.
func TestWhatTheOwnDomainTakesSendsNothingOverTheBorder(t *testing.T) {
	w, o := twoDomains(t, nil)
	before := w.Trace().Abroad
	wantAllDone(t, w.mine(t, o, "a1", bags(2, 10*time.Second)))
	for name, n := range w.Trace().Sent {
		if strings.HasPrefix(name, "Border") && n > 0 {
			t.Errorf("%d messages %s", n, name)
		}
	}
	if n := w.Trace().Abroad; n != before {
		t.Errorf("%d messages to a neighbour", n-before)
	}
}

// What was promised, and parts that run together, stay at home although a neighbour has capacity.
func TestPromisesAndPartsStayAtHome(t *testing.T) {
	w, _ := twoDomains(t, nil)
	together := bags(4, time.Minute)
	together.Split = grid.SplitGreedy
	fixed := bags(4, time.Minute)
	fixed.Spec.Window.At = w.now().Add(time.Minute)
	for _, job := range []grid.Job{together, fixed} {
		if _, err := w.Submit("a1", job); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Run(30 * time.Second)
	if n := w.Trace().Sent["BorderQuery"]; n != 0 {
		t.Errorf("a neighbour was asked %d times", n)
	}
}

// A neighbour that may use little of a domain gets little, and is told why.
func TestALinkGivesWhatItsTermsSay(t *testing.T) {
	for name, c := range map[string]struct {
		terms func(*step.Link)
		want  int // tasks of six that run there at a time
	}{
		"all":     {func(*step.Link) {}, 2},
		"half":    {func(l *step.Link) { l.Give = 50 }, 1},
		"one":     {func(l *step.Link) { l.Tasks = 1 }, 1},
		"nothing": {func(l *step.Link) { l.Give = 0 }, 0},
		"closed":  {func(l *step.Link) { l.Closed = true }, 0},
		"others":  {func(l *step.Link) { l.Kinds = []grid.WorkKind{grid.KindCommand} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := twoDomains(t, func(cfg *Config) { c.terms(&cfg.Realms[1].Links[0]) })
			most := 0
			for at := 6; at < 200; at++ {
				w.At(time.Duration(at)*time.Second, func() {
					if b := w.hosts["b0"].border; b != nil {
						most = max(most, b.Links()[0].Here)
					}
				})
			}
			wantAllDone(t, w.mine(t, o, "a1", bags(6, 20*time.Second)))
			if most != c.want {
				t.Errorf("%d tasks at a time there, want %d", most, c.want)
			}
		})
	}
}

// A domain that takes and gives nothing back gets what the others leave.
func TestWhoGivesNothingBackIsServedLast(t *testing.T) {
	o := NewOracle()
	cfg := Config{Seed: 3, CheckFacts: true, Watch: o.Watch, Network: lan()}
	cfg.Sites, cfg.Realms = realms(1, 2, 1)
	for i := range cfg.Realms {
		cfg.Realms[i].Tune = func(c *border.Config) { c.Credit = 60 }
	}
	cfg.Realms[0].Links = cfg.Realms[0].Links[:1] // a knows b alone
	cfg.Realms[2].Links = cfg.Realms[2].Links[1:] // and c, too
	cfg.Realms[2].Links[0].Give = 0
	w := New(cfg)
	_ = w.Run(5 * time.Second)
	first := w.mine(t, o, "c0", bags(16, 40*time.Second))
	wantAllDone(t, first)
	if l := w.hosts["b0"].border.Links()[1]; l.Link.Name != "c" || !l.Owes {
		t.Fatalf("b: %+v, want that c owes", l)
	}
	// Both ask for all that b has.
	a := mustSubmit(t, w, "a0", bags(12, 30*time.Second))
	c := mustSubmit(t, w, "c0", bags(12, 30*time.Second))
	here := make(map[grid.DomainID]int)
	for range 150 {
		_ = w.Run(w.elapsed + time.Second)
		for _, l := range w.hosts["b0"].border.Links() {
			here[l.Link.Name] += l.Here
		}
	}
	if here["a"] <= here["c"] {
		t.Errorf("of a %d task-seconds ran at b, of c %d; want more of a", here["a"], here["c"])
	}
	wantAllDone(t, mustEnd(t, w, 20*time.Minute, "a0", a))
	wantAllDone(t, mustEnd(t, w, 20*time.Minute, "c0", c))
}

// A domain that takes whatever it is given and never starts it costs the time in which it should
// have, and then is said to be at fault; what it was given runs elsewhere, once. A task that has
// failed somewhere goes to it last: to an honest neighbour first, although that is farther.
func TestADomainThatNeverStartsWhatItTakes(t *testing.T) {
	for _, besides := range []bool{false, true} {
		o := NewOracle()
		lost := map[string]int{}
		cfg := Config{Seed: 5, CheckFacts: true, Network: lan()}
		cfg.Watch = func(n Sight) {
			if r := n.Report; n.Broker && r.Site == "domain-b" && r.Event != "" {
				lost[r.Event+" "+r.Text]++
			}
			o.Watch(n)
		}
		cfg.Sites, cfg.Realms = realms(2, 1, 2)
		if besides {
			beside(&cfg, "b", "c")
		}
		w := New(cfg)
		_ = w.Run(5 * time.Second)
		w.Lie("b0", lieIdle)
		id := mustSubmit(t, w, "a1", bags(6, 30*time.Second))
		o.Submitted(w, id, Truth{Run: 30 * time.Second})
		s := mustEnd(t, w, time.Hour, "a1", id)
		wantAllDone(t, s)
		for _, f := range o.Judge(w, 0) {
			if f.Flaw != flawUnended { // it takes long to see that nothing starts
				t.Error(f)
			}
		}
		if n := abroad(s); n["b"] != 0 || n["c"] == 0 {
			t.Errorf("beside %v: ran at %v, want nothing at b and some at c", besides, n)
		}
		tried := 0
		for _, task := range s.Tasks {
			for _, try := range task.Tries {
				if try.Domain == "b" {
					tried++
				}
			}
		}
		if len(lost) == 0 || tried == 0 {
			t.Errorf("beside %v: lost %v of %d attempts at b", besides, lost, tried)
		}
		if w.hosts["a1"].disk.facts[roleBroker].Get("fault/1", "domain-b") == nil {
			t.Errorf("beside %v: nothing is counted against b", besides)
		}
		t.Log(lost, tried)
	}
}

// beside has each domain of a world ask some neighbours together with its members.
func beside(cfg *Config, names ...grid.DomainID) {
	for i := range cfg.Realms {
		for k := range cfg.Realms[i].Links {
			l := &cfg.Realms[i].Links[k]
			l.Beside = slices.Contains(names, l.Name)
		}
	}
}

// A domain that is asked together with the members is one site among them: it gets what it is the
// nearest for while members are free, and what it has is in the account of both.
func TestADomainBesideTheMembersIsOneSiteAmongThem(t *testing.T) {
	w, o := twoDomains(t, func(cfg *Config) {
		beside(cfg, "b")
		for i := range cfg.Sites {
			if strings.HasPrefix(string(cfg.Sites[i].ID), "b") {
				cfg.Sites[i].Capability.CoreMFLOPS *= 4 // all of b is nearer
			}
		}
	})
	job := bags(3, 30*time.Second)
	job.Spec.Map = grid.MapSeconds
	s := w.mine(t, o, "a1", job)
	wantAllDone(t, s)
	if n := abroad(s); n["b"] != 2 || n[""] != 1 {
		t.Errorf("ran at %v, want two tasks at the faster neighbour's, one at home", n)
	}
	if !strings.Contains(s.Abroad, "domain b, asked beside the members: ") {
		t.Errorf("%q does not say how b was asked", s.Abroad)
	}
}

// A domain that encloses domains that enclose others reaches all of them, as many borders away as
// it may: each is one site of the next.
func TestDomainsInsideDomains(t *testing.T) {
	for onward, want := range map[uint32]int{0: 2, 1: 4} {
		t.Run(fmt.Sprint(onward), func(t *testing.T) {
			runInAChain(t, want, func(cfg *Config) {
				cfg.Realms[0].Links[0].Onward = onward
				beside(cfg, "b", "c")
			})
		})
	}
}

// Work crosses as many borders as its own domain allows, and no more.
func TestWorkCrossesAsManyBordersAsItMay(t *testing.T) {
	for hops, want := range map[uint32]int{1: 2, 2: 4} {
		t.Run(fmt.Sprint(hops), func(t *testing.T) {
			runInAChain(t, want, func(cfg *Config) {
				for i := range cfg.Realms {
					cfg.Realms[i].Tune = func(c *border.Config) { c.MaxHops = hops }
				}
			})
		})
	}
}

// runInAChain submits four tasks to the first of three domains in a row, which has one site as the
// second has, and wants so many to run at first; all are done in the end.
func runInAChain(t *testing.T, want int, tune func(*Config)) {
	t.Helper()
	o := NewOracle()
	cfg := Config{Seed: 5, CheckFacts: true, Watch: o.Watch, Network: lan()}
	cfg.Sites, cfg.Realms = realms(1, 1, 2)
	cfg.Realms[0].Links = cfg.Realms[0].Links[:1] // a knows b alone
	cfg.Realms[2].Links = cfg.Realms[2].Links[1:] // and c, too
	tune(&cfg)
	w := New(cfg)
	_ = w.Run(5 * time.Second)
	id := mustSubmit(t, w, "a0", bags(4, time.Minute))
	o.Submitted(w, id, Truth{Run: time.Minute})
	_ = w.Run(50 * time.Second)
	ran := make(map[grid.TaskID]bool)
	for _, i := range w.Trace().Intervals {
		ran[w.original(i.Attempt.Task)] = true
	}
	if len(ran) != want {
		t.Errorf("%d tasks run, want %d", len(ran), want)
	}
	wantAllDone(t, mustEnd(t, w, 20*time.Minute, "a0", id))
	for _, f := range o.Judge(w, 0) {
		t.Error(f)
	}
}
