package agent

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/store"
)

var asBefore = flag.Bool("as-before", false,
	"want the machines to decide as those of the build that wrote the journals in testdata")

// earlier unpacks what an earlier build wrote and returns its directory. The README
// beside it says what happened.
func earlier(t *testing.T) string {
	t.Helper()
	file, err := os.Open("../../testdata/journals/two-agents.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for archive := tar.NewReader(packed); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag != tar.TypeReg || !filepath.IsLocal(entry.Name) {
			continue
		}
		content, err := io.ReadAll(archive)
		path := filepath.Join(dir, entry.Name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What an earlier build wrote is audited by this one, and the counts are those that
// the earlier build's own audit gave.
func TestJournalsOfAnEarlierBuildAreAudited(t *testing.T) {
	dir := earlier(t)
	var sources []audit.Source
	for _, site := range []string{"a", "b"} {
		state := filepath.Join(dir, site)
		record := filepath.Join(state, RecordFile)
		sources = append(sources, audit.Source{Site: site, StateDir: state, RunRecord: record})
	}
	records, err := audit.Collect(sources)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := audit.Audit(records).Write(&said); err != nil {
		t.Fatal(err)
	}
	const want = `
JOB               TASKS  DONE  FAILED  CANCELLED  REFUSED  OPEN  LOST  DOUBLED  ATTEMPTS  MOVED
2ctcdeu56pfojfdm  1      0     0       1          0        0     0     0        1         0
5ttzatw4vyb5wdwo  2      2     0       0          0        0     0     0        2         0
olbl2dlkhzr76des  3      3     0       0          0        0     0     0        5         2
smysoqotdobysqdg  6      6     0       0          0        0     0     0        8         2
yyxna6auwxh4u6pf  1      0     0       0          1        0     0     0        0         0
total             13     11    0       1          1        0     0     0        16        4
0 lost, 0 doubled
`
	if said.String() != want[1:] {
		t.Errorf("it says\n%s\nwant%s", said.String(), want)
	}
}

// An agent that is brought up to date starts from the facts of the earlier build, and
// its journals can be read to their ends. What it decides may differ: so siteagent replay
// leaves out the journals of other builds. With -as-before it must not, which shows
// that a change of the machines changed nothing that they do.
func TestMachinesOfThisBuildTakeUpTheFactsOfAnEarlierOne(t *testing.T) {
	dir := earlier(t)
	machines, inputs := 0, 0
	for _, site := range []string{"a", "b"} {
		runs, err := store.Runs(filepath.Join(dir, site))
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if !strings.Contains(run.Build, "42d867428ce2") {
				t.Errorf("%s machine of %s: its build is %q", run.Machine, site, run.Build)
			}
			machine, err := NewMachine(run.Header)
			if err == nil {
				err = machine.Restore(run.Facts)
			}
			if err == nil {
				err = machine.Check()
			}
			if err != nil {
				t.Errorf("%s machine of %s, start %d: %v", run.Machine, site, run.Incarnation, err)
			}
			machines++
			inputs += readToTheEnd(t, run)
			decidesAsBefore(t, site, run)
		}
	}
	if machines != 8 || inputs != 443 {
		t.Errorf("%d machines with %d inputs, want 8 with 443", machines, inputs)
	}
}

// readToTheEnd counts the inputs of a journal.
func readToTheEnd(t *testing.T, run store.Run) (inputs int) {
	t.Helper()
	for entry, err := range run.Entries() {
		if err != nil {
			t.Errorf("%s machine, start %d: %v", run.Machine, run.Incarnation, err)
			return inputs
		}
		if entry.Input != nil {
			inputs++
		}
	}
	return inputs
}

// decidesAsBefore tells a machine what the earlier one was told, and says whether it
// wants the same done.
func decidesAsBefore(t *testing.T, site string, run store.Run) {
	t.Helper()
	name := fmt.Sprintf("%s machine of %s, start %d", run.Machine, site, run.Incarnation)
	result, err := store.Replay(run, NewMachine, nil)
	switch {
	case err != nil:
		t.Errorf("%s: %d inputs, then %v", name, result.Records, err)
	case result.Divergence == nil:
		t.Logf("%s: %d inputs, the same effects", name, result.Records)
	case *asBefore:
		t.Errorf("%s: %s: %+v", name, result.Divergence, result.Divergence.Effects)
	default:
		t.Logf("%s: %s", name, result.Divergence)
	}
}
