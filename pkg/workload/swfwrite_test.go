package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func written(l Log) string {
	var text strings.Builder
	for line := range l.Lines() {
		text.Write(line)
		text.WriteByte('\n')
	}
	return text.String()
}

func TestLogsAreWritten(t *testing.T) {
	log := Log{
		Header: []string{"Version: 2.2", "", "two\nlines"},
		Records: []Record{
			{
				ID: 1, Submit: 2, Wait: 3, Run: 4, UsedProcs: 5, UsedCPU: 6, UsedKB: 7, RequestedProcs: 8,
				RequestedTime: 9, RequestedKB: 10, Status: 11, User: 12, Group: 13, Application: 14,
				Queue: 15, Partition: 16, Preceding: 17, Think: 18,
			}, {ID: -1},
		},
	}
	want := "; Version: 2.2\n;\n; two lines\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n" +
		"-1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	if diff := cmp.Diff(want, written(log)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for stop := 1; stop <= 4; stop++ {
		n := 0
		for range log.Lines() {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d lines, want %d", n, stop)
		}
	}
}

func genRecord() *rapid.Generator[Record] {
	return rapid.Custom(func(t *rapid.T) Record {
		number := func() int64 { return rapid.Int64Range(1-limit, limit-1).Draw(t, "field") }
		seconds := func() Seconds { return Seconds(number()) }
		return Record{
			ID: number(), Submit: seconds(), Wait: seconds(), Run: seconds(), UsedProcs: number(),
			UsedCPU: seconds(), UsedKB: number(), RequestedProcs: number(), RequestedTime: seconds(),
			RequestedKB: number(), Status: number(), User: number(), Group: number(),
			Application: number(), Queue: number(), Partition: number(), Preceding: number(),
			Think: seconds(),
		}
	})
}

// What is written reads back the same.
func TestWrittenLogsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := Log{
			Header:  rapid.SliceOf(rapid.Map(rapid.StringN(0, 20, -1), cleanComment)).Draw(t, "header"),
			Records: rapid.SliceOf(genRecord()).Draw(t, "records"),
		}
		got, err := ReadSWF(log.Lines())
		if diff := cmp.Diff(log, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v, read back (-want +got):\n%s", err, diff)
		}
	})
}

// cleanComment gives a comment as a reader does.
func cleanComment(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
}

func genDirectives() *rapid.Generator[Directives] {
	return rapid.Custom(func(t *rapid.T) Directives {
		text := func() string {
			return cleanComment(rapid.StringMatching(`[ -~]{0,12}`).Draw(t, "text"))
		}
		number := func() int64 { return rapid.Int64Range(0, limit-1).Draw(t, "number") }
		return Directives{
			Version: text(), Computer: text(), Installation: text(), Acknowledge: text(),
			Conversion: text(), MaxJobs: number(), MaxRecords: number(), UnixStartTime: number(),
			TimeZone: text(), MaxNodes: number(), MaxProcs: number(), MaxRuntime: number(), Note: text(),
		}
	})
}

// Directives that are written into a header are read from it again.
func TestDirectivesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genDirectives().Draw(t, "directives")
		got := Log{Header: want.Header()}.Directives()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("read back (-want +got):\n%s", diff)
		}
	})
}

func TestDirectives(t *testing.T) {
	got := Log{Header: []string{
		"no directive", "Computer:", "computer :  a : b ", "Computer: later", " MAXJOBS: 12 (of 30)",
		"MaxJobs: 13", "MaxNodes: 0", "MaxNodes: -5", "MaxNodes: x", "MaxNodes: 7",
		"MaxProcs: 1099511627776",
		"UnixStartTime: 1099511627775", "MaxRuntime: 1", "Notes: no", "TimeZoneString: UTC",
	}}.Directives()
	want := Directives{
		Computer: "a : b", MaxJobs: 12, MaxNodes: 7, UnixStartTime: limit - 1, MaxRuntime: 1,
		TimeZone: "UTC",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directives (-want +got):\n%s", diff)
	}
	header := []string{
		"Computer: a : b", "MaxJobs: 12", "UnixStartTime: 1099511627775", "TimeZoneString: UTC",
		"MaxNodes: 7", "MaxRuntime: 1",
	}
	if diff := cmp.Diff(header, want.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
}

// As many processors as nodes, unless the header has their number.
func TestNodesCountAsProcessors(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"MaxNodes: 256 (of 4 kinds)"}, 256},
		{[]string{"MaxNodes: 256", "MaxProcs: 512"}, 512},
		{[]string{"MaxProcs: 512", "MaxNodes: 256"}, 512},
		{[]string{"MaxNodes: 2147483647"}, 1<<31 - 1},
		{[]string{"MaxNodes: 2147483648"}, 0},
	} {
		got, ok := Log{Header: c.header}.MaxProcs()
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%q: %d, %t, want %d", c.header, got, ok, c.want)
		}
	}
}
