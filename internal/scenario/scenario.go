package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Scenario is a story about a mesh.
type Scenario struct {
	Sites  []Site
	Links  []Link // between its domains
	Net    Net
	Events []Event // in the order in which they are written
	Run    Run
	Expect Expectations
}

// Site is one site of a scenario. It is up from the beginning.
type Site struct {
	Name       string // s0, s1, ...
	Domain     grid.DomainID
	Capability grid.Capability
	Skew       time.Duration // its clock minus the true time
}

// Net says what happens to each message. The zero value is a perfect network.
type Net struct {
	Latency   time.Duration // one way
	Jitter    time.Duration // added, uniform from 0 to this
	Loss      float64       // probability of being lost
	Duplicate float64       // probability of arriving twice
	Reorder   float64       // probability of overtaking or being overtaken
}

// Run says how long a scenario goes on and where its chances come from.
type Run struct {
	For  time.Duration
	Seed uint64
}

// Kind is the kind of an Event or an Action.
type Kind uint8

// The kinds. The first of each pair begins something that the second ends.
const (
	Crash   Kind = iota + 1 // the site's agent is killed, its jobs with it
	Restart                 // it is started again with what is on its disk
	Isolate                 // the site is cut off from all others
	Rejoin                  // it reaches them again
	Silent                  // the site hears everything and answers nothing
	Speak                   // it answers again
	Pause                   // the owner wants no work
	Resume                  // the owner takes work again
	Busy                    // the owner uses the machine
	Away                    // the owner no longer needs it
	Submit                  // a job is submitted
	Cancel                  // a job is called off
	Migrate                 // its running tasks are moved, if need be from their beginning
	Upset                   // something else goes wrong at the site, see Trouble
	Settle                  // and is over
)

// OfJob reports whether the kind is about a job, and not about a site.
func (k Kind) OfJob() bool { return k == Submit || k == Cancel || k == Migrate }

// String is the word of the format that begins the line.
func (k Kind) String() string {
	words := [...]string{
		"unknown", "crash", "restart", "isolate", "rejoin", "silent", "speak", "pause", "resume",
		"busy", "away",
		"submit", "cancel", "migrate", "upset", "settle",
	}
	if int(k) < len(words) {
		return words[k]
	}
	return words[0]
}

// Event is one line that makes something happen.
type Event struct {
	Kind Kind
	At   time.Duration // since the start
	For  time.Duration // crash, isolate, silent, pause, busy: how long; 0 = to the end
	Site string        // whom it happens to; empty for submit, cancel and migrate
	// Amid makes a crash happen in the midst of the next step, with a part of its effects
	// carried out.
	Amid   bool
	Job    string     // cancel, migrate: the name of the submission
	Submit Submission // submit: what

	Trouble Trouble // upset: what
}

// Action is one thing that a driver does, and when.
type Action struct {
	At    time.Duration
	Kind  Kind
	Event Event // whose beginning or end it is
}

// OnlySimulated names the first word that only a simulation can play, a trouble of a site or a link
// between domains; empty: there is none, and any driver can play the scenario.
func (s Scenario) OnlySimulated() string {
	if len(s.Links) > 0 {
		return "link"
	}
	for _, e := range s.Events {
		if e.Kind == Upset {
			return e.Trouble.Word
		}
	}
	return ""
}

// Timeline lists what is to be done, in the order of time; what happens at one
// moment keeps the order of the lines, and ends come before beginnings.
func (s Scenario) Timeline() []Action {
	var actions []Action
	for _, e := range s.Events {
		actions = append(actions, Action{At: e.At, Kind: e.Kind, Event: e})
		if e.For > 0 {
			actions = append(actions, Action{At: e.At + e.For, Kind: e.Kind + 1, Event: e})
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.begins(), b.begins()))
	})
	return actions
}

func (a Action) begins() int {
	if a.Kind == a.Event.Kind {
		return 1
	}
	return 0
}

// Submissions lists what is submitted, in the order of time.
func (s Scenario) Submissions() []Submission {
	var all []Submission
	for _, a := range s.Timeline() {
		if a.Kind == Submit {
			all = append(all, a.Event.Submit)
		}
	}
	return all
}
