package workload

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// errSWF refuses a line that is not of the Standard Workload Format.
var errSWF = errors.New("not the Standard Workload Format")

// Record is a line of a log: the 18 fields of the Standard Workload Format, version
// 2.2, in their order. -1 is unknown.
type Record struct {
	ID             int64   // 1: number of the job
	Submit         Seconds // 2: since the start of the log
	Wait           Seconds // 3: from submission to start, on the machine of the log
	Run            Seconds // 4: from start to end
	UsedProcs      int64   // 5: processors it got
	UsedCPU        Seconds // 6: mean processor time of one processor
	UsedKB         int64   // 7: mean memory of one processor, KB
	RequestedProcs int64   // 8: processors it asked for
	RequestedTime  Seconds // 9: the user's estimate of its run time
	RequestedKB    int64   // 10: memory it asked for, for one processor, KB
	// 11: 1 completed, 0 failed, 5 cancelled, 2 to 4 parts of a job that was checkpointed
	Status      int64
	User        int64   // 12
	Group       int64   // 13
	Application int64   // 14
	Queue       int64   // 15
	Partition   int64   // 16
	Preceding   int64   // 17: number of the job that must end before it
	Think       Seconds // 18: from the end of that job to its submission
}

// Log is a log as it was read.
type Log struct {
	Header  []string // the comments, without their semicolons
	Records []Record // in the order of the lines
}

// lineError says which line of a log cannot be read, and why.
type lineError struct {
	Line  int // from 1
	Cause error
}

// Error names the line, the field and the remedy.
func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Cause) }

// Unwrap is the cause.
func (e *lineError) Unwrap() error { return e.Cause }

// ReadSWF reads a log. A line may be overwritten as soon as the next one is asked for.
// It stops at the first line that is wrong with a *lineError.
func ReadSWF(lines iter.Seq[[]byte]) (Log, error) {
	var log Log
	number := 0
	for line := range lines {
		number++
		line = bytes.TrimSpace(line)
		if comment, is := bytes.CutPrefix(line, []byte(";")); is {
			log.Header = append(log.Header, strings.TrimSpace(string(comment)))
			continue
		}
		if len(line) == 0 {
			continue
		}
		record, err := parseRecord(line)
		if err != nil {
			return Log{}, &lineError{number, err}
		}
		log.Records = append(log.Records, record)
	}
	return log, nil
}

// fields is the number of fields of a line. Some simulators append their own, which are
// not looked at.
const fields = 18

// parseRecord reads one line that is neither empty nor a comment. Fractions, which
// some logs have, are cut off.
func parseRecord(line []byte) (Record, error) {
	var v [fields]int64
	n := 0
	for n < fields {
		line = bytes.TrimLeft(line, " \t\r")
		if len(line) == 0 {
			break
		}
		end := bytes.IndexAny(line, " \t\r")
		if end < 0 {
			end = len(line)
		}
		value, ok := parseNumber(line[:end])
		if !ok {
			return Record{}, fmt.Errorf("%w: field %d (%s): want a number below 2^40, have %q",
				errSWF, n+1, fieldName(n), clip(line[:end]))
		}
		v[n], line = value, line[end:]
		n++
	}
	if n < fields {
		return Record{}, fmt.Errorf("%w: want %d fields separated by spaces, have %d", errSWF, fields, n)
	}
	return Record{
		ID: v[0], Submit: Seconds(v[1]), Wait: Seconds(v[2]),
		Run: Seconds(v[3]), UsedProcs: v[4], UsedCPU: Seconds(v[5]),
		UsedKB: v[6], RequestedProcs: v[7], RequestedTime: Seconds(v[8]),
		RequestedKB: v[9], Status: v[10], User: v[11],
		Group: v[12], Application: v[13], Queue: v[14], Partition: v[15], Preceding: v[16],
		Think: Seconds(v[17]),
	}, nil
}

// limit bounds every number: 35,000 years of seconds, so that eight million of them
// add up without overflow.
const limit = 1 << 40

// parseNumber reads an integer, or a decimal fraction without its fraction.
func parseNumber(text []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	if len(whole) == 0 && len(fraction) == 0 {
		return 0, false
	}
	value := int64(0)
	for _, c := range whole {
		if value = value*10 + int64(c-'0'); c < '0' || c > '9' || value >= limit {
			return 0, false
		}
	}
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	if negative {
		value = -value
	}
	return value, true
}

func fieldName(i int) string {
	return [fields]string{
		"job number", "submit time", "wait time", "run time", "processors used",
		"processor time used", "memory used",
		"processors requested", "time requested", "memory requested", "status", "user", "group",
		"application", "queue",
		"partition", "preceding job", "think time",
	}[i]
}

// clip keeps a message readable, whatever the line holds.
func clip(text []byte) []byte { return text[:min(len(text), 40)] }
