package sbatch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Batch asks for a job.
type Batch struct {
	Script  *Script
	File    string           // where the script is
	Name    string           // of the job, if no option names it
	Args    []string         // of the script
	Given   map[string]Given // see Merge
	Inputs  []string         // files and directories that are sent along
	Returns []string         // files that come back
	Folder  string           // in which sbatch was called
	// Variable looks into the environment of the caller.
	Variable func(name string) (string, bool)
}

// Made is the job of a batch script.
type Made struct {
	Document map[string]any // the job file
	Names    Names
	Notes    []string // what is different from Slurm
}

// The places of files on a site, and the variables that keep the names of the output.
const (
	home     = "/work"
	returned = "/returned"
	script   = "/batch/script"
	stdin    = "/batch/stdin"

	OutputVar = "SBATCH_OUTPUT"
	ErrorVar  = "SBATCH_ERROR"

	word = "{{item}}"

	// run runs the script, with both streams in one if there is no file for errors, and moves
	// what comes back. Its words are 1 or 2 for the streams, the number of files, the files, and
	// the command.
	run = `streams=$1 count=$2
shift 2
files=
while [ "$count" -gt 0 ]; do
	files="$files
$1" count=$((count - 1))
	shift
done
[ -f ` + stdin + ` ] && exec < ` + stdin + `
if [ "$streams" = 1 ]; then "$@" 2>&1; else "$@"; fi
code=$?
IFS='
'
for file in $files; do
	[ -e "$file" ] || continue
	mkdir -p "` + returned + `/$(dirname "./$file")" && mv "./$file" "` + returned + `/$file"
done
exit "$code"`
)

// maker makes one job.
type maker struct {
	Batch

	env   map[string]string
	doc   map[string]any
	notes []string
	names Names
	array []uint64
	wrong []error
}

// Job makes the job file. The error joins a *Problem for each option that is wrong.
func (b Batch) Job() (*Made, error) {
	m := &maker{Batch: b, env: map[string]string{}, doc: map[string]any{}}
	for _, step := range []func(){
		m.readArray, m.readNeeds, m.readTimes, m.readOthers, m.readExport, m.readNames, m.readFiles,
	} {
		step()
	}
	if len(m.wrong) > 0 {
		return nil, errors.Join(m.wrong...)
	}
	m.variables()
	m.doc["env"] = m.env
	return &Made{Document: m.doc, Names: m.names, Notes: m.notes}, nil
}

// read calls a reader for an option that was given, and keeps which one its error is about.
func (m *maker) read(name string, reader func(value string) error) {
	g, given := m.Given[name]
	if !given {
		return
	}
	if err := reader(g.Value); err != nil {
		m.fail(g, err)
	}
}

func (m *maker) fail(g Given, err error) {
	m.wrong = append(m.wrong,
		&Problem{Given: g, Text: err.Error(), Remedy: "correct it, or leave it out"})
}

func (m *maker) readArray() {
	m.read("array", func(value string) error {
		list, most, err := indexes(value)
		if err != nil {
			return err
		}
		if most > 0 {
			m.notes = append(m.notes, fmt.Sprintf("--array: %%%d is passed over; "+
				"as many tasks run as the sites have place for", most))
		}
		m.array = list
		var items []string
		for _, i := range list {
			items = append(items, strconv.FormatUint(i, 10))
		}
		m.doc["items"] = items
		return nil
	})
}

// readNeeds reads how much a task needs.
func (m *maker) readNeeds() {
	need, cpus := map[string]any{}, 1
	one := func(value string) error {
		if value != "1" && value != "1-1" {
			return fmt.Errorf("a batch script is one task at one site; have %q", value)
		}
		return nil
	}
	memory := func(variable string, times func() int) func(string) error {
		return func(value string) error {
			bytes, err := mebibytes(value)
			need["memory"] = strconv.FormatInt(bytes*int64(times()), 10) + "B"
			m.env[variable] = strconv.FormatInt(bytes>>mebibyteBits, 10)
			return err
		}
	}
	for _, step := range []struct {
		name   string
		reader func(string) error
	}{
		{"ntasks", one},
		{"nodes", one},
		{"cpus-per-task", func(value string) error {
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil || n < 1 {
				return fmt.Errorf("want a whole number of cores, have %q", value)
			}
			cpus, need["cpus"] = int(n), value
			return nil
		}},
		{"mem-per-cpu", memory("SLURM_MEM_PER_CPU", func() int { return cpus })},
		{"mem", memory("SLURM_MEM_PER_NODE", func() int { return 1 })},
	} {
		m.read(step.name, step.reader)
	}
	if len(need) > 0 {
		m.doc["resources"] = need
	}
	for _, name := range []string{"SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"} {
		m.env[name] = strconv.Itoa(cpus)
	}
	m.setGiven("cpus-per-task", "SLURM_CPUS_PER_TASK")
	m.setGiven("ntasks", "SLURM_NTASKS", "SLURM_NPROCS")
}

// setGiven sets variables that Slurm sets only if their option was given.
func (m *maker) setGiven(option string, variables ...string) {
	if g, given := m.Given[option]; given {
		for _, name := range variables {
			m.env[name] = g.Value
		}
	}
}

func (m *maker) readTimes() {
	m.read("time", func(value string) error {
		d, err := limit(value)
		if d > 0 {
			text := strconv.FormatInt(int64(d.Seconds()), 10) + "s"
			m.doc["limit"], m.doc["runtime"] = text, text
		}
		return err
	})
	if at := moment(m.Given["begin"].Value); at != "" {
		m.doc["start"] = map[string]string{"notBefore": at}
	}
	if at := moment(m.Given["deadline"].Value); at != "" {
		m.doc["deadline"] = at
	}
}

func (m *maker) readOthers() {
	if _, given := m.Given["hold"]; given {
		m.doc["hold"] = "true"
	}
	m.read("dependency", func(value string) error {
		ids, err := dependency(value)
		m.doc["after"] = ids
		return err
	})
}

// readExport takes variables of the caller along: only those that are named, since the job runs on
// machines of others.
func (m *maker) readExport() {
	m.read("export", func(value string) error {
		if value == "NONE" || value == "NIL" {
			return nil
		}
		for one := range strings.SplitSeq(value, ",") {
			name, text, set := strings.Cut(one, "=")
			if !set {
				text, set = m.Variable(name)
			}
			switch {
			case one == "ALL":
				return fmt.Errorf("ALL would send your whole environment to machines of others; " +
					"name the variables that the script needs")
			case name == "" || !set:
				return fmt.Errorf("the variable %q is not set", name)
			}
			m.env[name] = text
		}
		return nil
	})
}

// readNames reads how the job and its output are called.
func (m *maker) readNames() {
	m.names = Names{
		Output: singleOutput, Error: m.Given["error"].Value, Name: m.Name, Array: len(m.array) > 0,
	}
	if m.names.Array {
		m.names.Output = arrayOutput
	}
	if g, given := m.Given["job-name"]; given && g.Value != "" {
		m.names.Name = g.Value
	}
	if g, given := m.Given["output"]; given && g.Value != "" {
		m.names.Output = g.Value
	}
	m.doc["name"] = m.names.Name
	for _, name := range []string{"output", "error"} {
		m.read(name, func(string) error {
			_, _, err := m.names.Files("job", 0, "0")
			return err
		})
	}
	m.env[OutputVar] = m.names.Output
	if m.names.Error != "" {
		m.env[ErrorVar] = m.names.Error
	}
}

// readFiles lists what is sent and what comes back.
func (m *maker) readFiles() {
	inputs := []map[string]string{{"path": script, "from": m.File}}
	for _, file := range m.Inputs {
		clean := path.Clean(file)
		inputs = append(inputs, map[string]string{
			"path": path.Join(home, clean), "from": "./" + clean,
		})
	}
	m.read("input", func(value string) error {
		name, err := expand(value, map[byte]string{'a': word, 'x': m.names.Name})
		inputs = append(inputs, map[string]string{"path": stdin, "from": "./" + name})
		return err
	})
	streams := "1"
	if m.names.Error != "" {
		streams = "2"
	}
	var files []string
	var outputs []map[string]string
	for _, file := range m.Returns {
		name, err := expand(file, map[byte]string{'a': word, 'x': m.names.Name})
		if err != nil {
			m.fail(Given{Name: "return", Value: file}, err)
		}
		name = path.Clean(name)
		files = append(files, name)
		outputs = append(outputs, map[string]string{"path": path.Join(returned, name), "to": name})
	}
	m.doc["command"] = slices.Concat(
		[]string{"/bin/sh", "-c", run, "sbatch", streams, strconv.Itoa(len(files))}, files,
		m.Script.Interpreter, []string{script}, m.Args,
	)
	m.doc["inputs"] = inputs
	if len(outputs) > 0 {
		m.doc["outputs"] = outputs
	}
}

// variables are those that Slurm sets and that are known here.
func (m *maker) variables() {
	set := func(name, value string) { m.env["SLURM_"+name] = value }
	set("JOB_ID", "{{job}}")
	set("JOBID", "{{job}}")
	set("JOB_NAME", m.names.Name)
	set("SUBMIT_DIR", m.Folder)
	for _, name := range []string{"NNODES", "JOB_NUM_NODES", "TASKS_PER_NODE"} {
		set(name, "1")
	}
	for _, name := range []string{"PROCID", "LOCALID", "NODEID", "GTIDS"} {
		set(name, "0")
	}
	if len(m.array) == 0 {
		return
	}
	number := func(name string, n uint64) { set(name, strconv.FormatUint(n, 10)) }
	set("JOB_ID", "{{job}}.{{index}}")
	set("JOBID", "{{job}}.{{index}}")
	set("ARRAY_JOB_ID", "{{job}}")
	set("ARRAY_TASK_ID", word)
	number("ARRAY_TASK_COUNT", uint64(len(m.array)))
	number("ARRAY_TASK_MIN", slices.Min(m.array))
	number("ARRAY_TASK_MAX", slices.Max(m.array))
	set("ARRAY_TASK_STEP", stepOf(m.Given["array"].Value))
}
