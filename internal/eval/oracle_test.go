package eval

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// traces is the folder of the logs, which are not ours to give away: the variable
// MRS_TRACES names it, or it stands beside the repository. docs/evaluation.md says
// where to get them.
func traces(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("MRS_TRACES")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "traces")
	}
	if _, err := os.Stat(filepath.Join(folder, "oracles")); err != nil {
		t.Skipf("no logs of real machines to compare with in %s: set MRS_TRACES to their folder "+
			"(docs/evaluation.md)", folder)
	}
	return folder
}

// TestOracles compares every start with those of an independent simulator.
func TestOracles(t *testing.T) {
	folder := traces(t)
	for _, log := range []struct {
		name  string
		procs int
		wait  [3]float64 // seconds on average, by policy; those of the oracles
	}{
		{"KTH-SP2-1996-2-filtered", 100, [3]float64{353776.409, 6834.587, 7316.239}},
		{"CTC-SP2-1996-recon", 338, [3]float64{655557.119, 13943.007, 17642.028}},
		{"NASA-iPSC-1993-3.1-cln", 128, [3]float64{8.005, 4.028, 4.028}},
		{"HPC2N-2002-first3170", 240, [3]float64{5567.263, 3455.697, 3425.238}},
	} {
		for i, oracle := range []string{"fcfs", "easy", "cons"} {
			for _, semantics := range AllSemantics() {
				name := log.name + "." + oracle + "." + semantics
				path := filepath.Join(folder, "oracles", name+".csv.gz")
				if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
					continue // of some logs there is only the one of both semantics
				}
				t.Run(name, func(t *testing.T) {
					starts := filepath.Join(t.TempDir(), "starts.csv")
					result, err := SWF{
						Log: filepath.Join(folder, "workloads", log.name+".swf.gz"), Procs: log.procs,
						Policy: Policies()[i], Semantics: semantics, Starts: starts,
					}.Run(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%d jobs, %.0f jobs/s, mean wait %.3f s", result.Jobs, result.JobsPerS, result.AvgWaitS)
					if semantics == "batch" && math.Abs(result.AvgWaitS-log.wait[i]) > .0005 {
						t.Errorf("mean wait = %.3f s, want %.3f", result.AvgWaitS, log.wait[i])
					}
					compareStarts(t, starts, path)
				})
			}
		}
	}
}

func compareStarts(t *testing.T, got, want string) {
	t.Helper()
	file, err := os.Open(want)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.Open(got)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	a, b := bufio.NewScanner(ours), bufio.NewScanner(plain)
	lines, wrong := 0, 0
	for b.Scan() {
		lines++
		if !a.Scan() || a.Text() != b.Text() {
			if wrong++; wrong <= 3 {
				t.Errorf("line %d: %q, want %q", lines, a.Text(), b.Text())
			}
		}
	}
	if err := b.Err(); err != nil || a.Scan() || wrong > 0 || lines < 2 {
		t.Errorf("%d of %d lines differ, and both end together: %v; %v", wrong, lines, !a.Scan(), err)
	}
}
