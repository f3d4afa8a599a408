package play

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// ErrNoJournals says that a directory holds no journal of an agent.
var ErrNoJournals = errors.New("it holds no journal; name an agent's state directory")

// ReadJournals makes a record of what agents wrote down, each in the journals of its state
// directory; nothing in them is changed. What came to an agent is as it was read: messages are
// told when they arrived, in the order of the agents' own clocks, and those that got lost are
// not known. What its machines decided is derived again by machines that newMachine makes; the
// notes say where that is not what they decided then, because another build wrote the journal,
// or its beginning is gone, and decisions are left out from there on.
func ReadJournals(
	dirs []string, newMachine func(store.Header) (step.Machine, error),
) (rec *Record, notes []string, err error) {
	rec = &Record{
		jobs: make(map[string]int), names: make(map[grid.JobID]string), lost: make(map[int]bool),
	}
	r := reader{newMachine: newMachine, names: make(map[grid.SiteID]string)}
	for _, dir := range dirs {
		if err := r.readDir(dir); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	r.fill(rec)
	return rec, r.notes, nil
}

// reader collects what the journals of several agents hold.
type reader struct {
	newMachine func(store.Header) (step.Machine, error)
	sites      []string
	names      map[grid.SiteID]string
	seen       []seen
	spells     []spell
	notes      []string
	jobs       []named
}

// seen is a sight at a time of an agent's clock.
type seen struct {
	at time.Time
	sim.Sight
}

// spell is a trouble at a time of an agent's clock; its end is zero while it lasts.
type spell struct {
	site     string
	kind     scenario.Kind
	what     string
	from, to time.Time
}

// named is a job with the name that its submitter gave it.
type named struct {
	id   grid.JobID
	name string
}

func (r *reader) readDir(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	runs, err := store.Runs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(runs) == 0 {
		return ErrNoJournals
	}
	runs = ofOwner(runs)
	self, name, err := ownerOf(runs)
	if err != nil {
		return err
	}
	if other, known := r.names[self]; known {
		return fmt.Errorf("it is of %s, of which another directory was given", other)
	}
	name = cmp.Or(name, filepath.Base(filepath.Clean(dir)))
	if slices.Contains(r.sites, name) {
		name = fmt.Sprintf("%s-%d", name, len(r.sites))
	}
	r.sites, r.names[self] = append(r.sites, name), name
	l := lives{last: make(map[uint64]time.Time), running: make(map[grid.AttemptID]bool)}
	for _, run := range runs {
		j := journal{reader: r, self: self, name: name, run: run, broker: run.Machine == brokerMachine}
		if err := j.readInputs(l); err != nil {
			return err
		}
		j.deriveDecisions()
	}
	return nil
}

// brokerMachine is the name of the submitter's machine in a journal's header.
const brokerMachine = "broker"

// ofOwner leaves out the journals of other owners' machines, which an agent has run as a standby,
// and those of the domain's controller: what came of them is in the journals of the sites.
func ofOwner(runs []store.Run) []store.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run store.Run) bool {
		return run.Machine != siteMachine && run.Machine != brokerMachine
	})
}

// ownerOf finds whose journals these are.
func ownerOf(runs []store.Run) (self grid.SiteID, name string, err error) {
	for _, run := range runs {
		var c struct {
			Self grid.SiteID
			Name string
		}
		if err := json.Unmarshal(run.Config, &c); err != nil {
			return "", "", fmt.Errorf("configuration of the %s machine: %w", run.Machine, err)
		}
		self, name = cmp.Or(c.Self, self), cmp.Or(c.Name, name)
	}
	if self == "" {
		return "", "", errors.New("its journals do not say whose they are")
	}
	return self, name, nil
}

// journal is one machine's journal of one start.
type journal struct {
	*reader

	self   grid.SiteID
	name   string
	run    store.Run
	broker bool
}

func (j *journal) see(at time.Time, s sim.Sight) {
	s.Site = cmp.Or(s.Site, j.self)
	j.seen = append(j.seen, seen{at, s})
}

// lives are the starts of one agent.
type lives struct {
	last    map[uint64]time.Time    // when each start was last heard of
	running map[grid.AttemptID]bool // or frozen
}

// readInputs notes what came to the machine. Where an agent has started anew, the one before has
// ended with all its attempts when it was last heard of.
func (j *journal) readInputs(l lives) error {
	if died, is := l.last[j.run.Incarnation-1]; is && !j.broker {
		for _, id := range slices.SortedFunc(maps.Keys(l.running), grid.AttemptID.Compare) {
			j.see(died, sim.Sight{Kind: sim.SightGone, Attempt: id})
		}
		clear(l.running)
		j.see(died, sim.Sight{Kind: sim.SightDown})
	}
	first := true
	for e, err := range j.run.Entries() {
		if errors.Is(err, store.ErrCorrupt) {
			j.note("is damaged: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		if e.Input == nil {
			continue
		}
		if first && !j.broker {
			j.see(e.Time, sim.Sight{Kind: sim.SightUp})
		}
		first = false
		if e.Time.After(l.last[j.run.Incarnation]) {
			l.last[j.run.Incarnation] = e.Time
		}
		j.noteInput(e, l.running)
	}
	return nil
}

func (j *journal) noteInput(e store.Entry, running map[grid.AttemptID]bool) {
	attempt := func(kind sim.SightKind, id grid.AttemptID) {
		if running[id] = true; kind == sim.SightGone {
			delete(running, id)
		}
		j.see(e.Time, sim.Sight{Kind: kind, Attempt: id})
	}
	switch in := e.Input.(type) {
	case step.MessageReceived:
		j.see(e.Time, sim.Sight{Kind: sim.SightSent, Site: in.From, To: j.self, Message: in.Message})
	case step.AttemptStarted:
		attempt(sim.SightRuns, in.Attempt)
	case step.AttemptResumed:
		attempt(sim.SightRuns, in.Attempt)
	case step.AttemptFrozen:
		attempt(sim.SightFrozen, in.Attempt)
	case step.AttemptExited:
		attempt(sim.SightGone, in.Attempt)
	case step.OwnerBusy:
		j.begin(e.Time, scenario.Busy, in.Reason.String())
	case step.OwnerAway:
		j.end(e.Time, scenario.Busy)
	case step.Pause:
		j.begin(e.Time, scenario.Pause, "paused")
	case step.Resume:
		j.end(e.Time, scenario.Pause)
	}
}

func (j *journal) begin(at time.Time, kind scenario.Kind, what string) {
	if j.broker {
		return // both machines are told
	}
	j.end(at, kind)
	j.spells = append(j.spells, spell{site: j.name, kind: kind, what: what, from: at})
}

func (j *journal) end(at time.Time, kind scenario.Kind) {
	for i, s := range j.spells {
		if s.site == j.name && s.kind == kind && s.to.IsZero() {
			j.spells[i].to = at
		}
	}
}

// deriveDecisions lets a new machine decide again, and notes what it reports.
func (j *journal) deriveDecisions() {
	submitted := make(map[uint64]string)
	visit := func(e store.Entry, effects []step.Effect) {
		if in, is := e.Input.(step.Submit); is {
			submitted[in.Command] = in.Job.Spec.Name
		}
		for _, effect := range effects {
			switch effect := effect.(type) {
			case step.Report:
				j.see(e.Time, sim.Sight{Kind: sim.SightReported, Broker: j.broker, Report: effect})
			case step.Reply:
				if effect.Job != "" && submitted[effect.Command] != "" {
					j.jobs = append(j.jobs, named{effect.Job, submitted[effect.Command]})
				}
			}
		}
	}
	result, err := store.Replay(j.run, j.newMachine, visit)
	switch {
	case err != nil:
		j.note("decisions are left out: %v", err)
	case result.Divergence != nil:
		j.note("decisions are left out from here on, as another build decided otherwise: %s",
			result.Divergence)
	}
}

func (j *journal) note(format string, args ...any) {
	j.notes = append(j.notes, fmt.Sprintf("%s, %s machine, start %d: %s",
		j.name, j.run.Machine, j.run.Incarnation, fmt.Sprintf(format, args...)))
}

// fill gives a record what was read, with times that count from the first one of all.
func (r *reader) fill(rec *Record) {
	slices.SortStableFunc(r.seen, func(a, b seen) int { return a.at.Compare(b.at) })
	rec.sites = r.sites
	if len(r.seen) == 0 {
		return
	}
	begin := r.seen[0].at
	rec.end = r.seen[len(r.seen)-1].at.Sub(begin)
	for n, s := range r.seen {
		s.At, s.Number = s.at.Sub(begin), n+1
		s.Site, s.To, s.Report.Site = r.name(s.Site), r.name(s.To), r.name(s.Report.Site)
		rec.sights = append(rec.sights, s.Sight)
	}
	for _, s := range r.spells {
		t := trouble{span: span{s.from.Sub(begin), rec.end}, site: s.site, kind: s.kind, what: s.what}
		if !s.to.IsZero() {
			t.to = s.to.Sub(begin)
		}
		rec.troubles = append(rec.troubles, t)
	}
	for _, j := range r.jobs {
		rec.names[j.id] = fmt.Sprintf("%s(%.4s)", j.name, j.id)
	}
}

// name is a site's name, or the end of its identity where its journals were not given.
func (r *reader) name(id grid.SiteID) grid.SiteID {
	if name, known := r.names[id]; known {
		return grid.SiteID(name)
	}
	const tail = 6
	if len(id) > tail {
		return "*" + id[len(id)-tail:]
	}
	return id
}
