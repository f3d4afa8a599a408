package jobfile_test

import (
	"archive/tar"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// now is an afternoon two hours east of Greenwich.
func now() time.Time { return time.Date(2026, 5, 1, 15, 0, 0, 0, time.FixedZone("east", 7200)) }

func options() jobfile.Options { return jobfile.Options{Name: "job.yaml", Now: now()} }

// folder makes files: name -> content; a content "-> X" makes a link to X.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(target, full)
		} else {
			err = os.WriteFile(full, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const full = `
name: pi
wasm: ./pi.wasm
args: ["--digits", "100000", "{{item}}"]
env: {SEED: 42, A: "x"}
inputs:
  - {path: /in/table.csv, from: ./table.csv}
  - {path: /in/item, from: "{{item}}"}
outputs: [{path: /out/result.txt, to: "./r/{{index}}.txt"}]
resources: {gflops: 4, cpus: 0.5, memory: 512MiB, disk: 1GiB, bandwidth: 20Mbit/s}
runtime: 10m
limit: 1h
start: {notBefore: 14:00, at: null}
deadline: 18:00
items: {glob: "data/*"}
ttl: 2s
unattended: finish
map: {kind: seconds, weights: {C: 1, M: 2, F: 1, P: 0}, dimensions: {wait: 0.5, computation: 1}}
`

func fakeStore(sources []jobfile.Source) []jobfile.Stored {
	var out []jobfile.Stored
	for i, s := range sources {
		stored := jobfile.Stored{CID: grid.CID("b" + string(rune('0'+i))), Bytes: s.Bytes, Dir: s.Dir}
		if s.CID != "" {
			stored = jobfile.Stored{CID: s.CID, Bytes: 1}
		}
		out = append(out, stored)
	}
	return out
}

func TestFullFile(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"pi.wasm": "\x00asm1", "table.csv": "a,b", "data/b": "bb", "data/a/x": "xxx",
		"data/c": "-> ../table.csv",
	})
	plan, err := jobfile.Load([]byte(full), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	job, err := plan.Job(fakeStore(plan.Sources))
	if err != nil {
		t.Fatal(err)
	}
	want := grid.Job{
		Spec: grid.Spec{
			Name: "pi", Kind: grid.KindWasm, Module: grid.Input{CID: "b0", Bytes: 5},
			Args:    []string{"--digits", "100000", "{{item}}"},
			Env:     []grid.EnvVar{{Name: "A", Value: "x"}, {Name: "SEED", Value: "42"}},
			Inputs:  []grid.Input{{Path: "/in/table.csv", CID: "b1", Bytes: 3}},
			Outputs: []grid.Output{{Path: "/out/result.txt", To: "r/{{index}}.txt"}},
			Need: grid.Resources{
				MilliCPUs: 500, MemoryBytes: 512 << 20, DiskBytes: 1 << 30, MFLOPS: 4000, NetBps: 20e6,
			},
			Runtime: 10 * time.Minute, TimeLimit: time.Hour,
			Window: grid.Window{ // 14:00 is over today; 18:00 is the one after it
				NotBefore: time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC),
				Deadline:  time.Date(2026, 5, 2, 16, 0, 0, 0, time.UTC),
			},
			Map: grid.MapSeconds, Weights: grid.Weights{C: 1, M: 2, F: 1},
			Axes: []grid.Axis{
				{Dimension: grid.Computation, Weight: 1}, {Dimension: grid.QueueWait, Weight: 0.5},
			},
			Unattended: grid.UnattendedFinish,
		},
		Count: 3, TTL: 2 * time.Second,
		Items: []grid.Item{
			{Value: "data/a", Inputs: []grid.Input{{Path: "/in/item", CID: "b2", Bytes: 3, Dir: true}}},
			{Value: "data/b", Inputs: []grid.Input{{Path: "/in/item", CID: "b3", Bytes: 2}}},
			{Value: "data/c", Inputs: []grid.Input{{Path: "/in/item", CID: "b4", Bytes: 3}}},
		},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	roundTrip(t, job)
}

// roundTrip writes a job as describe does and reads it again.
func roundTrip(t *testing.T, job grid.Job) {
	t.Helper()
	text, err := jobfile.Format(job).JSON()
	if err != nil {
		t.Fatal(err)
	}
	described := `{"job": ` + string(text) + `, "status": {"phase": "done", "tabs":	1}}`
	plan, err := jobfile.Load([]byte(described), t.TempDir(), options())
	if err != nil {
		t.Fatalf("%s\n%v", described, err)
	}
	var stored []jobfile.Stored
	for _, s := range plan.Sources { // the data room knows sizes
		known := jobfile.Stored{CID: s.CID}
		for _, in := range append(allInputs(job), job.Spec.Module) {
			if in.CID == s.CID {
				known.Bytes, known.Dir = in.Bytes, in.Dir
			}
		}
		stored = append(stored, known)
	}
	again, err := plan.Job(stored)
	if diff := cmp.Diff(job, again); err != nil || diff != "" {
		t.Errorf("read again (-want +got): %v\n%s", err, diff)
	}
}

func allInputs(job grid.Job) []grid.Input {
	all := append([]grid.Input(nil), job.Spec.Inputs...)
	for _, item := range job.Items {
		all = append(all, item.Inputs...)
	}
	return all
}

func TestDefaultsAreSaid(t *testing.T) {
	t.Parallel()
	file, err := jobfile.Parse([]byte("command: [echo, hi]\ncount: 3\nargs: [x]\n"), options())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no runtime given: planning with 10m"}, file.Notes); diff != "" {
		t.Errorf("notes: %s", diff)
	}
	plan, err := file.Resolve("job.yaml", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	job, err := plan.Job(nil)
	if err != nil || job.Count != 3 || strings.Join(job.Spec.Args, " ") != "echo hi x" ||
		job.TTL != time.Second ||
		job.Spec.Need != (grid.Resources{
			MilliCPUs: 1000, MFLOPS: 1000, MemoryBytes: 128 << 20, DiskBytes: 64 << 20,
		}) {
		t.Errorf("job %+v, %v", job, err)
	}
	roundTrip(t, job)
}

// TestEveryMistakeIsNamed has one mistake a row: line, field, remedy.
func TestEveryMistakeIsNamed(t *testing.T) {
	t.Parallel()
	mistakes := map[string]string{
		"":                       "job.yaml:1: the job file is empty; write at least wasm: FILE",
		"[1]":                    "job.yaml:1: want keys with values, have a list",
		"name: x":                "job.yaml:1: wasm: want exactly one of wasm and command",
		"a: [":                   "want YAML or JSON",
		"{\"a\": \n}":            "a: no such key",
		"wasm: w\nresorces: {}":  "job.yaml:2: resorces: no such key; did you mean resources?",
		"wasm: w\nzzzzzzzzzz: 1": "job.yaml:2: zzzzzzzzzz: no such key; want one of name,",
		"wasm: w\nwasm: v":       "job.yaml:2: wasm: given twice",
		"wasm: w\ncommand: [x]":  "job.yaml:2: command: wasm and command are both given; keep one",
		"container: x":           "job.yaml:1: container: not supported by this version",

		"wasm: w\ncheckpoint: {policy: a}": "job.yaml:2: checkpoint: want a text",
		"wasm: w\ncheckpoint: on": "job.yaml:2: checkpoint: want auto, off, every 5m, lfca every 5m, " +
			"mfca every 5m or " +
			"transparent, have \"on\"; leave it out for auto",
		"wasm: w\ncheckpoint: every 10ms": "job.yaml:2: checkpoint: want an interval of 1s " +
			"to 24h0m0s, have 10ms",

		"wasm: w\ncount: 2\nsplit: never\ncheckpoint: every 5m": "job.yaml:4: checkpoint: the " +
			"parts of a split job run together",

		"wasm: w\ndomains: {spill: true}": "domains: not supported",
		"wasm: w\nresources:\n  bandwidth: 20": "job.yaml:3: resources.bandwidth: want a rate with " +
			"a unit (bit/s, kbit/s, Mbit/s, Gbit/s), have \"20\"; write it like 20Mbit/s",
		"wasm: w\nresources:\n  memory: 512": "job.yaml:3: resources.memory: want a size with a " +
			"unit (B, KiB, MiB, GiB, TiB), have \"512\"; write it like 512MiB",
		"wasm: w\nresources: {cpus: 2 cores}": "resources.cpus: want a number of cores",
		"wasm: w\nresources: {cpus: 0}":       "resources.cpus: want at least 0.001 cores",
		"wasm: w\nresources: {gflops: .nan}":  "resources.gflops: want a number of GFLOPS",
		"wasm: w\nresources: {mem: 1GiB}":     "resources.mem: no such key",
		"wasm: w\nruntime: 10": "job.yaml:2: runtime: want a number with a unit " +
			"(ms, s, m, h, d), have \"10\"; write it like 10m",
		"wasm: w\nruntime: 400d":            "runtime: want 1ms to",
		"wasm: w\nttl: 10m":                 "ttl: want 10ms to 5m0s",
		"wasm: w\nstart: {notBefore: noon}": "start.notBefore: want a time, have \"noon\"",
		"wasm: w\ndeadline: 2020-01-01T00:00:00Z": "deadline: want a time after " +
			"2026-05-01T15:00:00+02:00",
		"wasm: w\ncount: 0":             "count: want a whole number from 1 to 100000",
		"wasm: w\ncount: 2\nitems: [a]": "job.yaml:2: count: count and items are both given",
		"wasm: w\nitems: []":            "items: want at least one item",
		"wasm: w\nitems: {glob: ../x}": "items.glob: want a pattern below the job file's " +
			"folder",
		"wasm: w\nitems: {blob: x}":              "items.blob: no such key; did you mean glob?",
		"wasm: w\nargs: [\"{{item}}\"]":          "args[0]: {{item}} is used and there are no items",
		"wasm: w\nargs: x":                       "args: want a list, have \"x\"",
		"wasm: w\nargs: [[x]]":                   "args[0]: want a text, have a list",
		"wasm: w\nenv: {\"a=b\": 1}":             "env.a=b: want a name without =",
		"wasm: w\nunattended: die":               "unattended: want freeze, finish or stop",
		"wasm: w\nmap: {kind: x}":                "map.kind: want thesis or seconds",
		"wasm: w\nmap: {weights: {X: 1}}":        "map.weights.X: no such key",
		"wasm: w\nmap: {dimensions: {speed: 1}}": "map.dimensions.speed: no such key",
		"wasm: w\nmap: {dimensions: [speed]}": "there is no dimension \"speed\"; " +
			"write [computation, data",
		"wasm: w\nmap: {dimensions: [data, data]}": "data stands there twice",
		"wasm: w\nmap: {dimensions: {price: -1}}": "map.dimensions.price: want a number of weight, " +
			"at least 0",

		"wasm: https://x/y":     "wasm: URLs are not supported by this version",
		"wasm: cid:Qm!":         "wasm: want cid: and a content identifier",
		"wasm: \"{{index}}\"":   "wasm: the module is the same for all tasks",
		"wasm: &a w\nname: *a":  "name: want a text, have an alias",
		"wasm: w\n---\nwasm: w": "a second document begins",
		"command: echo hi":      "command: want a list, have \"echo hi\"; no shell splits it",
		"command: []":           "command: want at least the program",

		"wasm: w\ninputs: [{path: in, from: w}]": "inputs[0].path: want an absolute path " +
			"inside the sandbox",
		"wasm: w\ninputs: [{path: /a/../b, from: w}]": "inputs[0].path: want an absolute path",
		"wasm: w\ninputs: [{path: /a}]":               "inputs[0].from: missing; add from",
		"wasm: w\ninputs: [{path: /a, form: w}]":      "inputs[0].form: no such key; did you mean from?",

		"wasm: w\ninputs: [{path: /a, from: w}, {path: /a, from: w}]": "inputs[1].path: /a is used twice",
		"wasm: w\noutputs: [{path: /a, to: ../x}]": "outputs[0].to: want a path " +
			"below the job file's folder",
		"wasm: w\noutputs: [{path: /a, to: /x}]": "outputs[0].to: want a path below",
		"wasm: w\ncount: 2\noutputs: [{path: /a, to: x}]": "outputs[0].to: every task of the array " +
			"would write x; put {{index}}",
		"\xff\xfe": "no UTF-8 text",
		"name: " + strings.Repeat("x", 200) + "\nwasm: w": "name: want at most 128 bytes",
	}
	for text, want := range mistakes {
		_, err := jobfile.Parse([]byte(text), options())
		var all jobfile.Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
			continue
		}
		for _, one := range all {
			if one.Remedy == "" || one.Line == 0 && one.Field == "" && !strings.Contains(one.Text, "UTF-8") {
				t.Errorf("%q: no remedy or no place: %+v", text, one)
			}
		}
	}
	wholeMessages(t, "mistakes.txt", slices.Collect(maps.Keys(mistakes)))
}

var update = flag.Bool("update", false, "write the golden messages anew")

func TestMissingFilesAndLinks(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"w": "\x00asm", "text": "no module", "out": "-> /etc/passwd",
		"d/up": "-> ../../x", "up/f": "-> /etc/hostname",
		"e/sub/f": "1", "e/link": "-> sub", "s/1": "1", "s/2": "2",
	})
	for text, want := range map[string]string{
		"wasm: nope": "job.yaml:1: wasm: no such file or folder: nope",
		"wasm: text": "wasm: want a WebAssembly module, text is none",
		"wasm: s":    "wasm: want a WebAssembly module, s is none",
		"wasm: w\ninputs:\n- {path: /a, from: out}": "job.yaml:3: " +
			"inputs[0].from: out is a link out of the job file's folder",
		"wasm: w\ninputs: [{path: /a, from: d/up}]": "inputs[0].from: d/up is a link out",
		"wasm: w\ninputs: [{path: /a, from: up}]":   "inputs[0].from: up/f is a link out of the folder",
		"wasm: w\ninputs: [{path: /a, from: e}]":    "inputs[0].from: e/link is a link to a folder",
		"wasm: w\ninputs: [{path: /a, from: /nonexistent}]": "inputs[0].from: /nonexistent is " +
			"outside of the job file's folder",
		"wasm: /etc/passwd":                  "wasm: /etc/passwd is outside of the job file's folder",
		"wasm: w\nitems: {glob: \"none/*\"}": "items.glob: nothing matches none/*",
		"wasm: w\nitems: [a]\ninputs: [{path: /a, from: \"x/{{item}}\"}]": "no such file or " +
			"folder: x/a",
		"wasm: w\nitems: [../a, b]\noutputs: [{path: /o, to: \"{{item}}\"}]": "outputs[0].to: for item " +
			"\"../a\" it is ../a, outside",
		"wasm: w\nitems: [a, a]\noutputs: [{path: /o, to: \"{{item}}\"}]": "outputs[0].to: tasks 0 and " +
			"1 would both write a",
	} {
		_, err := jobfile.Load([]byte(text), dir, options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	both := "wasm: nope\nruntime: 5\ninputs: [{path: /a, from: gone}]\n"
	_, err := jobfile.Load([]byte(both), dir, options())
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want all three mistakes in one error, have %v", err)
	}
}

func TestSharedContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"w": "\x00asm", "s/1": "1", "s/2": "2"})
	text := "wasm: w\nitems: [x, y]\n" +
		"inputs: [{path: /a, from: s}, {path: /b, from: s}, {path: /c, from: \"" + dir + "/s/1\"}]\n"
	plan, err := jobfile.Load([]byte(text), dir, options())
	if err != nil || len(plan.Sources) != 3 || plan.Tasks() != 2 {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	body, err := plan.Sources[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got := map[string]string{}
	for reader := tar.NewReader(body); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = string(data)
	}
	if diff := cmp.Diff(map[string]string{"1": "1", "2": "2"}, got); diff != "" {
		t.Errorf("tar: %s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"job": {"command": ["x"], "count": 2, ` +
		`"inputs": [{"path": "/a", "from": "cid:b"}]}, "status": 1}`))
	f.Add([]byte("wasm: &a x\nitems: [*a]\n"))
	f.Add([]byte(placed))
	f.Add([]byte("reserve: 2h\nstart: {at: mon 09:00}\ncount: 3\n"))
	f.Add([]byte("command: [x]\nretries: 2\nmax-failures: 5\n"))
	f.Add([]byte("command: [x]\nplacing: flood\nstart: {notBefore: in 10m}\n"))
	f.Add([]byte("command: [x]\ndeadline: 2028-02-29T12:00\nafter: aaaa\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := jobfile.Parse(data, options())
		if err != nil {
			var all jobfile.Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if file.Spec.Kind == grid.KindWasm {
			file.Spec.Module.CID = "b"
		}
		if err := file.Spec.Validate(); err != nil {
			t.Fatalf("an invalid job was taken: %v", err)
		}
	})
}
