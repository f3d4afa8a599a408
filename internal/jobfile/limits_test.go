package jobfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// wholeMessages holds what a user reads of each of some mistakes against the file that has it.
func wholeMessages(t *testing.T, name string, mistakes []string) {
	t.Helper()
	var all strings.Builder
	for _, text := range slices.Sorted(slices.Values(mistakes)) {
		if len(text) > 1000 {
			continue
		}
		_, err := jobfile.Parse([]byte(text), options())
		fmt.Fprintf(&all, "%q\n  %s\n", text, strings.ReplaceAll(fmt.Sprint(err), "\n", "\n  "))
	}
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), all.String()); diff != "" {
		t.Errorf("the mistakes in full (-want +got):\n%s", diff)
	}
}

// What is just within a limit is taken, and what is just beyond is not.
func TestLimits(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int) string { return "[" + strings.Repeat("aa, ", n) + "]" }
	input := func(n int) string { return "inputs: [{path: /" + long(n-1) + ", from: w}]" }
	for what, c := range map[string]struct{ within, beyond string }{
		"a name":         {"name: " + long(128), "name: " + long(129)},
		"a project":      {"project: " + long(64), "project: " + long(65)},
		"the runtime":    {"runtime: 1ms", "runtime: 0.9ms"},
		"a long runtime": {"runtime: 366d", "runtime: 8785h"},
		"the limit":      {"limit: 1s", "limit: 999ms"},
		"the ttl":        {"ttl: 10ms", "ttl: 9ms"},
		"a long ttl":     {"ttl: 5m", "ttl: 301s"},
		"few tasks":      {"count: 1", "count: 0"},
		"many tasks":     {"count: 100000", "count: 100001"},
		"cores":          {"resources: {cpus: 0.001}", "resources: {cpus: 0.0004}"},
		"computation":    {"resources: {gflops: 0}", "resources: {gflops: -0.1}"},
		"weights":        {"map: {weights: {C: 1000000000}}", "map: {weights: {C: 1000000001}}"},
		"priority": {
			fmt.Sprint("priority: ", grid.MaxPriority), fmt.Sprint("priority: ", grid.MaxPriority+1),
		},
		"low priority": {
			fmt.Sprint("priority: -", grid.MaxPriority), fmt.Sprint("priority: -", grid.MaxPriority+1),
		},
		"jobs before": {"after: " + list(grid.MaxAfter), "after: " + list(grid.MaxAfter+1)},
		"a job's id":  {"after: abcdefghijklmnop", "after: abcdefghijklmnopq"},
		"a sandbox path": {
			input(4096), input(4097),
		},
		"a time ahead": {"deadline: in 366d", "deadline: in 8785h"},
	} {
		for text, want := range map[string]bool{c.within: true, c.beyond: false} {
			body := "command: [x]\n" + text + "\n"
			if !strings.HasPrefix(text, "runtime") {
				body += "runtime: 1s\n"
			}
			if _, err := jobfile.Parse([]byte(body), options()); (err == nil) != want {
				t.Errorf("%s: %.80s: %v", what, text, err)
			}
		}
	}
}

// A key without a value counts as not given, whichever it is.
func TestKeysWithoutValues(t *testing.T) {
	t.Parallel()
	bare, err := jobfile.Parse([]byte("command: [x]\n"), options())
	if err != nil {
		t.Fatal(err)
	}
	for parent, keys := range map[string]string{
		"": "name wasm args env inputs outputs resources os arch runtime limit start deadline items " +
			"count ttl unattended map reserve after priority project reservation overrun split " +
			"communication placing container checkpoint replicas agreement domains",
		"resources": "gflops cpus memory disk bandwidth", "start": "at notBefore",
		"map": "kind weights dimensions", "map: {weights": "C M F P",
	} {
		for key := range strings.FieldsSeq(keys) {
			text := key + ": null"
			if parent != "" {
				text = parent + ": {" + text + "}" + strings.Repeat("}", strings.Count(parent, "{"))
			}
			got, err := jobfile.Parse([]byte("command: [x]\n"+text+"\n"), options())
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if diff := cmp.Diff(bare.Spec, got.Spec); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
	}
}

// A mistake in JSON is at its line, too; keys and lines of a description count as those of a job.
func TestLinesOfJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n\"wasm\": \"w\",\n\n\"resorces\": {}\n}":               "job.yaml:4: resorces",
		"\n\n{\"wasm\": \"w\",\n\"count\":\n0}":                    "job.yaml:5: count",
		"{\"status\": {},\n\"job\": {\n\"wasm\": \"w\", \"a\":1}}": "job.yaml:3: a: no such key",
		strings.Repeat("{\"a\":\n", 17) + "1" + strings.Repeat("}", 17): "job.yaml:17: want JSON: " +
			"nested too deeply",
	} {
		_, err := jobfile.Parse([]byte(text), options())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Where {{item}} takes an output is known when the items are.
func TestWhereOutputsGo(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"w": "\x00asm"})
	for items, want := range map[string]string{
		"[a, b/c]":  "",
		"[a, ..]":   `outputs[0].to: for item ".." it is .., outside the job file's folder`,
		"[., a]":    `outputs[0].to: for item "." it is ., outside the job file's folder`,
		"[a, b, a]": "outputs[0].to: tasks 0 and 2 would both write a",
		"[a, ./a]":  "outputs[0].to: tasks 0 and 1 would both write a",
	} {
		text := "wasm: w\noutputs: [{path: /o, to: \"{{item}}\"}, {path: /p, to: \"p{{index}}\"}]\n"
		_, err := jobfile.Load([]byte(text+"items: "+items), dir, options())
		if got := fmt.Sprint(err); !strings.Contains(got, want) || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %s", items, err, want)
		}
	}
}
