package jobmap_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// here makes a directory of files; those whose content begins with #! can be run.
func here(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file, mode := filepath.Join(dir, name), os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// load reads a map as the job file that it is, and gives the tasks that it is made of.
func load(t *testing.T, o jobmap.Order, dir string) (*jobmap.Map, []grid.Task) {
	t.Helper()
	m, err := o.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(m.Document())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := jobfile.Load(data, dir, jobfile.Options{Now: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	stored := make([]jobfile.Stored, len(plan.Sources))
	for i, source := range plan.Sources { // a test's identifier is the file's name
		name := fmt.Sprintf("b%x", source.Path)
		stored[i] = jobfile.Stored{CID: grid.CID(name), Dir: source.Dir}
	}
	job, err := plan.Job(stored)
	if err != nil {
		t.Fatal(err)
	}
	var tasks []grid.Task
	for i := range job.Count {
		tasks = append(tasks, job.Spec.Expand("j", i, job.Items[i]))
	}
	for i, task := range tasks {
		command := jobmap.CommandOf(job.Spec.Args, job.Items[i].Value)
		if job.Spec.Kind == grid.KindCommand && command != m.Commands[i] {
			t.Errorf("task %s runs %q, want %q", task.ID, command, m.Commands[i])
		}
	}
	return m, tasks
}

func paths(task grid.Task) []string {
	var out []string
	for _, in := range task.Inputs {
		out = append(out, in.Path)
	}
	return out
}

func TestEachArgumentIsATask(t *testing.T) {
	t.Parallel()
	dir := here(t, map[string]string{
		"a.txt": "1", "d/b c.txt": "2", "cid:x": "3", "count": "#!/bin/sh\n", "lib/l": "4",
		"fit.py": "5",
	})
	m, tasks := load(t, jobmap.Order{
		Words: []string{"./count", "{}", "fit.py"},
		Arguments: []string{
			"a.txt", "d/b c.txt", "cid:x", "no file", "", "d", "lib/l", "null", "~",
		},
		Inputs: []string{"./lib/l", "lib/", "lib/l"},
	}, dir)
	var got [][]string
	for _, task := range tasks {
		got = append(got, append(task.Args[2:], paths(task)...))
	}
	lib, count := "/work/lib", "/work/count"
	want := [][]string{
		{"./count a.txt fit.py", lib, count, "/work/a.txt"},
		{"./count 'd/b c.txt' fit.py", lib, count, "/work/d/b c.txt"},
		{"./count cid:x fit.py", lib, count, "/work/cid:x"},
		{"./count 'no file' fit.py", lib, count},
		{"./count '' fit.py", lib, count},
		{"./count d fit.py", lib, count, "/work/d"},
		{"./count lib/l fit.py", lib, count},
		{"./count null fit.py", lib, count},
		{"./count '~' fit.py", lib, count},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	note := []string{"note: fit.py is not sent; --input fit.py sends it to every task"}
	if diff := cmp.Diff(note, m.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestArgumentsAreAddedAtTheEnd(t *testing.T) {
	t.Parallel()
	o := jobmap.Order{Words: []string{"wc", "-l"}, Arguments: []string{"a b"}}
	_, tasks := load(t, o, t.TempDir())
	if got := tasks[0].Args[2]; got != "wc -l 'a b'" {
		t.Errorf("the task runs %q", got)
	}
}

// TestWhatComesBackIsGathered runs the commands of tasks here, as a site would.
func TestWhatComesBackIsGathered(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("commands of a map run by sh, which this system does not have")
	}
	_, tasks := load(t, jobmap.Order{
		Words: []string{`mkdir -p {//}; echo {} > {}.new; exit {/.}`}, NoFiles: true,
		Arguments: []string{"d/0.x", "7.it's", "-3"}, Returns: []string{"./{}.new"},
	}, t.TempDir())
	for i, want := range []struct {
		file, text string
		fails      bool
	}{{"d/0.x.new", "d/0.x\n", false}, {"7.it's.new", "7.it's\n", true}, {"-3.new", "-3\n", true}} {
		dir := t.TempDir()
		script := strings.ReplaceAll(tasks[i].Args[2], jobmap.Gathered, dir+jobmap.Gathered)
		args := append([]string{"-c", script}, tasks[i].Args[3:]...)
		cmd := exec.CommandContext(t.Context(), sh, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if (err != nil) != want.fails {
			t.Errorf("task %d: %v, %s", i, err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, jobmap.Gathered, want.file))
		if err != nil || string(text) != want.text {
			t.Errorf("task %d gathered %q, %v, want %q", i, text, err, want.text)
		}
	}
}

// Where one text sets the tasks apart, and needs no quotes, the site runs the line itself and takes
// what comes back from where the command leaves it.
func TestPlainTasksNeedNoGathering(t *testing.T) {
	t.Parallel()
	dir := here(t, map[string]string{"a.txt": "1", "d/b.txt": "2", "it's": "3"})
	with := func(line, back string, arguments ...string) jobmap.Order {
		return jobmap.Order{
			Words: []string{line}, Returns: []string{back, "log/" + back}, Arguments: arguments,
		}
	}
	for name, c := range map[string]struct {
		order jobmap.Order
		line  string // of the second argument: a line of sh where it has signs of that
		to    string // what comes back of it; empty: it is gathered
	}{
		"the argument": {
			with("gzip -k {}", "./{}.gz", "a.txt", "d/b.txt"), "gzip -k d/b.txt", "d/b.txt.gz",
		},
		"twice": {
			with("sort {} > {}.s", "{}.s", "a.txt", "d/b.txt"), "sort d/b.txt > d/b.txt.s",
			"d/b.txt.s",
		},
		"added at the end": {
			with("gzip", "{}.gz", "a.txt", "d/b.txt"), "gzip d/b.txt", "d/b.txt.gz",
		},
		"without its extension": {with("x {.}", "{.}.o", "a.txt", "d/b.txt"), "x d/b", "d/b.o"},
		"its number":            {with("seq {#} > {#}", "{#}", "a.txt", "b"), "seq 2 > 2", "2"},
		"a word":                {with("echo {} > {}", "{}", "x", "-y"), "echo -y > -y", "-y"},
		"two of them":           {order: with("x {} {.}", "{.}.o", "a.txt", "d/b.txt")},
		"quotes":                {order: with("gzip -k {}", "{}.gz", "a.txt", "it's")},
		"no clean path":         {order: with("gzip -k {}", "{}.gz", "a.txt", "d/../d/b.txt")},
		"words of job files":    {order: with("echo '{{index}}' > {}.o", "{}.o", "a.txt", "b")},
	} {
		_, tasks := load(t, c.order, dir)
		var got, want []grid.Output
		if c.to != "" {
			want = []grid.Output{
				{Path: "/work/" + c.to, To: c.to}, {Path: "/work/log/" + c.to, To: "log/" + c.to},
			}
			got = tasks[1].Outputs
			args := strings.Split(c.line, " ")
			if strings.Contains(c.line, ">") {
				args = []string{"/bin/sh", "-c", c.line}
			}
			if !cmp.Equal(tasks[1].Args, args) {
				t.Errorf("%s: the task runs %q, want %q", name, tasks[1].Args, args)
			}
		} else if out := tasks[1].Outputs; len(out) != 1 || out[0].Path != jobmap.Gathered {
			t.Errorf("%s: it leaves %v", name, out)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: it leaves (-want +got):\n%s", name, diff)
		}
	}
}

func TestModulesTakeOneText(t *testing.T) {
	t.Parallel()
	dir := here(t, map[string]string{"m.wasm": "\x00asm", "a.txt": "1", "d/b.txt": "2"})
	o := jobmap.Order{
		Wasm: "m.wasm", Words: []string{"--in={.}.txt", "{.}"},
		Arguments: []string{"a.txt", "d/b.txt"}, Returns: []string{"{.}.out"},
	}
	m, tasks := load(t, o, dir)
	want := grid.Task{
		Args:    []string{"--in=d/b.txt", "d/b"},
		Outputs: []grid.Output{{Path: "/d/b.out", To: "d/b.out"}},
	}
	got := grid.Task{Args: tasks[1].Args, Outputs: tasks[1].Outputs}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := paths(tasks[1]); !cmp.Equal(got, []string{"/d/b.txt"}) {
		t.Errorf("the module gets %v", got)
	}
	commands := []string{"m.wasm --in=a.txt a", "m.wasm --in=d/b.txt d/b"}
	if !cmp.Equal(m.Commands, commands) {
		t.Errorf("the commands are %q, want %q", m.Commands, commands)
	}
	o.Words, o.Returns = nil, nil
	if _, tasks = load(t, o, dir); !cmp.Equal(tasks[0].Args, []string{"a.txt"}) {
		t.Errorf("without arguments of its own the module gets %q", tasks[0].Args)
	}
	o.Words = []string{"{}", "{.}"}
	if _, err := o.Make(dir); err == nil || !strings.Contains(err.Error(), "{} and {.}") {
		t.Errorf("two replacement strings: %v", err)
	}
}

// TestWhatIsRefused has what would mean something else than it says, and the remedies.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	outside := here(t, map[string]string{"in/a": "1", "in/d/x": "2", "b": "3", "in/{{item}}": "4"})
	dir := filepath.Join(outside, "in")
	order := func(command, argument string) jobmap.Order {
		return jobmap.Order{Words: []string{command}, Arguments: []string{argument}}
	}
	with := func(change func(*jobmap.Order)) jobmap.Order {
		o := order("cat", "a")
		change(&o)
		return o
	}
	returns := func(pattern string) jobmap.Order {
		return with(func(o *jobmap.Order) { o.Returns = []string{pattern} })
	}
	inputs := func(name string) jobmap.Order {
		return with(func(o *jobmap.Order) { o.Inputs = []string{name} })
	}
	long := func(n int) jobmap.Order { return order("cat", strings.Repeat("x", n)) }
	for want, o := range map[string]jobmap.Order{
		"../b is a file here, and files are sent along: it is outside": order("cat", "../b"),
		"outside the present directory; change to a directory above": order(
			"cat", filepath.Join(outside, "b")),
		"it is the present directory itself; name what is in it": order("ls", "."),
		"argument 1: its text takes 4100 bytes":                  long(4096),
		"argument 1: its text takes 1048576 bytes":               long(1 << 20),
		"is not UTF-8; rename the file":                          order("cat", "\xff"),
		"a zero byte":                                            order("cat", "a\x00b"),
		"holds {{, which job files replace; rename it":           order("cat", "{{item}}"),
		"./a cannot be run; `chmod +x ./a`":                      order("./a", "a"),
		"./none: no such program here":                           order("./none {}", "a"),
		"no command; write it before :::":                        order(" ", "a"),
		"no arguments":                                           {Words: []string{"cat"}},
		"more than 100000 arguments": {
			Words: []string{"cat"}, Arguments: make([]string, grid.MaxTasks+1),
		},
		`--return "../a": it is outside`:         returns("../{}"),
		"--return: {1} of GNU parallel":          returns("{1}"),
		"--return: a is an input":                returns("{}"),
		"--return: {x} is no replacement string": returns("{x}.gz"),
		"--input none: no such file":             inputs("none"),
		"--input ../b: it is outside":            inputs("../b"),
		"d is sent as a whole, and d/x to every": {
			Words: []string{"ls"}, Arguments: []string{"d"}, Inputs: []string{"d/x"},
		},
		"tasks 1 and 2 would both write all.txt": {
			Words: []string{"ls"}, Arguments: []string{"1", "2"}, Returns: []string{"all.txt"},
		},
		"{%}: there are no job slots on a mesh": order("echo {%}", "a"),
		"{2} of GNU parallel is not known here": {
			Wasm: "m", Words: []string{"{2}"}, Arguments: []string{"a"},
		},
	} {
		if _, err := o.Make(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for _, o := range []jobmap.Order{
		with(func(o *jobmap.Order) { o.NoFiles, o.Arguments = true, []string{"../b"} }),
		order("/bin/cat", "a"), order("X=./no cat", "a"), order("cat", "../none"),
	} {
		if _, err := o.Make(dir); err != nil {
			t.Errorf("%q: %v", o.Words, err)
		}
	}
}
