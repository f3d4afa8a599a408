package workload

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(text string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.SplitSeq([]byte(text), []byte("\n")) {
			if !yield(line) {
				return
			}
		}
	}
}

func TestReadSWF(t *testing.T) {
	log, err := ReadSWF(lines("; Version: 2.2\r\n;MaxProcs:  64\r\n\n" +
		"  7 10\t-1 30 4 29.75 6 8 90 10 1 12 13 14 15 16 17 18\r\n; late\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Log{
		Header: []string{"Version: 2.2", "MaxProcs:  64", "late"},
		Records: []Record{{
			ID: 7, Submit: 10, Wait: -1, Run: 30, UsedProcs: 4, UsedCPU: 29, UsedKB: 6, RequestedProcs: 8,
			RequestedTime: 90, RequestedKB: 10, Status: 1, User: 12, Group: 13, Application: 14, Queue: 15,
			Partition: 16,
			Preceding: 17, Think: 18,
		}},
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if procs, ok := log.MaxProcs(); procs != 64 || !ok {
		t.Errorf("MaxProcs = %d, %v, want 64", procs, ok)
	}
}

// Space around a line says nothing: neither before a comment nor on a line of its own.
func TestSpaceAroundLines(t *testing.T) {
	log, err := ReadSWF(lines(" \t ; MaxProcs: 5 \r\n   \r\n\t\n \t1 0 -1 100 6 -1 -1 6 100 -1 1 1 " +
		"-1 -1 -1 -1 -1 -1 \t\r"))
	if procs, ok := log.MaxProcs(); err != nil || !ok || procs != 5 || len(log.Records) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
}

func TestReadSWFRefuses(t *testing.T) {
	const good = "1 0 -1 100 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1"
	for name, c := range map[string]struct{ text, want string }{
		"a word": {
			good + "\n2 0 -1 abc 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1",
			"line 2: not the Standard Workload Format: field 4 (run time): " +
				`want a number below 2^40, have "abc"`,
		},
		"cut off": {
			"; x\n\n1 0 -1 100",
			"line 3: not the Standard Workload Format: want 18 fields separated by spaces, have 4",
		},
		"too large": {
			"1 9999999999999 -1 100 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1",
			"line 1: not the Standard Workload Format: field 2 (submit time)",
		},
		"a sign":   {strings.Replace(good, "-1", "-", 1), "field 3 (wait time)"},
		"a point":  {strings.Replace(good, "-1", ".", 1), "field 3 (wait time)"},
		"two dots": {strings.Replace(good, "-1", "1.2.3", 1), "field 3 (wait time)"},
		"binary":   {"\x00\x01\xff", "line 1: not the Standard Workload Format: field 1 (job number)"},
	} {
		_, err := ReadSWF(lines(c.text))
		var line *lineError
		if !errors.Is(err, errSWF) || !errors.As(err, &line) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %s", name, err, c.want)
		}
	}
}

func TestMaxProcs(t *testing.T) {
	for _, header := range []string{
		"", "MaxProcs", "MaxProcs: many", "MaxProcs: 0", "Note: MaxProcs: 5",
	} {
		if procs, ok := (Log{Header: []string{header}}).MaxProcs(); ok {
			t.Errorf("MaxProcs of %q = %d, want none", header, procs)
		}
	}
}

func TestJob(t *testing.T) {
	for name, c := range map[string]struct {
		record Record
		want   Job
	}{
		"as asked for": {Record{Run: 50, UsedProcs: 3, RequestedProcs: 4, RequestedTime: 60}, Job{
			Run: 50, Estimate: 60, Procs: 4,
		}},
		"as used": {Record{Run: 50, UsedProcs: 3, RequestedProcs: -1, RequestedTime: 60}, Job{
			Run: 50, Estimate: 60, Procs: 3,
		}},
		"wider than there is": {
			Record{Run: 50, RequestedProcs: 11, RequestedTime: 60}, Job{Run: 50, Estimate: 60, Procs: 10},
		},
		"longer than asked": {
			Record{Run: 70, RequestedProcs: 1, RequestedTime: 60}, Job{Run: 60, Estimate: 70, Procs: 1},
		},
		"without estimate": {
			Record{Run: 70, RequestedProcs: 1, RequestedTime: -1}, Job{Run: 70, Estimate: 70, Procs: 1},
		},
		"of no time": {
			Record{Run: 0, RequestedProcs: 8, RequestedTime: 60}, Job{Run: 1, Estimate: 1, Procs: 8},
		},
		"cut after a second": {
			Record{Run: 5, RequestedProcs: 8, RequestedTime: 1}, Job{Run: 1, Estimate: 5, Procs: 8},
		},
		"asked for no time": {
			Record{Run: 5, RequestedProcs: 8, RequestedTime: 0}, Job{Run: 5, Estimate: 5, Procs: 8},
		},
		"of a second": {
			Record{Run: 1, UsedProcs: 1, RequestedTime: 9}, Job{Run: 1, Estimate: 9, Procs: 1},
		},
		"never ran": {
			Record{Run: -1, RequestedProcs: 8, RequestedTime: 60}, Job{Run: 1, Estimate: 1, Procs: 8},
		},
		"of no size": {Record{Run: 70, UsedProcs: -1, RequestedProcs: 0, RequestedTime: 60}, Job{
			Run: 1, Estimate: 1, Procs: 1,
		}},
		"of no size, no width": {Record{}, Job{Run: 1, Estimate: 1, Procs: 1}},
	} {
		if got := c.record.Job(10); got != c.want {
			t.Errorf("%s: job = %+v, want %+v", name, got, c.want)
		}
	}
}

func TestJobsAreInTheOrderOfSubmission(t *testing.T) {
	log := Log{
		Records: []Record{{ID: 1, Submit: 5}, {ID: 2, Submit: 3}, {ID: 3, Submit: 5}, {ID: 4, Submit: 3}},
	}
	var got []int64
	for _, j := range log.Jobs(1) {
		got = append(got, j.ID)
	}
	if want := []int64{2, 4, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("order = %v, want %v", got, want)
	}
}

// FuzzReadSWF: whatever the bytes, there is a log whose jobs make sense, or an error
// that names a line.
func FuzzReadSWF(f *testing.F) {
	f.Add("; MaxProcs: 10\n1 0 -1 100 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1\n")
	f.Add("1 -5 -1 1.5 6 -1 -1 -0 1e9\n")
	f.Add(";; a\r;b\n;\u00a0\n; MaxNodes: 4 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		log, err := ReadSWF(lines(text))
		var line *lineError
		if err != nil && (!errors.As(err, &line) || line.Line < 1 ||
			line.Line > strings.Count(text, "\n")+1) {
			t.Fatalf("error %v names no line", err)
		}
		again, err := ReadSWF(log.Lines())
		if diff := cmp.Diff(log, again); err != nil || diff != "" {
			t.Fatalf("%v, what was read is not read again (-want +got):\n%s", err, diff)
		}
		jobs := log.Jobs(10)
		for i, j := range jobs {
			if j.Procs < 1 || j.Procs > 10 || j.Run < 1 || j.Estimate < j.Run ||
				i > 0 && j.Submit < jobs[i-1].Submit {
				t.Fatalf("job %+v", j)
			}
		}
	})
}

// Numbers are whole ones below 2^40 or the whole part of a fraction; what is none has no value.
func TestNumbersOfTheFormat(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "9": 9, "-9": -9, "1.9": 1, "-1.9": -1, ".0": 0, ".9": 0, "5.": 5,
		"1099511627775": limit - 1, "-1099511627775": 1 - limit,
	} {
		if got, ok := parseNumber([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", ".", "-", "-.", "+1", "1e3", "1/", "1:", "/1", ":1", "1.x", "1./", "1.:", "--1",
		"1099511627776", "-1099511627776", "99999999999999999999999",
	} {
		if got, ok := parseNumber([]byte(text)); ok || got != 0 {
			t.Errorf("%q: %d, %t", text, got, ok)
		}
	}
}

// The header's number of processors is a positive one of 32 bits, whatever the case of its name
// and the lines before it.
func TestProcessorsOfTheHeader(t *testing.T) {
	for line, want := range map[string]int{
		"MaxProcs: 1": 1, "maxprocs:2147483647": 1<<31 - 1, " MaxProcs : 7 ": 7,
		"MaxProcs: 2147483648": 0, "MaxProcs: -1": 0, "MaxProcs: 0": 0, "MaxProcs: 0x7": 0,
	} {
		got, ok := Log{Header: []string{"Version: 2", "MaxProcs", line}}.MaxProcs()
		if got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %t, want %d", line, got, ok, want)
		}
	}
}

// A long word is named by its first 40 letters.
func TestMessagesStayReadable(t *testing.T) {
	for n, want := range map[int]int{39: 39, 40: 40, 41: 40, 400: 40} {
		if got := len(clip(bytes.Repeat([]byte("x"), n))); got != want {
			t.Errorf("of %d letters: %d, want %d", n, got, want)
		}
	}
}
