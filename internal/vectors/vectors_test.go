package vectors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

const (
	directoryVariable = "MRS_VECTORS"
	ownDirectory      = "../../testdata/vectors"
	extension         = ".json"
	fewestCases       = 20 // of a family of the project's own; a file with fewer was cut
)

// outputs are the results of one case by name.
type outputs map[string]any

// family works out one case from its input, as JSON.
type family func(input []byte) (outputs, error)

// on is a family whose input has the form In.
func on[In any](work func(In) (outputs, error)) family {
	return func(input []byte) (outputs, error) {
		var in In
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("decode input: %w", err)
		}
		return work(in)
	}
}

// families returns the known families, by the name of their file without extension.
func families() map[string]family {
	return map[string]family{
		"provision_ratio":     on(provisionRatio),
		"potential":           on(potential),
		"computation_index":   on(computationIndex),
		"effective_bandwidth": on(effectiveBandwidth),
		"data_index":          on(dataIndex),
		"data_index_multi":    on(dataIndexMulti),
		"distance":            on(distance),
		"rank":                on(rank),
		"sed":                 on(sed),

		"failure_sum":    on(failureSum),
		"node_up":        on(nodeUp),
		"node_recover":   on(nodeRecover),
		"cond_survival":  on(condSurvival),
		"joint_survival": on(jointSurvival),
		"gamma_rate":     on(gammaRate),

		"set_up":            on(setUp),
		"set_recover":       on(setRecover),
		"capacity_forecast": on(capacityForecast),
		"ctmc_up":           on(ctmcUp),
		"error_adjust":      on(errorAdjust),
		"gae":               on(gae),
		"saa":               on(saa),
		"naa_nsa":           on(naaNSA),

		"fibr": on(faultIndex),

		"lfca":                 on(lfca),
		"mfca_step":            on(mfcaStep),
		"mfca_run":             on(mfcaRun),
		"young_daly":           on(youngDaly),
		"ccs_checkpoint_count": on(checkpointCount),

		"ccs_latest_start":    on(latestStart),
		"ccs_order":           on(order),
		"ccs_failure_horizon": on(failureHorizon),
		"ccs_stagein_delay":   on(stageInDelay),

		"vrm_interval":  on(vrmInterval),
		"vrm_reference": on(vrmReference),
		"vrm_remap":     on(vrmRemap),

		"metrics":     on(summary),
		"replication": on(replication),
		"prediction":  on(prediction),
		"ttl_bound":   on(ttlBound),
	}
}

// vectorCase is one input with what must come out of it: outputs or the name of
// an error.
type vectorCase struct {
	ID    string
	In    json.RawMessage
	Out   map[string]json.RawMessage
	Error string
}

// vectorFile is one family's file.
type vectorFile struct {
	Family string
	Cases  []vectorCase
}

// TestVectors runs every case of every file.
func TestVectors(t *testing.T) {
	dir, own := directory(t)
	names, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no vectors (%v)", dir, err)
	}
	known := families()
	var cases, failed int
	for _, name := range names {
		f := readFile(t, name)
		work, ok := known[f.Family]
		if !ok {
			t.Errorf("%s: family %q is not known here", name, f.Family)
			failed += len(f.Cases)
		}
		delete(known, f.Family)
		if own && len(f.Cases) < fewestCases {
			t.Errorf("%s has only %d cases", name, len(f.Cases))
		}
		for _, c := range f.Cases {
			cases++
			if ok && !t.Run(f.Family+"/"+c.ID, func(t *testing.T) { c.run(t, work) }) {
				failed++
			}
		}
	}
	for name := range known {
		if own {
			t.Errorf("%s has no file of family %s", dir, name)
		}
	}
	if testing.Verbose() {
		fmt.Printf("vectors: %d cases, %d families, %d failed\n", cases, len(names), failed)
	}
}

// directory returns the directory of the vectors, and whether they are the project's own.
func directory(t *testing.T) (dir string, own bool) {
	t.Helper()
	dir = os.Getenv(directoryVariable)
	if dir == "" {
		return filepath.FromSlash(ownDirectory), true
	}
	if !filepath.IsAbs(dir) {
		t.Fatalf("%s = %q: name the directory by its absolute path", directoryVariable, dir)
	}
	return dir, false
}

func readFile(t *testing.T, name string) vectorFile {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	base := strings.TrimSuffix(filepath.Base(name), extension)
	if f.Family = cmp.Or(f.Family, base); f.Family != base {
		t.Fatalf("%s is of family %q", name, f.Family)
	}
	if len(f.Cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return f
}

// run works out the case and compares. Only the outputs that the case names count.
func (c vectorCase) run(t *testing.T, work family) {
	t.Helper()
	got, err := work(c.In)
	if name := errorName(err); name != c.Error {
		t.Fatalf("error = %q, want %q (input %s)", name, c.Error, c.In)
	}
	if len(c.Out) == 0 && c.Error == "" {
		t.Fatal("the case expects nothing")
	}
	for key, want := range c.Out {
		have, ok := got[key]
		if !ok {
			t.Errorf("%s: not worked out", key)
			continue
		}
		if err := compare(have, want); err != nil {
			t.Errorf("%s: %v (input %s)", key, err, c.In)
		}
	}
}

// errorName is the name that the vectors give to an error, empty for none, and
// the text of an error that they do not know.
func errorName(err error) string {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case err == nil:
		return ""
	case slices.ContainsFunc(invalidArguments(), is):
		return "invalid_argument"
	case slices.ContainsFunc(undefined(), is):
		return "undefined"
	default:
		return err.Error()
	}
}

// invalidArguments is the errors of all packages about an invalid argument.
func invalidArguments() []error {
	return []error{
		errInput, argument.ErrInvalid,
	}
}

// undefined is the errors of all packages about valid arguments without an answer.
func undefined() []error {
	return []error{argument.ErrUndefined}
}
