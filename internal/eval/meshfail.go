package eval

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// failingMesh is the jobs of an experiment on a mesh whose sites crash and come back. All jobs are
// submitted at a site that gives nothing and never fails, whose ways are those of the first site.
type failingMesh struct {
	meshRun
	s       played
	lives   []siteLife
	ids     []grid.JobID // of jobs, in their order
	lost    []bool       // a job has failed, or was refused
	refused []bool
	crashes int                    // so far
	struck  []int                  // of a job: the crash that it failed by last
	at      map[grid.AttemptID]int // of attempts that hold what they need: their site
	learned []int                  // of a site: how many spells its model was learned from
	models  map[int]avail.Model    // of sites
	downs   map[int]bool           // sites that are down
	numbers map[grid.SiteID]int    // of sites
}

// playFailingMesh places the jobs by the mesh in a setting, and tells what became of each.
func playFailingMesh(
	ctx context.Context, e scenario.Experiment, s played, d drawn, seed uint64,
) ([]ending, []Hold, error) {
	r, g := newFailingMesh(s, d.jobs, d.lives), &d.grid
	g.Sites = append(slices.Clone(g.Sites), grid.Resources{MilliCPUs: 1, MemoryBytes: 1})
	g.Bps = withSubmitter(g.Bps)
	d.speeds = append(slices.Clone(d.speeds), 1)
	c := r.config(e, s.Strategy, d, seed)
	for i := range c.Sites {
		c.Sites[i].Tune = r.tune(c.Sites[i].Tune)
	}
	c.Watch = r.watch
	r.book = d.book
	r.world = sim.New(c)
	r.plan()
	home := siteName(len(d.lives))
	for i, j := range d.jobs {
		r.ends[i].submitted = j.Submit
		r.world.At(r.zero+j.Submit, func() {
			r.ids[i] = r.submit(i, home, r.guarded(r.job(j, s.Strategy)))
		})
	}
	r.world.At(r.zero+s.setting.End, r.close)
	limit := r.zero + 2*s.setting.End
	for r.open > 0 && r.world.Elapsed() < limit && r.err == nil {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if err := r.world.Run(r.world.Elapsed() + s.setting.End/40); err != nil {
			return nil, nil, err
		}
	}
	return r.endings(), r.holds, r.err
}

func newFailingMesh(s played, jobs []baseline.Job, lives []siteLife) *failingMesh {
	numbers := make(map[grid.SiteID]int)
	for i := range lives {
		numbers[siteName(i)] = i
	}
	return &failingMesh{
		meshRun: meshRun{
			jobs: jobs, grain: s.Grain, queued: s.Mesh.Seconds, open: len(jobs),
			places: make(map[grid.JobID]int), ends: make([]ending, len(jobs)),
			begun: make(map[grid.AttemptID]time.Duration), zero: warmUp(lives),
			sites: make(map[grid.SiteID]int), executing: make(map[grid.AttemptID]time.Duration),
		},
		s: s, lives: lives, ids: make([]grid.JobID, len(jobs)), lost: make([]bool, len(jobs)),
		refused: make([]bool, len(jobs)), struck: make([]int, len(jobs)),
		at: make(map[grid.AttemptID]int), learned: make([]int, len(lives)), numbers: numbers,
		models: make(map[int]avail.Model), downs: make(map[int]bool),
	}
}

// warmUp says for how long the mesh plays before the first job: so long that the submitter has
// watched the sites for some times up and down, as in SAA it goes by what it has seen.
func warmUp(lives []siteLife) time.Duration {
	longest := 0.0
	for _, l := range lives {
		longest = max(longest, -l.spells[0].From)
	}
	return settling + asDuration(longest)
}

// withSubmitter adds a site with the ways of the first one.
func withSubmitter(bps [][]float64) [][]float64 {
	var all [][]float64
	for _, row := range bps {
		all = append(all, append(slices.Clone(row), row[0]))
	}
	return append(all, append(slices.Clone(bps[0]), bps[0][0]))
}

// tune sets the product's own SAA, and with Likeliest its own NAA.
func (r *failingMesh) tune(
	before func(*site.Config, *broker.Config),
) func(*site.Config, *broker.Config) {
	return func(c *site.Config, b *broker.Config) {
		before(c, b)
		switch first := r.s.Likeliest; {
		case r.s.Admits && first:
			b.Policy = grid.AvailNSA
		case r.s.Admits:
			b.Policy = grid.AvailSAA
		case first:
			b.Policy = grid.AvailNAA
		}
	}
}

// guarded measures distance in two dimensions, as MRS does; NAA adds the third one: 3D-MRS.
func (r *failingMesh) guarded(j grid.Job) grid.Job {
	if j.Spec.Axes == nil {
		j.Spec.Axes = grid.DefaultAxes()
	}
	if !r.s.Orders {
		j.Spec.Axes = slices.DeleteFunc(j.Spec.Axes, func(a grid.Axis) bool {
			return a.Dimension == grid.Availability
		})
	}
	return j
}

// plan lets the sites crash and come back.
func (r *failingMesh) plan() {
	until := r.zero + 2*r.s.setting.End
	for i, l := range r.lives {
		for _, s := range l.spells {
			at := max(r.zero+asDuration(s.From), 0)
			switch {
			case at > until:
			case !s.Up:
				r.world.At(at, func() { r.crash(i) })
			case at > 0:
				r.world.At(at, func() { r.comeBack(i) })
			}
		}
		r.world.At(r.zero-settling/2, func() { r.teach(i) })
	}
}

// crash takes a site down; what it ran has failed.
func (r *failingMesh) crash(i int) {
	now := r.world.Elapsed() - r.zero
	r.crashes++
	r.downs[i] = true
	var jobs []int
	ids := slices.SortedFunc(maps.Keys(r.at), grid.AttemptID.Compare)
	for _, id := range ids {
		place := r.places[id.Task.Job]
		if r.at[id] != i {
			continue
		}
		r.release(id, place, now)
		delete(r.at, id)
		if r.struck[place] != r.crashes && !r.lost[place] {
			r.struck[place] = r.crashes
			jobs = append(jobs, place)
		}
	}
	r.world.Crash(siteName(i))
	for _, place := range jobs {
		r.ends[place].failures++
		r.lose(place)
	}
}

// lose ends a job of which a run failed, unless the mesh is to take care of it.
func (r *failingMesh) lose(place int) {
	if r.s.Retry == "failover" || r.lost[place] || r.ends[place].ended > 0 {
		return
	}
	r.lost[place], r.ends[place].failed = true, true
	if err := r.world.Cancel(siteName(len(r.lives)), r.ids[place]); err != nil {
		r.err = cmp.Or(r.err, err)
	}
}

// comeBack starts a site again, with what it has learned of itself.
func (r *failingMesh) comeBack(i int) {
	delete(r.downs, i)
	r.world.Restart(siteName(i))
	if r.world.Elapsed() >= r.zero-settling {
		r.teach(i)
	}
}

// relearn is by what part a site's past has to have grown before its model is learned anew.
const relearn = 1.2

// teach tells a site what follows from its past, as its agent does.
func (r *failingMesh) teach(i int) {
	if r.downs[i] {
		return
	}
	now := (r.world.Elapsed() - r.zero).Seconds()
	past := pastOf(r.lives[i].spells, now)
	if _, has := r.models[i]; !has || float64(len(past.Spans)) > relearn*float64(r.learned[i]) {
		model, err := avail.Fit(past, avail.DefaultPriors(), nil, 0)
		if err != nil {
			r.err = cmp.Or(r.err, err)
			return
		}
		r.models[i], r.learned[i] = model, len(past.Spans)
	}
	up := sim.Epoch().Add(r.zero + asDuration(r.lives[i].since(now)))
	r.world.Input(siteName(i), step.AvailabilityLearned{Model: r.models[i], Up: up, Free: up})
}

// pastOf tells a site what it has seen of itself. The week says nothing here, and is left out.
func pastOf(spells []workload.Spell, now float64) avail.History {
	var past avail.History
	for _, s := range spells {
		if s.To > now {
			break
		}
		if s.Up {
			past.Spans = append(past.Spans, avail.Span{
				Week: -1, Seconds: s.To - s.From, Ago: now - s.To, End: avail.EndCrash,
			})
		} else {
			past.Downs = append(past.Downs, s.To-s.From)
		}
	}
	return past
}

// losses are the submitter's events of work that a site did not bring to its end.
func losses() []string { return []string{"attempt_failed", "attempt_lost", "collect_failed"} }

// watch notes what meshRun does, and where attempts are.
func (r *failingMesh) watch(s sim.Sight) {
	r.seeOffer(s)
	place, known := r.places[s.Report.Attempt.Task.Job]
	if s.Kind != sim.SightReported || !known {
		return
	}
	switch event := s.Report.Event; {
	case !s.Broker && event == "accepted":
		r.at[s.Report.Attempt] = r.numbers[s.Site]
	case !s.Broker && (event == "exited" || event == "dropped"):
		delete(r.at, s.Report.Attempt)
	case s.Broker && event == "job_refused":
		r.refused[place] = true
	case s.Broker && slices.Contains(losses(), event):
		// By the same crash it may also have lost what it had brought to its end.
		if !r.lost[place] && r.struck[place] != r.crashes {
			r.struck[place] = r.crashes
			r.ends[place].failures++
			r.world.At(r.world.Elapsed(), func() { r.lose(place) })
		}
	}
	r.see(s)
}

// close calls off what has not begun.
func (r *failingMesh) close() {
	for place := range r.jobs {
		e := r.ends[place]
		if r.ids[place] != "" && !e.started && !r.lost[place] && e.ended == 0 {
			r.refused[place] = true
			if err := r.world.Cancel(siteName(len(r.lives)), r.ids[place]); err != nil {
				r.err = cmp.Or(r.err, err)
			}
		}
	}
}

// endings tells what became of the jobs: what was refused never began, and what has not ended long
// after the end has failed.
func (r *failingMesh) endings() []ending {
	r.countMessages()
	for i := range r.ends {
		e := &r.ends[i]
		if e.ended == 0 {
			now := r.world.Elapsed() - r.zero
			e.ended, e.finish, e.failed = now, now, e.started
		}
		if r.refused[i] {
			e.started, e.failed = e.failures > 0, e.failures > 0
		}
	}
	return r.ends
}
