package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The events of a run record, as supervisors write it (see internal/lrm).
const (
	eventStarted = "started"
	eventFrozen  = "frozen"
	eventResumed = "resumed"
	eventEnded   = "ended"
	maxLine      = 1 << 20
)

// runRecord is one line of a run record.
type runRecord struct {
	Attempt    grid.AttemptID `json:"attempt"`
	Event      string         `json:"event"`
	WallMS     int64          `json:"wall_ms"` // Unix time
	BootNS     int64          `json:"boot_ns"` // the machine's boot clock
	Supervisor struct {
		Boot string `json:"boot"` // names the boot; at started only
	} `json:"supervisor"`
}

// readRunRecord reads the lines that are whole; a crash may tear some. What was put aside when
// the file had grown (see internal/lrm) comes first.
func readRunRecord(path string) ([]runRecord, error) {
	before, err := readRunFile(path + ".1")
	if err != nil {
		return nil, err
	}
	records, err := readRunFile(path)
	return append(before, records...), err
}

func readRunFile(path string) ([]runRecord, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read run record: %w", err)
	}
	defer f.Close()
	records, err := parseRunRecord(f)
	if err != nil {
		return nil, fmt.Errorf("read run record %s: %w", path, err)
	}
	return records, nil
}

func parseRunRecord(in io.Reader) ([]runRecord, error) {
	var records []runRecord
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r runRecord
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Attempt.Validate() == nil {
			records = append(records, r)
		}
	}
	return records, lines.Err()
}

// oneBoot reports whether all records were written in one boot of one machine,
// so that their boot clocks can be compared.
func oneBoot(files [][]runRecord) bool {
	boot := ""
	for _, f := range files {
		for _, r := range f {
			if r.Event != eventStarted {
				continue
			}
			if b := r.Supervisor.Boot; b == "" || boot != "" && b != boot {
				return false
			}
			boot = r.Supervisor.Boot
		}
	}
	return boot != ""
}

// runReader makes runs of one site's records.
type runReader struct {
	site  string
	boot  bool                         // by the boot clock instead of the wall clock
	lives []life                       // of the site's agent, ascending
	ends  map[grid.AttemptID]time.Time // as that heard of them
	runs  map[grid.AttemptID]*openRun
}

// life is the time between a start of an agent and its end, by the wall clock.
type life struct {
	from, to time.Time
}

// livesUntil are lives that follow each other without a gap.
func livesUntil(ends []time.Time) []life {
	var lives []life
	var from time.Time
	for _, end := range slices.SortedFunc(slices.Values(ends), time.Time.Compare) {
		lives = append(lives, life{from, end})
		from = end
	}
	return lives
}

type openRun struct {
	Run
	last    runRecord
	running bool
}

func (rr runReader) at(r runRecord) time.Duration {
	if rr.boot {
		return time.Duration(r.BootNS)
	}
	return time.Duration(r.WallMS) * time.Millisecond
}

func (rr runReader) read(records []runRecord) []Run {
	for _, r := range records {
		rr.take(r)
	}
	var runs []Run
	for _, r := range rr.runs {
		if r.running {
			rr.close(r, rr.end(r.last))
		}
		runs = append(runs, r.Run)
	}
	slices.SortFunc(runs, func(a, b Run) int { return a.Attempt.Compare(b.Attempt) })
	return runs
}

func (rr runReader) take(r runRecord) {
	run := rr.runs[r.Attempt]
	if run == nil {
		if r.Event == eventEnded {
			return // it was given up before it ran
		}
		run = &openRun{Run: Run{
			Attempt: r.Attempt, Site: rr.site, Began: time.UnixMilli(r.WallMS),
		}}
		rr.runs[r.Attempt] = run
	}
	switch r.Event {
	case eventStarted, eventResumed:
		if run.running && r.Event == eventStarted { // started again after a crash
			rr.close(run, rr.end(run.last))
		}
		if !run.running {
			run.running, run.Unended = true, true
			run.Spans = append(run.Spans, Span{From: rr.at(r)})
		}
	case eventFrozen, eventEnded:
		if run.running {
			rr.close(run, rr.at(r))
		}
		run.Unended = r.Event == eventFrozen
	default:
		return
	}
	run.last, run.Ended = r, time.UnixMilli(r.WallMS)
}

func (rr runReader) close(run *openRun, to time.Duration) {
	last := &run.Spans[len(run.Spans)-1]
	last.To = max(last.From, to)
	run.running = false
}

// end is when an attempt without an end ended, of which r is the last record: when its agent heard
// so from the supervisor, which could not write it down, as on a full disk; or else with the life
// of its agent, as far as that is known; or it is only sure to have run until then. A millisecond
// is taken off, because the wall clock of a record is not more exact.
func (rr runReader) end(r runRecord) time.Duration {
	wall := time.UnixMilli(r.WallMS)
	var after time.Duration
	for _, l := range rr.lives { // the last one that had begun counts
		if !l.from.After(wall) {
			after = l.to.Sub(wall) - time.Millisecond
		}
	}
	if ended, told := rr.ends[r.Attempt]; told {
		after = min(after, ended.Sub(wall)-time.Millisecond)
	}
	return rr.at(r) + max(0, after)
}
