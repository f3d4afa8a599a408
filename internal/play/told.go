package play

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Text is the record for people: a line of time for each site, the decisions, and the messages.
// What keeps leases and views as they are is only counted; and unless all is asked for, no more
// is told than can be read in a sitting, and the rest counted.
func (rec *Record) Text(all bool) string {
	mostDecisions, mostMessages := maxDecisions, maxMessages
	if all {
		mostDecisions, mostMessages = math.MaxInt, math.MaxInt
	}
	messages, beats := rec.messages()
	return rec.timeLine() +
		rec.section("decisions: at, who, what, job, tasks, #token",
			"decisions", rec.decisions(), mostDecisions) +
		rec.section("messages: at, from > to, kind, job, tasks, #token",
			"messages", messages, mostMessages) +
		wrap("  beside them, to keep leases and views: ", beats)
}

// messages lists what was sent, in its order, and counts by kind what only kept something as it
// was.
func (rec *Record) messages() (all []entry, beats map[string]int) {
	beats = make(map[string]int)
	leased := make(map[grid.AttemptID]bool)
	for number, s := range rec.sights {
		switch {
		case s.Kind == sim.SightSent && isHeartbeat(s.Message, leased):
			beats[kindOf(s.Message)]++
		case s.Kind == sim.SightSent:
			for _, e := range rec.messagesOf(s) {
				e.number = number
				all = append(all, e)
			}
		}
	}
	return all, beats
}

// decisions lists what was decided, in its order.
func (rec *Record) decisions() []entry {
	all := make([]entry, 0, len(rec.sights))
	for number, s := range rec.sights {
		if s.Kind == sim.SightReported && isDecision(s) {
			e := decisionOf(s)
			e.number = number
			all = append(all, e)
		}
	}
	return all
}

// echoes are the events in which a machine notes what another one decided, or which
// change nothing.
func echoes() []string { return []string{"accepted", "running", "frozen", "staging", "invalid"} }

// isDecision reports whether a report is about the life of a job: what people are
// told, and not the submitter's echo of what a site did.
func isDecision(s sim.Sight) bool {
	echo := s.Broker && slices.Contains(echoes(), s.Report.Event)
	return s.Report.Level >= step.LevelInfo && s.Report.Attempt.Task.Job != "" && !echo
}

func decisionOf(s sim.Sight) entry {
	r := s.Report
	e := entry{
		at: s.At, from: string(s.Site), what: r.Event, job: r.Attempt.Task.Job, token: r.Attempt.Token,
	}
	if e.token > 0 {
		e.tasks = []uint32{r.Attempt.Task.Index}
	}
	switch {
	case !s.Broker || r.Site == "":
	case strings.HasPrefix(r.Event, "awarded"):
		e.more = "to " + string(r.Site)
	case r.Site != s.Site:
		e.more = "at " + string(r.Site)
	}
	if r.Reason != grid.ReasonNone {
		e.more = strings.TrimSpace(e.more + " " + reasonWord(r.Reason))
	}
	return e
}

// isHeartbeat reports whether a message only keeps something as it is. The first
// lease of an attempt lets it run, and is told.
func isHeartbeat(msg protocol.Message, leased map[grid.AttemptID]bool) bool {
	switch m := msg.(type) {
	case protocol.Renew:
		return true
	case protocol.Progress:
		return m.Phase != grid.PhaseFrozen
	case protocol.Lease:
		again := true
		for _, id := range m.Attempts {
			again = again && leased[id]
			leased[id] = true
		}
		return again
	default:
		return false
	}
}

func kindOf(msg protocol.Message) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", msg), "protocol.")
}

// messagesOf is a message as one entry for each job and attempt in it.
func (rec *Record) messagesOf(s sim.Sight) []entry {
	e := entry{
		at: s.At, from: string(s.Site), to: string(s.To), what: kindOf(s.Message),
		lost: rec.lost[s.Number],
	}
	switch m := s.Message.(type) {
	case protocol.Vacancy:
		return each(e, m.Jobs, func(e *entry, job grid.JobID) { e.job = job })
	case protocol.Award:
		return each(e, m.Tasks, func(e *entry, t protocol.AwardedTask) {
			e.job, e.token, e.tasks = m.Job, t.Token, []uint32{t.Index}
			if m.AskFirst {
				e.more = "ask first"
			}
		})
	}
	if attempts := attemptsOf(s.Message); attempts != nil {
		e.more = attemptText(s.Message)
		return each(e, attempts, func(e *entry, id grid.AttemptID) {
			e.job, e.tasks, e.token = id.Task.Job, []uint32{id.Task.Index}, id.Token
		})
	}
	return []entry{aboutJob(e, s.Message)}
}

// aboutJob fills in what a message about a job as a whole says.
func aboutJob(e entry, msg protocol.Message) entry {
	round := func(seq uint32, more string) { e.more = fmt.Sprintf("round %d%s", seq, more) }
	switch m := msg.(type) {
	case protocol.Announce:
		e.job, e.folded = m.Job, foldReceivers
		round(m.Seq, fmt.Sprintf(", %d tasks", m.Count))
	case protocol.Requirements:
		e.job = m.Announce.Job
		round(m.Announce.Seq, fmt.Sprintf(", %d tasks", m.Announce.Count))
	case protocol.Reannounce:
		e.job, e.folded = m.Job, foldReceivers
		round(m.Seq, fmt.Sprintf(", %d tasks", m.Count))
	case protocol.NeedRequirements:
		e.job, e.folded = m.Job, foldSenders
		round(m.Seq, "")
	case protocol.Bid:
		e.job, e.folded = m.Job, foldSenders
		round(m.Seq, ", "+offerText(m.Offer))
	case protocol.Refuse:
		e.job, e.folded = m.Job, foldSenders
		round(m.Seq, ", "+refusalText(m.Refusal))
	case protocol.HoldOffer:
		e.job, e.folded = m.Job, foldReceivers
		round(m.Seq, fmt.Sprintf(", %d tasks", m.Tasks))
	case protocol.Clear:
		e.job, e.folded = m.Job, foldReceivers
		e.more = [...]string{"?", "placed", "ended", "withdrawn"}[m.Kind]
	case protocol.Cancel:
		e.job, e.folded = m.Job, foldReceivers
	}
	return e
}

// attemptsOf lists the attempts that a message is about, nil for another message.
func attemptsOf(msg protocol.Message) []grid.AttemptID {
	switch m := msg.(type) {
	case protocol.Accepted:
		return m.Attempts
	case protocol.Declined:
		return m.Attempts
	case protocol.Lease:
		return m.Attempts
	case protocol.MayStart:
		return m.Attempts
	case protocol.Fence:
		return m.Below
	case protocol.ExitAck:
		return m.Attempts
	case protocol.Progress:
		return []grid.AttemptID{m.Attempt}
	case protocol.Exited:
		return []grid.AttemptID{m.Attempt}
	case protocol.Move:
		return []grid.AttemptID{m.Attempt}
	case protocol.Movable:
		return []grid.AttemptID{m.Attempt}
	default:
		return nil
	}
}

// attemptText describes the attempts that a message names.
func attemptText(msg protocol.Message) string {
	switch m := msg.(type) {
	case protocol.Progress:
		if m.Reason != grid.ReasonNone {
			return m.Phase.String() + " " + reasonWord(m.Reason)
		}
		return m.Phase.String()
	case protocol.Declined:
		if m.Quote != nil {
			return refusalText(m.Refusal) + ", now " + offerText(*m.Quote)
		}
		return refusalText(m.Refusal)
	case protocol.Exited:
		return causeWord(m.Exit)
	case protocol.Move:
		return map[bool]string{false: "save a last state", true: "stop"}[m.Stop]
	case protocol.Movable:
		return reasonWord(m.Reason)
	default:
		return ""
	}
}

func each[T any](e entry, of []T, set func(*entry, T)) []entry {
	all := make([]entry, 0, len(of))
	for _, x := range of {
		one := e
		set(&one, x)
		all = append(all, one)
	}
	return all
}

func offerText(o grid.Offer) string {
	text := fmt.Sprintf("distance %.3g, room for %d", o.Parts.Distance, o.TasksNow)
	if o.Firm {
		text += ", firm"
	}
	return text
}

func refusalText(r grid.Refusal) string {
	if r.Never {
		return "never: " + reasonWord(r.Reason)
	}
	return reasonWord(r.Reason)
}

// reasonWords are the golden files' own, so that a better sentence for people does
// not change them.
func reasonWords() map[grid.Reason]string {
	return map[grid.Reason]string{
		grid.ReasonKind:         "kind",
		grid.ReasonPlatform:     "platform",
		grid.ReasonCPUs:         "cpus",
		grid.ReasonMemory:       "memory",
		grid.ReasonDisk:         "disk",
		grid.ReasonComputation:  "computation",
		grid.ReasonData:         "data",
		grid.ReasonWindow:       "window",
		grid.ReasonPaused:       "paused",
		grid.ReasonDraining:     "draining",
		grid.ReasonQuota:        "quota",
		grid.ReasonNotMember:    "not-member",
		grid.ReasonUnknownOffer: "unknown-offer",
		grid.ReasonWorse:        "worse",
		grid.ReasonStale:        "stale",
		grid.ReasonInvalid:      "invalid",
		grid.ReasonOwnerBusy:    "owner-busy",
		grid.ReasonAvailability: "availability",
		grid.ReasonReservation:  "reservation",
		grid.ReasonPromised:     "promised",
		grid.ReasonAhead:        "ahead",
		grid.ReasonAdapter:      "adapter",
		grid.ReasonOverrun:      "overrun",
		grid.ReasonBandwidth:    "bandwidth",
		grid.ReasonNowhere:      "nowhere",
	}
}

func reasonWord(r grid.Reason) string {
	if word, known := reasonWords()[r]; known {
		return word
	}
	return fmt.Sprintf("reason-%d", r)
}

func causeWord(e grid.Exit) string {
	if e.Cause == grid.CauseExited {
		return fmt.Sprintf("code %d", e.Code)
	}
	words := [...]string{
		"", "", "signal", "memory", "disk", "output", "time-limit", "unrunnable", "data", "sandbox",
		"restarted", "stopped",
	}
	if int(e.Cause) < len(words) {
		return words[e.Cause]
	}
	return fmt.Sprintf("cause-%d", e.Cause)
}
