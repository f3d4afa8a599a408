package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Machine is the submitter's machine. It implements step.Machine; its other
// methods only read.
type Machine struct {
	*run             // the configuration, the time, the effects
	enquiries        // jobs and probes
	peers     *peers // the other sites
	herald    herald // says what is wanted
	rights    rights // says who may run what
	awards    awardTable
	rolls     rolls   // what the sites say they have
	archive   archive // where ended jobs go
	takings   takings // checkpoints that sites have taken
	looks     looks   // at other jobs, later in the Step
	moves     moves   // tasks that move on purpose
	remaps    remapping
	border    border // of jobs that other domains have ordered
}

var _ step.Machine = (*Machine)(nil)

// New returns a broker that knows of no job. The configuration must be valid.
func New(cfg Config) *Machine {
	if cfg.Here == "" {
		cfg.Here = cfg.Owner
	}
	r := &run{
		cfg: cfg, rng: step.NewRand(cfg.Seed, "broker/"+string(cfg.Owner), 0), lines: make(lines),
		out: step.Out{Level: cfg.Reports},
	}
	m := &Machine{
		run: r, enquiries: enquiries{jobs: newJobs(), probes: make(probes)}, peers: newPeers(r),
		awards: make(awardTable), rolls: make(rolls),
	}
	m.herald = herald{run: r, peers: m.peers, jobs: m.jobs}
	m.rights = rights{run: r, peers: m.peers, jobs: m.jobs}
	m.takings = takings{run: r, jobs: m.jobs}
	m.moves = moves{
		run: r, enquiries: m.enquiries, peers: m.peers, herald: m.herald, rights: m.rights,
	}
	m.remaps = remapping{
		run: r, jobs: m.jobs, peers: m.peers, said: make(map[grid.SiteID]time.Time),
	}
	m.border = border{
		run: r, peers: m.peers, jobs: m.jobs, told: make(map[grid.JobID]tidings),
	}
	m.archive, m.looks.jobs = archive{run: r, jobs: m.jobs}, m.jobs
	return m
}

// enquiries holds all that offers were asked for.
type enquiries struct {
	jobs   *jobs  // the owner's, and their order
	probes probes // enquiries without a job
}

// enquiry finds what was asked for: a job or a probe.
func (e enquiries) enquiry(id grid.JobID) (*job, bool) {
	if j, known := e.jobs.all[id]; known {
		return j, true
	}
	if p, known := e.probes[id]; known {
		return p.job, true
	}
	return nil, false
}

// withEnquiry does something with the job or the probe that a timer names, if it is still
// there.
func (e enquiries) withEnquiry(id string, do func(*job)) {
	if j, known := e.enquiry(grid.JobID(id)); known {
		do(j)
	}
}

// award is an award whose answer is awaited.
type award struct {
	job   grid.JobID
	site  grid.SiteID
	tasks []grid.AttemptID
}

// awardTable is the awards whose answers are awaited, by their first attempt.
type awardTable map[grid.AttemptID]award
