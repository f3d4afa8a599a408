package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one demand.
type row struct {
	what, found, wanted string
	met                 bool
}

const (
	mostGrown  = 1.10 // RSS after the last batch beside that after the first
	leastSpeed = 0.9  // jobs per second, likewise
	quickStart = time.Second
	quickReply = 50 * time.Millisecond
)

var errMissed = errors.New("missed")

// judge prints the table. Its error says how many demands were missed.
func (s *soak) judge(jobs int) error {
	rows := append(s.judgeJobs(jobs), s.judgeFiles()...)
	w := tabwriter.NewWriter(s.out.Rows(), 0, 0, 2, ' ', 0)
	missed := 0
	for _, r := range rows {
		verdict := "met"
		if !r.met {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.found, r.wanted, verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%w: %d of %d", errMissed, missed, len(rows))
	}
	return nil
}

func (s *soak) judgeJobs(jobs int) []row {
	first, last := s.looks[0], s.looks[len(s.looks)-1]
	list, answer := time.Duration(0), time.Duration(0)
	for _, l := range s.looks {
		list, answer = max(list, l.list), max(answer, l.answer)
	}
	grown, speed := float64(last.rss)/float64(first.rss), last.rate/first.rate
	all := fmt.Sprintf("all %d", jobs)
	return []row{
		{"jobs refused", fmt.Sprint(s.count.refused), "none", s.count.refused == 0},
		{"jobs done", fmt.Sprint(s.count.done), all, s.count.done == jobs && s.count.ended == jobs},
		{"jobs listed afterwards", fmt.Sprint(s.held), all, s.held == jobs},
		{
			"RSS of the submitter, first and last",
			fmt.Sprintf("%.1f, %.1f MB: %.2f", mega(first.rss), mega(last.rss), grown),
			fmt.Sprintf("<= %.2f", mostGrown), grown <= mostGrown,
		},
		{
			"jobs/s, first and last", fmt.Sprintf("%.1f, %.1f: %.2f", first.rate, last.rate, speed),
			fmt.Sprintf(">= %.2f", leastSpeed), speed >= leastSpeed,
		},
		{"submit list, slowest median", list.String(), "< " + quickReply.String(), list < quickReply},
		{"API, slowest median", answer.String(), "< " + quickReply.String(), answer < quickReply},
		{"start afterwards", s.again.String(), "< " + quickStart.String(), s.again < quickStart},
	}
}

// bounds are what docs/operating.md says of the files of a state directory, with what the
// open ones may add, in bytes.
func (s *soak) bounds() map[string]int64 {
	c := s.mesh.Submitter().Config
	return map[string]int64{
		"facts.db": 16 << 20, "history.db": c.History.SizeBytes, "data": c.Data.QuotaBytes,
		"journal": (256 + 2*2*16) << 20, "runs.jsonl": 4<<20 + 64<<10, "runs.jsonl.1": 4<<20 + 64<<10,
		"history.log": 1 << 20, "facts.log": 1 << 20,
	}
}

// judgeFiles has a row for each kind of file: the largest there was at any site. Names without a
// bound are those of small files, together.
func (s *soak) judgeFiles() []row {
	bounds, most := s.bounds(), make(map[string]int64)
	for _, l := range s.looks {
		for _, files := range l.files {
			rest := int64(0)
			for name, bytes := range files {
				if _, bounded := bounds[name]; bounded {
					most[name] = max(most[name], bytes)
				} else {
					rest += bytes
				}
			}
			most["others"] = max(most["others"], rest)
		}
	}
	bounds["others"] = 8 << 20
	var rows []row
	for name, bytes := range most {
		rows = append(rows, row{
			"largest " + name, fmt.Sprintf("%.1f MB", mega(bytes)),
			fmt.Sprintf("<= %.1f MB", mega(bounds[name])), bytes <= bounds[name],
		})
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.what, b.what) })
	return rows
}
