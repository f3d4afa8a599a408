package eval

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// A made-up log says what it is, has the jobs that were asked for, and can be rerun.
func TestJobLogsAreWritten(t *testing.T) {
	var text bytes.Buffer
	log := JobLog{Procs: 64, Jobs: 500, Seed: 3, Typed: true, Estimates: true, Longest: 20 * time.Hour}
	if err := log.Write(&text); err != nil {
		t.Fatal(err)
	}
	path := write(t, "log.swf", text.Bytes())
	read, err := readLog(path)
	if err != nil {
		t.Fatal(err)
	}
	d := read.Directives()
	if len(read.Records) != 500 || d.MaxJobs != 500 || d.MaxRecords != 500 || d.MaxProcs != 64 ||
		d.MaxNodes != 64 || d.Version != "2.2" || d.UnixStartTime != 1735516800 || d.TimeZone != "UTC" {
		t.Errorf("%d records, header %+v", len(read.Records), d)
	}
	if want := "gridsim workload lublin --procs 64 --jobs 500 --seed 3 --typed --estimates " +
		"--longest-estimate 20h0m0s"; !strings.HasSuffix(d.Conversion, want) {
		t.Errorf("made by %q, want %q", d.Conversion, want)
	}
	longest := workload.Seconds(0)
	for _, r := range read.Records {
		longest = max(longest, r.Run)
		if r.RequestedTime < r.Run || r.RequestedTime > 20*3600 || r.RequestedProcs > 64 {
			t.Fatalf("record %+v", r)
		}
	}
	if int64(longest) != d.MaxRuntime {
		t.Errorf("longest run %d, header says %d", longest, d.MaxRuntime)
	}
	result, err := SWF{Log: path, Policy: "easy", Semantics: "batch"}.Run(t.Context())
	if err != nil || result.Jobs != 500 {
		t.Errorf("rerun: %+v, %v", result, err)
	}
	var again, other bytes.Buffer
	if err := log.Write(&again); err != nil || again.String() != text.String() {
		t.Errorf("the same seed again: %v", err)
	}
	log.Seed++
	if err := log.Write(&other); err != nil || other.String() == text.String() {
		t.Errorf("another seed, the same jobs: %v", err)
	}
}

func TestJobLogRefuses(t *testing.T) {
	for want, log := range map[string]JobLog{
		"--procs: want 1 to 2147483647 processors, have 0": {Jobs: 1},
		"have 2147483648":                     {Jobs: 1, Procs: math.MaxInt32 + 1},
		"--jobs: want 1 to 10000000, have 0":  {Procs: 1},
		"have 10000001":                       {Procs: 1, Jobs: 10_000_001},
		"--longest-estimate: want an hour to": {Procs: 1, Jobs: 1, Estimates: true, Longest: time.Minute},
	} {
		var out bytes.Buffer
		err := log.Write(&out)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("error = %v, want %q; written: %q", err, want, out.String())
		}
	}
}

// A disk that is full is told of, whatever is written.
func TestWritersTellOfFailures(t *testing.T) {
	law := Law{Name: "exponential", Scale: time.Hour}
	full := fullDisk{}
	for name, err := range map[string]error{
		"log":    JobLog{Procs: 1, Jobs: 1}.Write(full),
		"events": Turns{Up: law, Down: law, Machines: 1, Days: 1}.Write(full),
		"hosts":  Hosts{Sites: 1, Median: 1, Sigma: 1}.Write(full),
		"links":  Links{Sites: 1, Median: 1, Sigma: 1, Local: 1}.Write(full),
		"many":   JobLog{Procs: 1, Jobs: 1000}.Write(full),
		"days":   Turns{Up: law, Down: law, Machines: 1, Days: 100}.Write(full),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
