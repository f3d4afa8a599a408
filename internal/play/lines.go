package play

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// entry is one thing that happened, before like ones are put together.
type entry struct {
	at     time.Duration
	from   string
	to     string // of a message
	what   string // the event or the kind of message
	job    grid.JobID
	tasks  []uint32
	token  grid.Token
	more   string // what else sets it apart
	lost   bool
	folded fold
	number int // of what was seen, in its order
}

// fold says which of the entries of one moment are told as one.
type fold uint8

const (
	foldTasks     fold = iota // those that differ in their tasks alone
	foldReceivers             // those that differ in the receiver alone: a broadcast
	foldSenders               // those that differ in the sender alone: the answers
)

// foldWithin limits how long after the first entry another one is still told with it.
const foldWithin = 100 * time.Millisecond

// Bounds of a section. What is left out is counted and part of the hash.
const (
	maxDecisions = 90
	maxMessages  = 110
	crowded      = 4 // of a submission with more jobs only the first ones are told
	toldOfCrowd  = 2
)

// told is a line of a section: one or more entries.
type told struct {
	entry
	last     time.Duration
	froms    map[string]bool
	tos      map[string]bool
	n, nLost int
}

func (e entry) key() string {
	from, to := e.from, e.to
	switch e.folded {
	case foldReceivers:
		to = "*"
	case foldSenders:
		from = "*"
	case foldTasks:
	}
	return fmt.Sprint(from, "|", to, "|", e.what, "|", e.job, "|", e.token, "|", e.more)
}

// put makes lines of entries.
func put(entries []entry) []*told {
	var lines []*told
	open := make(map[string]*told)
	for _, e := range entries {
		key := e.key()
		l := open[key]
		if l == nil || e.at-l.at > foldWithin {
			l = &told{entry: e, froms: make(map[string]bool), tos: make(map[string]bool)}
			l.tasks = nil
			open[key] = l
			lines = append(lines, l)
		}
		l.last = e.at
		l.n++
		l.froms[e.from], l.tos[e.to] = true, true
		l.tasks = append(l.tasks, e.tasks...)
		if e.lost {
			l.nLost++
		}
	}
	return lines
}

// section writes entries under a heading, in at most so many lines.
func (rec *Record) section(heading, noun string, entries []entry, most int) string {
	var b strings.Builder
	b.WriteString(heading + "\n")
	left := make(map[string]int)
	var shown []entry
	for _, e := range entries {
		if rec.inCrowd(e.job) {
			left[e.what]++
			continue
		}
		shown = append(shown, e)
	}
	lines := put(shown)
	if len(lines) > most {
		for _, l := range lines[most:] {
			left[l.what] += l.n
		}
		lines = lines[:most]
	}
	for _, l := range lines {
		b.WriteString(strings.TrimRight(rec.line(l), " ") + "\n")
	}
	if len(left) > 0 {
		b.WriteString(wrap("  not told: ", left))
	}
	fmt.Fprintf(&b, "  %d %s in all, hash %016x\n", len(entries), noun, digest(entries))
	return b.String()
}

// inCrowd reports whether a job is one of the many of a submission that are not told.
func (rec *Record) inCrowd(id grid.JobID) bool {
	sub, number, is := strings.Cut(rec.names[id], "#")
	if !is || rec.jobs[sub] <= crowded {
		return false
	}
	var n int
	_, err := fmt.Sscan(number, &n)
	return err == nil && n > toldOfCrowd
}

// line is one line of a section. A message's sites are joined by an arrow.
func (rec *Record) line(l *told) string {
	spread := ""
	if d := (l.last - l.at).Round(time.Millisecond); d > 0 {
		spread = fmt.Sprintf("+%.3f", d.Seconds())
	}
	who := rec.sitesOf(l.froms)
	if l.to != "" {
		who += " > " + rec.sitesOf(l.tos)
	}
	what := rec.name(l.job)
	if len(l.tasks) > 0 {
		what += " " + ranges(l.tasks)
	}
	if l.token > 0 {
		what += fmt.Sprintf(" #%d", l.token)
	}
	if l.more != "" {
		what += " " + l.more
	}
	switch {
	case l.nLost == l.n && l.n > 0:
		what += " (lost)"
	case l.nLost > 0:
		what += fmt.Sprintf(" (%d of %d lost)", l.nLost, l.n)
	}
	return fmt.Sprintf("  %9.3f %-7s %-14s %-17s %s", l.at.Seconds(), spread, who, l.what, what)
}

func (rec *Record) name(id grid.JobID) string {
	if name, known := rec.names[id]; known {
		return name
	}
	return string(id)
}

// attemptName names an attempt for people.
func (rec *Record) attemptName(id grid.AttemptID) string {
	return fmt.Sprintf("task %d of %s, token %d", id.Task.Index, rec.name(id.Task.Job), id.Token)
}

// sitesOf names a set of sites in short.
func (rec *Record) sitesOf(set map[string]bool) string {
	if len(set) == len(rec.sites) && len(set) > 1 {
		return "all"
	}
	numbers := make([]uint32, 0, len(set))
	for name := range set {
		var n uint32
		if _, err := fmt.Sscanf(name, "s%d", &n); err != nil || fmt.Sprintf("s%d", n) != name {
			return listed(set)
		}
		numbers = append(numbers, n)
	}
	return "s" + ranges(numbers)
}

// listed names sites that have names of their own.
func listed(set map[string]bool) string {
	const most = 3
	names := slices.Sorted(maps.Keys(set))
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s +%d", strings.Join(names[:most], ","), more)
	}
	return strings.Join(names, ",")
}

// ranges writes numbers as 0-5,7.
func ranges(numbers []uint32) string {
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	var parts []string
	for i := 0; i < len(numbers); {
		n := 1
		for i+n < len(numbers) && numbers[i+n] == numbers[i]+uint32(n) {
			n++
		}
		part := fmt.Sprint(numbers[i])
		if n > 1 {
			part += fmt.Sprintf("-%d", numbers[i+n-1])
		}
		parts = append(parts, part)
		i += n
	}
	return strings.Join(parts, ",")
}

// wrap lists counts in lines of bounded width.
func wrap(begin string, of map[string]int) string {
	var b strings.Builder
	line := begin
	for i, k := range slices.Sorted(maps.Keys(of)) {
		part := fmt.Sprintf("%s %d", k, of[k])
		switch {
		case i == 0:
		case len(line)+len(part) > 96:
			b.WriteString(line + ",\n")
			line = strings.Repeat(" ", len(begin))
		default:
			line += ", "
		}
		line += part
	}
	return b.String() + line + "\n"
}

// digest covers every entry with its exact time, also those that are not told.
func digest(entries []entry) uint64 {
	h := fnv.New64a()
	for _, e := range entries {
		at := binary.BigEndian.AppendUint64(nil, uint64(e.at))
		_, _ = h.Write(at) // a hash never fails
		fmt.Fprint(h, e.from, "|", e.to, "|", e.what, "|", e.job, "|", e.tasks, "|", e.token, "|",
			e.more, "|", e.lost)
	}
	return h.Sum64()
}
