package eval

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// drawn holds the grid and the jobs of a seed.
type drawn struct {
	grid   baseline.Grid
	speeds []float64 // of a core of each site, GFLOP/s
	jobs   []baseline.Job
	lives  []siteLife // how the sites live, if they fail
	book   *offerBook // notes what sites of the mesh offer; or nil
}

// meshRun is the jobs of an experiment on the mesh's own machines, in the simulator.
type meshRun struct {
	jobs      []baseline.Job
	grain     float64 // nodes of a part
	queued    bool    // accepted attempts wait at their sites, and hold nothing before they start
	world     *sim.World
	places    map[grid.JobID]int // of a job in jobs
	ends      []ending
	open      int
	begun     map[grid.AttemptID]time.Duration // that hold what they need
	zero      time.Duration                    // when jobs begin to come
	executing map[grid.AttemptID]time.Duration // since
	holds     []Hold
	sites     map[grid.SiteID]int
	book      *offerBook // or nil: nobody wants to know
	err       error
}

const (
	leaseOfMesh = 10 * time.Minute // hardware does not fail here: fewer renewals to play
	settling    = 10 * time.Second // before the first job: the sites have met
	mflops      = 1000.0           // of a core of speed 1
	mostTimes   = 10               // as long as the jobs arrive all may take to end
	apart       = time.Millisecond // between jobs of a burst that are placed one by one
)

// playMesh places the jobs by the mesh, and tells what became of each, and who held what.
func playMesh(
	ctx context.Context, e scenario.Experiment, s scenario.Strategy, d drawn, seed uint64,
) ([]ending, []Hold, error) {
	r := newMeshRun(e, s, d, seed)
	if err := r.play(ctx, e); err != nil {
		return nil, nil, err
	}
	return r.ends, r.holds, nil
}

// newMeshRun prepares a run: its sites, and the jobs that come.
func newMeshRun(
	e scenario.Experiment, s scenario.Strategy, d drawn, seed uint64,
) *meshRun {
	jobs := d.jobs
	r := &meshRun{
		jobs: jobs, grain: s.Grain, queued: s.Mesh.Seconds, open: len(jobs), zero: settling,
		places: make(map[grid.JobID]int), begun: make(map[grid.AttemptID]time.Duration),
		ends: make([]ending, len(jobs)), sites: make(map[grid.SiteID]int),
		executing: make(map[grid.AttemptID]time.Duration), book: d.book,
	}
	r.world = sim.New(r.config(e, s, d, seed))
	for i, j := range jobs {
		r.ends[i].submitted = j.Submit
		at := siteName(0)
		if s.Each {
			at = siteName(j.Source)
		}
		when := r.zero + j.Submit
		if s.Mesh.Instant {
			when += time.Duration(i%e.Jobs.Burst) * apart
		}
		r.world.At(when, func() { r.submit(i, at, r.job(j, s)) })
	}
	return r
}

// play goes on until all jobs have ended.
func (r *meshRun) play(ctx context.Context, e scenario.Experiment) error {
	last := r.jobs[len(r.jobs)-1].Submit
	for limit := settling + mostTimes*max(last, e.Jobs.Longest); r.open > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.world.Elapsed() > limit {
			return fmt.Errorf(
				"%d of %d jobs have not ended after %s", r.open, len(r.jobs), limit)
		}
		if err := r.world.Run(r.world.Elapsed() + max(last, time.Minute)/100); err != nil {
			return err
		}
		if r.err != nil {
			return r.err
		}
	}
	r.countMessages()
	return nil
}

// countMessages tells each job of its part of all messages.
func (r *meshRun) countMessages() {
	sent, jobs := r.world.Trace().Sent, float64(len(r.jobs))
	for i := range r.ends {
		r.ends[i].messages = float64(r.world.Messages()) / jobs
		r.ends[i].replies = float64(sent["Bid"]+sent["Refuse"]) / jobs
	}
}

func siteName(i int) grid.SiteID { return grid.SiteID(fmt.Sprintf("s%d", i)) }

func (r *meshRun) config(
	e scenario.Experiment, s scenario.Strategy, d drawn, seed uint64,
) sim.Config {
	const never = 1 << 30
	latency := e.Grid.Latency
	if s.Mesh.Instant {
		latency = 0
	}
	c := sim.Config{
		Seed: seed, Fast: true, NoNotes: true, CheckEvery: never, Watch: r.see,
		Network: sim.Network{
			Latency: latency, Spread: e.Grid.LatSpread, Rates: d.grid.Bps,
			Sharing: sharing(e.Grid.Ways),
		},
		Run: func(t grid.Task, _ time.Duration, on sim.SiteSpec) (time.Duration, grid.Exit) {
			job := r.jobs[r.places[t.ID.Job]]
			exit := grid.Exit{Cause: grid.CauseExited}
			if job.Out > 0 {
				cid := grid.CID(fmt.Sprintf("out%sx%d", t.ID.Job, t.ID.Index))
				exit.Outputs = []grid.Produced{
					{Path: "/out/result", CID: cid, Bytes: job.Out / r.parts(job)},
				}
			}
			speed := float64(on.Capability.CoreMFLOPS) / mflops
			return time.Duration(float64(job.Run) / speed), exit
		},
	}
	if e.Grid.Sites > fewSites {
		c.Submitters = []grid.SiteID{siteName(0)}
	}
	for i, total := range d.grid.Sites {
		core := int64(math.Round(mflops * d.speeds[i]))
		total.MFLOPS, total.DiskBytes = total.MilliCPUs*core/1000, diskOfSite
		r.sites[siteName(i)] = i
		c.Sites = append(c.Sites, sim.SiteSpec{
			ID: siteName(i),
			Capability: grid.Capability{
				OS: "linux", Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm}, Total: total,
				CoreMFLOPS: core, DownBps: int64(e.Grid.Rate), UpBps: int64(e.Grid.Rate),
			},
			Tune: func(c *site.Config, b *broker.Config) {
				b.MaxJobs, b.Lease, b.ExplainUpTo = len(r.jobs)+1, leaseOfMesh, 0
				b.Reports, c.Reports = step.LevelInfo, step.LevelInfo
				b.Requote, b.ReplyTarget, c.HoldAll = !s.Mesh.NoQuote, s.Mesh.Replies, s.Mesh.HoldAll
				if s.Mesh.SoftMin {
					b.Choice = broker.ChoiceSoftMin
				}
			},
		})
	}
	return c
}

// sharing reads what transfers on one way do. A queue that knows everything lets them take turns.
func sharing(ways string) sim.Sharing {
	switch ways {
	case "fair":
		return sim.SharingFair
	case "apart":
		return sim.SharingNone
	default:
		return sim.SharingTurns
	}
}

// diskOfSite is enough: experiments are about computation, memory and data on their way.
const diskOfSite = 1 << 50

// parts counts the tasks of a job.
func (r *meshRun) parts(j baseline.Job) int64 {
	return max(int64(math.Ceil(float64(j.Need.MilliCPUs)/1000/r.grain)), 1)
}

// job is a job as the mesh wants it.
func (r *meshRun) job(j baseline.Job, s scenario.Strategy) grid.Job {
	n := r.parts(j)
	job := grid.Job{
		Spec: grid.Spec{
			Name: "experiment", Kind: grid.KindWasm,
			Module: grid.Input{Path: "/module.wasm", CID: "bmodule"},
			Need: grid.Resources{
				MilliCPUs: j.Need.MilliCPUs / n, MemoryBytes: j.Need.MemoryBytes / n,
				MFLOPS: j.Need.MilliCPUs / n, // a node is 1 GFLOP/s
			},
			Runtime: j.Estimate, Weights: grid.DefaultWeights(), Map: grid.MapThesis,
		},
		Count: uint32(n), TTL: s.Mesh.TTL, Flood: s.Mesh.Rivals,
	}
	if s.Mesh.Seconds {
		job.Spec.Map = grid.MapSeconds
	}
	if s.Mesh.Data != 1 || s.Mesh.Wait > 0 {
		job.Spec.Axes = []grid.Axis{
			{Dimension: grid.Computation, Weight: 1},
			{Dimension: grid.DataMoved, Weight: s.Mesh.Data},
			{Dimension: grid.Availability, Weight: 1},
			{Dimension: grid.QueueWait, Weight: s.Mesh.Wait},
		}
	}
	if n > 1 {
		job.Split = grid.SplitNever
		if s.Split {
			job.Split = grid.SplitGreedy
		}
	}
	return job
}

func (r *meshRun) submit(place int, at grid.SiteID, job grid.Job) grid.JobID {
	if j := r.jobs[place]; j.In > 0 {
		job.Spec.Inputs = []grid.Input{{
			Path: "/in/data", CID: grid.CID(fmt.Sprintf("bin%d", place)), Bytes: j.In / r.parts(j),
		}}
	}
	id, err := r.world.Submit(at, job)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("job %d: %w", place, err)
	}
	r.places[id] = place
	return id
}

// see notes what matters of what happens.
func (r *meshRun) see(s sim.Sight) {
	r.seeOffer(s)
	place, known := r.places[s.Report.Attempt.Task.Job]
	if s.Kind != sim.SightReported || !known {
		return
	}
	r.seeHold(s, place)
	if s.Broker {
		r.seeSubmitter(s, &r.ends[place])
		return
	}
	r.seeSite(s.Report, place, s.At-r.zero)
}

// seeSite notes what becomes of an attempt.
func (r *meshRun) seeSite(report step.Report, place int, at time.Duration) {
	id := report.Attempt
	switch event := report.Event; {
	case event == "accepted" && !r.queued, event == "resumed" && r.queued:
		r.begun[id] = at
	case event == "started":
		r.started(id, &r.ends[place], at)
	case event == "exited", event == "dropped", event == "suspended" && r.queued:
		r.release(id, place, at)
	}
}

// seeSubmitter notes what the submitter decides.
func (r *meshRun) seeSubmitter(s sim.Sight, end *ending) {
	at := s.At - r.zero
	switch event := s.Report.Event; {
	case event == "job_ended":
		end.ended, end.finish = at, at
		r.open--
	case (event == "awarded" || event == "awarded_rival") && !end.awarded:
		end.awarded, end.award = true, at
	}
}

// release notes that an attempt holds nothing any more.
func (r *meshRun) release(id grid.AttemptID, place int, at time.Duration) {
	if from, held := r.begun[id]; held {
		nodes := float64(r.jobs[place].Need.MilliCPUs) / 1000 / float64(r.parts(r.jobs[place]))
		r.ends[place].held += nodes * (at - from).Seconds()
		delete(r.begun, id)
	}
}

// started notes that an attempt executes. One of a job that was called off a moment ago is none.
func (r *meshRun) started(id grid.AttemptID, end *ending, at time.Duration) {
	if r.queued {
		r.begun[id] = at
	}
	if !end.started && end.ended == 0 {
		end.started, end.start = true, at
	}
}
