package play

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Observed holds what the journals of real agents tell of their mesh, as far as a simulation needs
// it: who the sites are, which jobs were submitted when, for how long each task ran, and how long
// everything else took. What became of the jobs stands apart; Simulate does not look at it.
type Observed struct {
	Courses []Course // of the jobs, as they were
	Lags    Measured // how long what the machines wanted took
	Notes   []string // what happened and is not simulated

	sites   []observedSite // in the order of their directories
	jobs    []observedJob  // in the order of their submission
	outside []outsideInput
	ends    map[grid.TaskID]observedEnd
}

// observedSite says how a site's machines were made.
type observedSite struct {
	id     grid.SiteID
	name   string
	site   site.Config
	broker broker.Config
	runs   []store.Run
}

// observedJob is a job as it was submitted.
type observedJob struct {
	at time.Duration // since the first agent started
	by grid.SiteID
	id grid.JobID
	in step.Submit
}

// outsideInput is an input that the owner, the host or the past of a site has told its machine.
type outsideInput struct {
	at     time.Duration
	site   grid.SiteID
	broker bool
	in     step.Input
}

// observedEnd is the attempt that ended a task.
type observedEnd struct {
	ran  time.Duration // its program, frozen time left out
	exit grid.Exit
}

// ErrNotSimulated says that journals hold what Observed.Simulate cannot do.
var ErrNotSimulated = errors.New("it cannot be simulated")

// Observe reads the journals of all agents of a mesh, each in its state directory; nothing in them
// is changed. newMachine makes a machine as the header of a journal says. Decisions are derived
// again, so that another build's journals are an error. ErrNotSimulated are agents that were
// started more than once, clocks that differ by more than a second, and jobs that have a time, a
// reservation or others to wait for.
func Observe(
	dirs []string, newMachine func(store.Header) (step.Machine, error),
) (*Observed, error) {
	o := &Observed{ends: make(map[grid.TaskID]observedEnd)}
	var begin time.Time
	for _, dir := range dirs {
		first, err := o.addSite(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if begin.IsZero() || first.Before(begin) {
			begin = first
		}
	}
	w := newWatcher(o, begin)
	for _, s := range o.sites {
		for _, run := range s.runs {
			if err := w.watch(s.id, run, newMachine); err != nil {
				return nil, fmt.Errorf("%s, %s machine: %w", s.name, run.Machine, err)
			}
		}
	}
	w.finish()
	return o, nil
}

// addSite adds the site that a state directory is of, and tells when its agent started.
func (o *Observed) addSite(dir string) (begin time.Time, err error) {
	s := observedSite{}
	if s.runs, err = store.Runs(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return begin, err
	}
	if s.runs = ofOwner(s.runs); len(s.runs) == 0 {
		return begin, ErrNoJournals
	}
	if s.id, s.name, err = ownerOf(s.runs); err != nil {
		return begin, err
	}
	if slices.ContainsFunc(o.sites, func(other observedSite) bool { return other.id == s.id }) {
		return begin, fmt.Errorf("it is of %s, of which another directory was given", s.name)
	}
	if err = s.configure(); err != nil {
		return begin, err
	}
	for _, run := range s.runs {
		first, _, err := run.Times()
		if err != nil {
			return begin, err
		}
		if begin.IsZero() || first.Before(begin) {
			begin = first
		}
	}
	o.sites = append(o.sites, s)
	return begin, nil
}

// configure reads how the site's machines were made.
func (s *observedSite) configure() error {
	configs := map[string]any{siteMachine: &s.site, brokerMachine: &s.broker}
	for _, run := range s.runs {
		config, once := configs[run.Machine]
		if !once {
			return fmt.Errorf("%w: its agent was started more than once", ErrNotSimulated)
		}
		delete(configs, run.Machine)
		if err := json.Unmarshal(run.Config, config); err != nil {
			return fmt.Errorf("configuration of the %s machine: %w", run.Machine, err)
		}
	}
	if len(configs) > 0 {
		return fmt.Errorf("%w: the journal of one of its machines is missing", ErrNotSimulated)
	}
	return nil
}

// siteMachine is the name of a site's own machine in a journal's header.
const siteMachine = "site"

// simulable checks that a job can be simulated.
func simulable(j grid.Job) error {
	switch {
	case j.Spec.Reservation != "" || j.Spec.Kind == grid.KindReservation:
		return fmt.Errorf("%w: job %q is about a reservation", ErrNotSimulated, j.Spec.Name)
	case j.Spec.Window != (grid.Window{}):
		return fmt.Errorf("%w: job %q has a time to begin or to end by",
			ErrNotSimulated, j.Spec.Name)
	case len(j.After) > 0:
		return fmt.Errorf("%w: job %q waits for other jobs", ErrNotSimulated, j.Spec.Name)
	default:
		return nil
	}
}
