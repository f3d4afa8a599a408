package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// showDeadlines shows who was promised what, and whether it was kept.
func (s *story) showDeadlines() {
	w := tabwriter.NewWriter(s.out.Rows(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tDUE\tANSWERED\tANSWER\tENDED\tTO SPARE")
	for _, r := range s.rows {
		answer := "promised by " + r.by + keptText(r.kept)
		end := r.ended.Local().Format(time.TimeOnly)
		spare := r.due.Sub(r.ended).Round(100 * time.Millisecond).String()
		if r.refused {
			answer, end, spare = "refused; nobody names a time", "-", "-"
			if !r.earliest.IsZero() {
				answer = fmt.Sprintf(
					"refused; by %s at the earliest, at %s", r.earliest.Local().Format(time.TimeOnly), r.by,
				)
			}
		}
		fmt.Fprintf(
			w, "%s\t%s\tin %s\t%s\t%s\t%s\n", r.id, r.due.Format(time.TimeOnly),
			r.answered.Round(10*time.Millisecond), answer, end, spare,
		)
	}
	_ = w.Flush() // a screen that is gone needs no table
}

func keptText(kept *float64) string {
	if kept == nil {
		return ""
	}
	return ", kept with " + view.Percent(kept)
}

func (s *story) showReservation() {
	r := s.start.reservation
	w := tabwriter.NewWriter(s.out.Rows(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RESERVATION\tSITE\tFROM\tJOB STARTED\tBEST EFFORT BEFORE IT")
	fmt.Fprintf(w, "%s\t%s\t%s\t%.3f s later\t%d tasks began there\n", r.ID, r.Places[0].SiteName,
		r.Start.Local().Format(time.TimeOnly),
		s.start.late().Seconds(), s.start.before)
	_ = w.Flush() // as above
}

// late is the time from the reservation's start to its job's.
func (s started) late() time.Duration { return s.at.Sub(s.reservation.Start.Time) }

// kept reports whether the job began in the reservation's second.
func (s started) kept() bool { return s.late() >= 0 && s.late() <= startSlack }

// verdict is the last line. Anything but a full success is an error.
func (s *story) verdict() error {
	kept, late, refused := 0, 0, 0
	for _, r := range s.rows {
		switch {
		case r.refused && r.answered <= atOnce && r.earliest.After(r.due):
			refused++
		case r.refused:
		case r.ended.After(r.due):
			late++
		default:
			kept++
		}
	}
	if s.start.kept() {
		kept++
	} else {
		late++
	}
	line := fmt.Sprintf("%d kept, %d refused immediately, %d late", kept, refused, late)
	if kept != possible+1 || refused != wanted-possible || late != 0 || s.start.before == 0 {
		return errors.New(
			line + ": this is not what was promised; run it again with -keep -v and look at the logs",
		)
	}
	s.out.Final("deadline: " + line)
	return nil
}
