package jobfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What is read of each text, and what is said about it, stands below it in a file: all keys, their
// spellings, and what is left of a key that holds something else.
func TestReadings(t *testing.T) {
	t.Parallel()
	bare, err := jobfile.Parse([]byte("command: [x]"), options())
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "readings.txt")
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(string(raw), "\r\n", "\n")
	var got strings.Builder
	for line := range strings.Lines(want) {
		if !strings.HasPrefix(line, `"`) {
			continue
		}
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(line)
		file, wrong := jobfile.Parse([]byte(text), jobfile.Options{Now: now()})
		changes(&got, "", reflect.ValueOf(*bare), reflect.ValueOf(*file))
		if wrong != nil {
			fmt.Fprintln(&got, " !", strings.ReplaceAll(wrong.Error(), "\n", "\n  ! "))
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got.String()); diff != "" && !*update {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
}

// changes writes the exported fields of one struct that differ from those of another.
func changes(out *strings.Builder, prefix string, from, to reflect.Value) {
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() || reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			continue
		}
		if field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[time.Time]() {
			changes(out, prefix+field.Name+".", from.Field(i), to.Field(i))
			continue
		}
		fmt.Fprintf(out, "  %s%s: %+v\n", prefix, field.Name, to.Field(i).Interface())
	}
}

// A job file may be large, and no larger; where it gives no runtime, that of the caller holds.
func TestSizeAndUsualRuntime(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte{0xff}, 64<<20+1)
	for size, want := range map[int]string{
		len(large) - 1: "job.yaml: the job file is no UTF-8 text; " +
			"name a YAML or JSON file; a module goes after --wasm",
		len(large): "job.yaml: the job file is larger than 64 MiB; put data into inputs",
	} {
		if _, err := jobfile.Parse(large[:size], options()); err == nil || err.Error() != want {
			t.Errorf("a file of %d bytes: %v, want %s", size, err, want)
		}
	}
	for given, want := range map[time.Duration]string{
		-1: "10m", 0: "10m", 1: "1ns", time.Hour: "1h", 90 * time.Minute: "1h30m",
		61 * time.Second: "1m1s", 10 * time.Second: "10s", 600 * time.Hour: "600h",
	} {
		o := options()
		o.Runtime = given
		file, err := jobfile.Parse([]byte("command: [x]"), o)
		note := []string{"no runtime given: planning with " + want}
		if diff := cmp.Diff(note, file.Notes); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", given, err, diff)
		}
	}
}

// Tasks differ by index without items, and their own inputs with them; what is stored is put in
// by its place.
func TestInputsOfTasks(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"w": "\x00asm", "0": "a", "1": "bb", "d/x": "ccc", "d/y": "dddd", "all": "e",
	})
	need := func(in ...grid.Input) []grid.Input { return in }
	for text, want := range map[string]grid.Job{
		"count: 2\ninputs: [{path: /i, from: '{{index}}'}, {path: /all, from: all}]": {
			Spec: grid.Spec{Inputs: need(grid.Input{Path: "/all", CID: "b1", Bytes: 1})}, Count: 2,
			Items: []grid.Item{
				{Inputs: need(grid.Input{Path: "/i", CID: "b2", Bytes: 1})},
				{Inputs: need(grid.Input{Path: "/i", CID: "b3", Bytes: 2})},
			},
		},
		"count: 2": {Count: 2},
		"items: {list: [x, y]}\ninputs: [{path: /i, from: 'd/{{item}}'}]": {
			Count: 2, Items: []grid.Item{
				{Value: "x", Inputs: need(grid.Input{Path: "/i", CID: "b1", Bytes: 3})},
				{Value: "y", Inputs: need(grid.Input{Path: "/i", CID: "b2", Bytes: 4})},
			},
		},
		"items: [{value: x, inputs: [{path: /o, from: all}]}, y]": {
			Count: 2, Items: []grid.Item{
				{Value: "x", Inputs: need(grid.Input{Path: "/o", CID: "b1", Bytes: 1})}, {Value: "y"},
			},
		},
		"items: {glob: ./d/*}\ninputs: [{path: /d, from: d}, {path: /e, from: d}]": {
			Spec: grid.Spec{Inputs: need(
				grid.Input{Path: "/d", CID: "b1", Bytes: 7, Dir: true},
				grid.Input{Path: "/e", CID: "b1", Bytes: 7, Dir: true},
			)},
			Count: 2, Items: []grid.Item{{Value: "d/x"}, {Value: "d/y"}},
		},
	} {
		plan, err := jobfile.Load([]byte("wasm: w\n"+text), dir, options())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if plan.Tasks() != int(want.Count) {
			t.Errorf("%s: %d tasks, want %d", text, plan.Tasks(), want.Count)
		}
		job, err := plan.Job(fakeStore(plan.Sources))
		want.Spec.Module = grid.Input{CID: "b0", Bytes: 4}
		got := grid.Job{
			Spec:  grid.Spec{Module: job.Spec.Module, Inputs: job.Spec.Inputs},
			Count: job.Count, Items: job.Items,
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		short := fmt.Sprintf("build job: have 0 stored sources, want %d", len(plan.Sources))
		if job, err := plan.Job(nil); fmt.Sprint(err) != short || job.Count != 0 {
			t.Errorf("%s: nothing stored: %d tasks, %v, want %s", text, job.Count, err, short)
		}
		if job, err := plan.Job(make([]jobfile.Stored, len(plan.Sources))); job.Count != 0 ||
			!strings.HasPrefix(fmt.Sprint(err), "build job: ") || !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: stored under no name: %d tasks, %v", text, job.Count, err)
		}
	}
}

// Jobs that the file names stand as they are written until they are found; those that are found
// take their place, the list and the one apart.
func TestOtherJobs(t *testing.T) {
	t.Parallel()
	text := "command: [x]\nafter: [aaaa, bbbb]\nreservation: cccc"
	plan, err := jobfile.Load([]byte(text), t.TempDir(), options())
	if err != nil {
		t.Fatal(err)
	}
	if job, wrong := plan.Job(nil); !errors.Is(wrong, grid.ErrInvalid) {
		t.Errorf("jobs that were not looked for: %+v, %v", job, wrong)
	}
	var asked []jobfile.Ref
	for range 2 {
		asked = nil
		if err = plan.Complete(func(ref jobfile.Ref) (grid.JobID, error) {
			asked = append(asked, ref)
			return grid.JobID(strings.Repeat(ref.Text, 4)), nil
		}); err != nil {
			t.Fatal(err)
		}
		job, wrong := plan.Job(nil)
		want := []grid.JobID{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"}
		if diff := cmp.Diff(want, append(job.After, job.Spec.Reservation)); diff != "" || wrong != nil {
			t.Errorf("found: %v (-want +got):\n%s", wrong, diff)
		}
	}
	if diff := cmp.Diff([]jobfile.Ref{
		{Text: "aaaa", Field: "after[0]"},
		{Text: "bbbb", Field: "after[1]"},
		{Text: "cccc", Field: "reservation"},
	}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	lost := errors.New("no such job")
	err = plan.Complete(func(jobfile.Ref) (grid.JobID, error) { return "", lost })
	text = "job.yaml:2: after[0]: no such job; submit list shows your jobs\n" +
		"job.yaml:2: after[1]: no such job; submit list shows your jobs\n" +
		"job.yaml:3: reservation: no such job; submit list shows your jobs"
	if !errors.Is(err, lost) || err.Error() != text {
		t.Errorf("not found: %v, want %s", err, text)
	}
}

// A rule for checkpoints is read and written.
func TestCheckpointRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]grid.Saving{
		"auto": {}, "off": {Off: true}, "every 5m": {Every: 5 * time.Minute},
		"transparent": {Whole: true}, "transparent every 5m": {Whole: true, Every: 5 * time.Minute},
		"lfca every 1m": {Rule: grid.SaveLFCA, Every: time.Minute},
	} {
		f, err := jobfile.Parse([]byte("command: [x]\ncheckpoint: "+text+"\n"), options())
		if err != nil || f.Spec.Checkpoint != want {
			t.Errorf("%s: %+v, %v", text, f.Spec.Checkpoint, err)
		}
	}
	job := grid.Job{Count: 1, TTL: time.Second, Spec: grid.Spec{
		Kind: grid.KindCommand, Args: []string{"x"}, Runtime: time.Minute,
		Weights: grid.DefaultWeights(), Checkpoint: grid.Saving{Every: 5 * time.Minute},
	}}
	if d := jobfile.Format(job); d.Checkpoint != "every 5m0s" {
		t.Errorf("written as %q", d.Checkpoint)
	}
	if job.Spec.Checkpoint.Every = 0; jobfile.Format(job).Checkpoint != "" {
		t.Error("the default is written")
	}
}
