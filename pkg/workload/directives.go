package workload

import (
	"math"
	"strconv"
	"strings"
)

// Directives are the lines of a log's header that say something of the whole log and its
// machine. An empty text, and 0, say nothing.
type Directives struct {
	Version       string // of the format
	Computer      string
	Installation  string
	Acknowledge   string
	Conversion    string
	MaxJobs       int64
	MaxRecords    int64
	UnixStartTime int64 // of second 0 of the log, since 1970
	TimeZone      string
	MaxNodes      int64
	MaxProcs      int64 // where they are not as many as nodes
	MaxRuntime    int64 // seconds
	Note          string
}

// directive is one of them with its name, as a text or as a number.
type directive struct {
	name   string
	text   *string
	number *int64
}

// listed are the directives in the order in which the format's definition has them.
func listed(d *Directives) []directive {
	return []directive{
		{name: "Version", text: &d.Version},
		{name: "Computer", text: &d.Computer},
		{name: "Installation", text: &d.Installation},
		{name: "Acknowledge", text: &d.Acknowledge},
		{name: "Conversion", text: &d.Conversion},
		{name: "MaxJobs", number: &d.MaxJobs},
		{name: "MaxRecords", number: &d.MaxRecords},
		{name: "UnixStartTime", number: &d.UnixStartTime},
		{name: "TimeZoneString", text: &d.TimeZone},
		{name: "MaxNodes", number: &d.MaxNodes},
		{name: "MaxProcs", number: &d.MaxProcs},
		{name: "MaxRuntime", number: &d.MaxRuntime},
		{name: "Note", text: &d.Note},
	}
}

// Directives returns what the header says. Of a name that comes more than once the first
// line that makes sense counts; after a number there may be words.
func (l Log) Directives() Directives {
	var d Directives
	all := listed(&d)
	for _, line := range l.Header {
		name, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		for _, one := range all {
			if strings.EqualFold(strings.TrimSpace(name), one.name) {
				one.take(strings.TrimSpace(value))
			}
		}
	}
	return d
}

// take takes the value over, unless there is one already or it makes no sense.
func (d directive) take(value string) {
	if d.text != nil {
		if *d.text == "" {
			*d.text = value
		}
		return
	}
	first, _, _ := strings.Cut(value, " ")
	number, err := strconv.ParseInt(first, 10, 64)
	if err == nil && *d.number == 0 && number > 0 && number < limit {
		*d.number = number
	}
}

// Header returns the comments that say so.
func (d Directives) Header() []string {
	var header []string
	for _, one := range listed(&d) {
		switch {
		case one.text != nil && *one.text != "":
			header = append(header, one.name+": "+*one.text)
		case one.number != nil && *one.number != 0:
			header = append(header, one.name+": "+strconv.FormatInt(*one.number, 10))
		}
	}
	return header
}

// MaxProcs returns the number of processors that the header gives, and false if it gives
// none. Where it has none of processors, there are as many as nodes, says the format's
// definition.
func (l Log) MaxProcs() (int, bool) {
	d := l.Directives()
	procs := d.MaxProcs
	if procs == 0 {
		procs = d.MaxNodes
	}
	if procs > math.MaxInt32 {
		return 0, false
	}
	return int(procs), procs > 0
}
