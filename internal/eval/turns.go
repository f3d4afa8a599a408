package eval

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Law is a law of durations.
type Law struct {
	Name  string // see Laws
	Scale time.Duration
	Shape float64 // 0 = a usual one
}

// Laws are the names for Law.Name.
func Laws() []string { return workload.Laws() }

// ofSeconds is the law in seconds. Errors name the flags, which begin with the prefix.
func (l Law) ofSeconds(prefix string) (workload.Law, error) {
	law := workload.Law{Name: l.Name, Scale: l.Scale.Seconds(), Shape: l.Shape}
	if l.Shape == 0 {
		law.Shape = usualShape(l.Name)
	}
	if err := law.Validate(); err != nil {
		return law, fmt.Errorf("%w: --%s%w", ErrUsage, prefix, err)
	}
	return law, nil
}

func usualShape(name string) float64 {
	switch name {
	case workload.Normal:
		return 0.25
	case workload.Weibull:
		return 0.5
	case workload.LogNormal:
		return 1
	}
	return 0
}

// Turns makes up machines that are up and down in turns.
type Turns struct {
	Up, Down Law
	// Availability is the share of time in which machines are up; 0 = what the laws give,
	// else the scale of Down follows from it.
	Availability float64
	Machines     int
	Days         int
	Seed         uint64
}

// mostEvents bounds the events of a file: some 500 MB of lines.
const mostEvents = 10_000_000

// Write writes the machines as an event_trace of the Failure Trace Archive.
func (t Turns) Write(out io.Writer) error {
	turns, err := t.turns()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	for _, line := range t.comments(turns) {
		fmt.Fprintln(buffered, "# "+line)
	}
	if err := writeLines(buffered, workload.EventLines(t.nodes(turns))); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return buffered.Flush()
}

func (t Turns) turns() (turns workload.Turns, err error) {
	if turns.Up, err = t.Up.ofSeconds(""); err != nil {
		return turns, err
	}
	down := t.Down
	if t.Availability != 0 {
		down.Scale = time.Hour // of any scale: it follows
	}
	if turns.Down, err = down.ofSeconds("down-"); err != nil {
		return turns, err
	}
	switch a := t.Availability; {
	case a == 0:
	case a > 0 && a < 1:
		turns.Down = turns.Down.WithMean(turns.Up.Mean() * (1 - a) / a)
	default:
		return turns, fmt.Errorf("%w: --availability: want more than 0 and less than 1, have %v",
			ErrUsage, a)
	}
	switch {
	case t.Machines < 1:
		return turns, fmt.Errorf("%w: --machines: want at least 1, have %d", ErrUsage, t.Machines)
	case t.Days < 1 || t.Days > mostDays:
		return turns, fmt.Errorf("%w: --days: want 1 to %d, have %d", ErrUsage, mostDays, t.Days)
	case t.events(turns) > mostEvents:
		return turns, fmt.Errorf("%w: --scale: these would be some %.0f events, at most %d are written: "+
			"want longer durations, fewer --machines or fewer --days", ErrUsage, t.events(turns), mostEvents)
	}
	return turns, nil
}

// mostDays is a century.
const mostDays = 36_525

// events is about how many events there will be. Where few durations make up most of the
// mean, there are more of them in a short time than the mean says.
func (t Turns) events(turns workload.Turns) float64 {
	cycle := min(
		turns.Up.Mean()+turns.Down.Mean(), turns.Up.Median()+turns.Down.Median(),
	)
	return 2 * float64(t.Machines) * t.seconds() / cycle
}

func (t Turns) seconds() float64 { return float64(t.Days) * (24 * time.Hour).Seconds() }

func (t Turns) nodes(turns workload.Turns) iter.Seq[workload.Node] {
	return func(yield func(workload.Node) bool) {
		for i := range t.Machines {
			node := workload.Node{Name: fmt.Sprintf("m%06d", i)}
			rng := workload.Stream(t.Seed, "availability "+node.Name)
			node.Spells = turns.Spells(rng, t.seconds())
			for k := range node.Spells {
				node.Spells[k].From += firstMidnight
				node.Spells[k].To += firstMidnight
			}
			if !yield(node) {
				return
			}
		}
	}
}

func (t Turns) comments(turns workload.Turns) []string {
	return []string{
		fmt.Sprintf("%d machines, %d days from a Monday on, seed %d, made by "+
			"gridsim workload availability", t.Machines, t.Days, t.Seed),
		fmt.Sprintf("times up %s; down %s", described(turns.Up), described(turns.Down)),
		fmt.Sprintf("availability %.6g", turns.Availability()),
	}
}

// described is a law in words, in hours.
func described(l workload.Law) string {
	const hour = 3600
	var b strings.Builder
	fmt.Fprintf(&b, "%s: scale %.6g h", l.Name, l.Scale/hour)
	if l.Shape != 0 {
		fmt.Fprintf(&b, ", shape %.6g", l.Shape)
	}
	fmt.Fprintf(&b, ", mean %.6g h, median %.6g h", l.Mean()/hour, l.Median()/hour)
	return b.String()
}
