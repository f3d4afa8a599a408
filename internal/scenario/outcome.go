package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Outcome is the result of a scenario, from any driver.
type Outcome struct {
	Jobs      []JobOutcome   // in the order of submission
	Doubled   int            // pairs of attempts of one task that ran at the same time
	Peers     map[string]int // of each running site at the end: how many others it is connected to
	Announced int            // jobs that were announced
	// Heard counts, for each site that runs at the end, the announced jobs that reached it by
	// gossip.
	Heard    map[string]int
	Sites    map[string]int   // reports of the sites' machines, by event
	Brokers  map[string]int   // reports of the submitters' machines, by event
	Faults   map[string]int64 // by site: the highest fault index at any submitter
	Messages int              // sent, a broadcast once for each receiver; 0 = was not counted
	Flaws    []string         // what the simulation's oracle found
	Favours  []string         // what domains have given to each other, a line each
	Hash     uint64           // of all inputs and effects; 0 = the driver has none
}

// JobOutcome is the result of one job.
type JobOutcome struct {
	Name    string         // as Submission.Names has it
	Took    time.Duration  // from submission to end; below 0: it has not ended
	Answers int            // sites that answered its announcements
	Tasks   []TaskOutcome  // empty: its submitter knows nothing of it
	Count   int            // tasks that were submitted
	Awards  map[string]int // by site
	Placed  time.Duration  // from submission to the first award; below 0: it had none
}

// TaskOutcome is the result of one task.
type TaskOutcome struct {
	Phase grid.Phase
	Site  string // of its last attempt; empty: it had none
	First string // of its first attempt
	Token int    // the number of its last attempt
	Moves int    // attempts that were given up for another one, declined awards left out

	// Began is when the submitter heard that the last attempt which ran had begun to,
	// since the scenario's beginning; 0: none ran.
	Began time.Duration
}

// NoteStart notes that an attempt was heard to run; a zero time says that it was not.
func (t *TaskOutcome) NoteStart(at, begin time.Time) {
	if !at.IsZero() {
		t.Began = max(t.Began, at.Sub(begin))
	}
}

// measure finds what an expectation is about. The flag says whether there is
// such a thing.
func (o Outcome) measure(e Expectation) (float64, bool) {
	if event, is := strings.CutPrefix(e.Measure, "site."); is {
		return float64(o.Sites[event]), true
	}
	if event, is := strings.CutPrefix(e.Measure, "broker."); is {
		return float64(o.Brokers[event]), true
	}
	switch e.Measure {
	case "doubled":
		return float64(o.Doubled), true
	case "peers":
		return float64(least(o.Peers)), true
	case "heard":
		return float64(least(o.Heard)), true
	case "frozen", "resumed":
		return float64(o.Sites[e.Measure]), true
	case "cache_hits":
		return float64(o.Sites["cache_hit"]), true
	case "cache_misses":
		return float64(o.Sites["cache_miss"]), true
	case "messages":
		return float64(o.Messages), true
	case "flaws":
		return float64(len(o.Flaws)), true
	case "faults":
		return float64(o.Faults[e.At]), true
	case "placed", "token", "awards":
		return o.measurePlacing(e), true
	case "earliest", "latest", "spread":
		return o.measureStarts(e)
	default:
		return o.measureJobs(e)
	}
}

func least(counts map[string]int) int {
	if len(counts) == 0 {
		return 0
	}
	return slices.Min(slices.Collect(maps.Values(counts)))
}

// measurePlacing is about awards.
func (o Outcome) measurePlacing(e Expectation) float64 {
	most := 0.0
	for _, j := range o.Jobs {
		switch {
		case !e.isAbout(j):
		case e.Measure == "awards":
			most += float64(j.Awards[e.At])
		case e.Measure == "placed" && j.Placed < 0:
			most = longestTime.Seconds()
		case e.Measure == "placed":
			most = max(most, j.Placed.Seconds())
		default:
			for _, t := range j.Tasks {
				most = max(most, float64(t.Token))
			}
		}
	}
	return most
}

// measureStarts is about when tasks began, in seconds. Nothing is measured if none
// did.
func (o Outcome) measureStarts(e Expectation) (float64, bool) {
	var starts []time.Duration
	for _, j := range o.Jobs {
		for _, t := range j.Tasks {
			if e.isAbout(j) && t.Began > 0 {
				starts = append(starts, t.Began)
			}
		}
	}
	switch {
	case len(starts) == 0:
		return 0, false
	case e.Measure == "earliest":
		return slices.Min(starts).Seconds(), true
	case e.Measure == "latest":
		return slices.Max(starts).Seconds(), true
	default:
		return (slices.Max(starts) - slices.Min(starts)).Seconds(), true
	}
}

func (o Outcome) measureJobs(e Expectation) (float64, bool) {
	sum, slowest, known := 0, time.Duration(0), true
	for _, j := range o.Jobs {
		if !e.isAbout(j) {
			continue
		}
		if j.Took < 0 {
			slowest = longestTime
		}
		slowest = max(slowest, j.Took)
		if e.Measure == "answers" {
			sum += j.Answers
			continue
		}
		n, ok := j.count(e.Measure)
		sum, known = sum+n, known && ok
	}
	if e.Measure == "within" {
		return slowest.Seconds(), true
	}
	return float64(sum), known
}

// Total counts the job's tasks that are done, failed, refused, cancelled or lost, or its moves;
// 0 for another word.
func (j JobOutcome) Total(measure string) int {
	n, _ := j.count(measure)
	return n
}

// longestTime stands for the time of a job that has not ended.
const longestTime = 10 * longest

// count counts one thing over the tasks of a job.
func (j JobOutcome) count(measure string) (int, bool) {
	phases := map[string]grid.Phase{
		"done": grid.PhaseDone, "failed": grid.PhaseFailed, "refused": grid.PhaseRefused,
		"cancelled": grid.PhaseCancelled,
	}
	phase, isPhase := phases[measure]
	n := 0
	for _, t := range j.Tasks {
		switch {
		case isPhase && t.Phase == phase, measure == "lost" && !t.Phase.Ended():
			n++
		case measure == "moves":
			n += t.Moves
		}
	}
	if measure == "lost" {
		n += j.Count - len(j.Tasks)
	}
	return n, isPhase || measure == "lost" || measure == "moves" || measure == "within"
}

// Total counts tasks over all jobs: those that are done, failed, refused, cancelled or lost, or
// moves; 0 for another word.
func (o Outcome) Total(measure string) int {
	n := 0
	for _, j := range o.Jobs {
		n += j.Total(measure)
	}
	return n
}

// Summary is the outcome as a text to compare with an earlier one: the jobs and
// who ran their tasks, what moved, the reports, the messages and the hash.
func (o Outcome) Summary() string {
	var b strings.Builder
	shown := o.Jobs
	if len(shown) > maxShown {
		shown = shown[:maxShown]
	}
	for _, j := range shown {
		b.WriteString(j.summary())
	}
	if more := len(o.Jobs) - len(shown); more > 0 {
		fmt.Fprintf(&b, "... and %d more jobs\n", more)
	}
	fmt.Fprintf(&b, "done %d, failed %d, refused %d, cancelled %d, moved %d, lost %d, doubled %d\n",
		o.Total("done"), o.Total("failed"), o.Total("refused"), o.Total("cancelled"),
		o.Total("moves"), o.Total("lost"), o.Doubled)
	fmt.Fprintf(&b, "announced %d, heard by each site %d or more, peers of each site %d or more\n",
		o.Announced, least(o.Heard), least(o.Peers))
	fmt.Fprintf(&b, "messages %d\n", o.Messages)
	b.WriteString(events("sites", o.Sites))
	b.WriteString(events("brokers", o.Brokers))
	for _, line := range o.Favours {
		b.WriteString(line + "\n")
	}
	if o.Hash != 0 {
		fmt.Fprintf(&b, "hash %016x\n", o.Hash)
	}
	return b.String()
}

// maxShown is the number of jobs that a summary lists.
const maxShown = 12

func (j JobOutcome) summary() string {
	ran, phases := map[string]int{}, map[string]int{}
	moves := 0
	for _, t := range j.Tasks {
		phases[t.Phase.String()]++
		moves += t.Moves
		if t.Site != "" {
			ran[t.Site]++
		}
	}
	took := "has not ended"
	if j.Took >= 0 {
		took = "took " + j.Took.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%s: %s, %s, on %s, %d moves, %d answers\n",
		j.Name, counts(phases), took, counts(ran), moves, j.Answers)
}

func counts(of map[string]int) string {
	if len(of) == 0 {
		return "none"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s:%d", k, of[k]))
	}
	return strings.Join(parts, " ")
}

func events(of string, reports map[string]int) string {
	var b strings.Builder
	for _, event := range slices.Sorted(maps.Keys(reports)) {
		fmt.Fprintf(&b, "  %-7s %-20s %d\n", of, event, reports[event])
	}
	return b.String()
}
