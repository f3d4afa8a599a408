package eval

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func zip(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const micro = "testdata/micro.swf"

func TestMicro(t *testing.T) {
	packed := write(t, "packed.log", zip(t, readFile(t, micro)))
	for policy, want := range map[string]string{
		"fcfs":         "1,0,0 2,1,100 3,2,100 4,3,150 5,4,190 6,5,200 7,6,230",
		"easy":         "1,0,0 2,1,100 3,2,2 4,3,52 5,4,92 6,5,200 7,6,92",
		"conservative": "1,0,0 2,1,100 3,2,2 4,3,52 5,4,92 6,5,200 7,6,230",
	} {
		for _, log := range []string{micro, packed} {
			starts := filepath.Join(t.TempDir(), "starts.csv")
			// processors: from the header
			s := SWF{Log: log, Policy: policy, Semantics: "batch", Starts: starts}
			result, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Join(strings.Fields("job_id,submit,start "+want), "\n") + "\n"
			if diff := cmp.Diff(lines, readFile(t, starts)); diff != "" {
				t.Errorf("%s: starts (-want +got):\n%s", policy, diff)
			}
			if result.Jobs != 7 || result.MakespanS != 235 && result.MakespanS != 230 ||
				result.JobsPerS <= 0 {
				t.Errorf("%s: result = %+v", policy, result)
			}
		}
	}
}

func TestRunRefuses(t *testing.T) {
	noHeader := write(t, "log.swf", []byte("1 0 -1 100 6 -1 -1 6 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"))
	for name, c := range map[string]struct {
		change func(*SWF)
		want   string
	}{
		"no log": {func(s *SWF) { s.Log = "" }, "--log: name a file"},
		"policy": {func(s *SWF) {
			s.Policy = "sjf"
		}, `policy "sjf": want one of fcfs, easy, conservative`},
		"semantics":      {func(s *SWF) { s.Semantics = "" }, "want one of batch, event"},
		"procs":          {func(s *SWF) { s.Procs = -1 }, "--procs: want at least 1"},
		"unknown procs":  {func(s *SWF) { s.Log = noHeader }, "has no MaxProcs"},
		"too many procs": {func(s *SWF) { s.Procs = math.MaxInt64 }, "invalid machine"},
		"absent":         {func(s *SWF) { s.Log = "testdata/absent.swf" }, "testdata/absent.swf"},
		"a folder":       {func(s *SWF) { s.Log = "testdata" }, "testdata"},
		"starts": {func(s *SWF) {
			s.Starts = "testdata/absent/starts.csv"
		}, "testdata/absent/starts.csv"},
	} {
		s := SWF{Log: micro, Policy: "easy", Semantics: "batch"}
		c.change(&s)
		_, err := s.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %q in it", name, err, c.want)
		}
	}
}

func TestReadLogNamesFileAndLine(t *testing.T) {
	good := readFile(t, micro)
	packed := zip(t, good)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"word": {[]byte(good + "x\n"), "line 10: not the Standard Workload Format: field 1 (job number)"},
		"packed": {zip(t, good+"8 0\n"), "line 10: not the Standard Workload Format: want 18 " +
			"fields separated by spaces, have 2"},
		"cut off":    {packed[:len(packed)-9], "after line "},
		"not packed": {[]byte("\x1f\x8bxxxxxxxxxxxx"), "unpack: "},
		"damaged":    {append(bytes.Clone(packed[:40]), packed[41:]...), "line "},
		"long": {[]byte(good +
			strings.Repeat("1 ", maxLine)), "line 10: longer than 1048576 bytes"},
		"empty":   {nil, "no jobs in 0 lines"},
		"no jobs": {[]byte("; MaxProcs: 4\n\n"), "no jobs in 2 lines"},
	} {
		path := write(t, name+".swf", c.content)
		_, err := readLog(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want the file and %q in it", name, err, c.want)
		}
	}
}

func TestRunStopsAndTells(t *testing.T) {
	var log strings.Builder
	const jobs = 20_000
	for i := range jobs {
		fmt.Fprintf(&log, "%d %d -1 1 1 -1 -1 1 1 -1 1 1 -1 -1 -1 -1 -1 -1\n", i, i)
	}
	told := 0
	ctx, stop := context.WithCancel(t.Context())
	s := SWF{
		Log: write(t, "long.swf", []byte(log.String())), Procs: 1, Policy: "fcfs", Semantics: "batch",
		Progress: func(started, all int) {
			if told++; all != jobs || started == 0 {
				t.Errorf("progress: %d of %d", started, all)
			}
			stop()
		},
	}
	_, err := s.Run(ctx)
	if !errors.Is(err, context.Canceled) || told != 1 ||
		!strings.Contains(err.Error(), "of 20000 jobs") {
		t.Errorf("error = %v after %d reports", err, told)
	}
}
