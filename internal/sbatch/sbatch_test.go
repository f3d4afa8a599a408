package sbatch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/sbatch"
)

// made makes the job file of #SBATCH lines, with options of the command line.
func made(lines string, line ...sbatch.Given) (*sbatch.Made, error) {
	script, problems, err := sbatch.Read("job.sh", "#!/bin/sh\n"+lines+"\ntrue\n")
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return sbatch.Batch{
		Script: script, File: "/tmp/job.sh", Name: "job.sh", Folder: "/home/me",
		Given: sbatch.Merge(script.Given, line),
		Variable: func(name string) (string, bool) {
			return "of " + name, name != "UNSET"
		},
	}.Job()
}

func TestOptionsOfAScript(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]map[string]any{
		"#SBATCH -J name -t 90": {
			"name": "name", "limit": "5400s", "runtime": "5400s",
		},
		"#SBATCH --time=1-12:30": {"limit": "131400s"},
		"#SBATCH --time 2:30":    {"limit": "150s"},
		"#SBATCH -t1:00:01":      {"limit": "3601s"},
		"#SBATCH --time 0":       {"limit": nil, "runtime": nil},
		"#SBATCH --mem=2G -c 3": {
			"resources": map[string]any{"memory": "2147483648B", "cpus": "3"},
		},
		"#SBATCH -c2 --mem-per-cpu 100": {
			"resources": map[string]any{"memory": "209715200B", "cpus": "2"},
		},
		"#SBATCH --array=1,5-7,20-40:10%2": {
			"items": []string{"1", "5", "6", "7", "20", "30", "40"},
		},
		"#SBATCH -d afterok:aa:bb,afterok:cc": {"after": []string{"aa", "bb", "cc"}},
		"#SBATCH --begin=now+2hours":          {"start": map[string]string{"notBefore": "+2h"}},
		"#SBATCH --begin=now+60":              {"start": map[string]string{"notBefore": "+60s"}},
		"#SBATCH --begin=now+1week":           {"start": map[string]string{"notBefore": "+7d"}},
		"#SBATCH --begin=14:00 --deadline 18:00": {
			"start": map[string]string{"notBefore": "14:00"}, "deadline": "18:00",
		},
		"#SBATCH --begin now -H":                            {"start": nil, "hold": "true"},
		"#SBATCH -J 'two words' # -J other":                 {"name": "two words"},
		"#SBATCH -J first\n# a comment\n\n#SBATCH -Jsecond": {"name": "second"},
		"true\n#SBATCH -J late":                             {"name": "job.sh"},
		"#SBATCHES -J other":                                {"name": "job.sh"},
	} {
		m, err := made(lines)
		if err != nil {
			t.Errorf("%s: %v", lines, err)
			continue
		}
		for key, value := range want {
			if diff := cmp.Diff(fmt.Sprint(value), fmt.Sprint(m.Document[key])); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", lines, key, diff)
			}
		}
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"\n#SBATCH --gres=gpu:1": "job.sh:3: --gres: no such option on a mesh; remove it",
		"#SBATCH -p long":        "job.sh:2: --p: no such option",
		"#SBATCH -J":             "job.sh:2: --job-name: has no value; add one",
		"#SBATCH -J 'x":          "job.sh:2: --SBATCH: a quote ' is not closed",
		"#SBATCH -n 4":           "job.sh:2: --ntasks: a batch script is one task at one site",
		"#SBATCH -N 2-3":         "job.sh:2: --nodes: a batch script",
		"#SBATCH -t soon":        "job.sh:2: --time: want minutes, h:mm:ss or days-hours",
		"#SBATCH -t 1:2:3:4":     "job.sh:2: --time: want minutes",
		"#SBATCH -t 400-0":       "job.sh:2: --time: is longer than a year",
		"#SBATCH --mem 0":        "job.sh:2: --mem: want a size such as 4G",
		"#SBATCH --mem 4Q":       "job.sh:2: --mem: want a size",
		"#SBATCH -c 0":           "job.sh:2: --cpus-per-task: want a whole number",
		"#SBATCH -a 5-1":         "job.sh:2: --array: want indexes such as",
		"#SBATCH -a 0-9:0":       "job.sh:2: --array: want indexes",
		"#SBATCH -a 0-9%0":       "job.sh:2: --array: want indexes",
		"#SBATCH -a 0-4000000":   "job.sh:2: --array: want at most 100000 tasks",
		"#SBATCH -a 4000001":     "job.sh:2: --array: want at most",
		"#SBATCH -d afterany:x":  `job.sh:2: --dependency: want afterok:ID, have "afterany:x"`,
		"#SBATCH -d singleton":   "job.sh:2: --dependency: want afterok:ID",
		"#SBATCH --export=ALL":   "job.sh:2: --export: ALL would send your whole environment",
		"#SBATCH --export UNSET": `job.sh:2: --export: the variable "UNSET" is not set`,
		"#SBATCH -o out.%N":      "job.sh:2: --output: %N in",
		"#SBATCH -o out%":        "job.sh:2: --output: \"out%\" ends with %",
		"#SBATCH -i in.%j":       "job.sh:2: --input: %j in",
	} {
		if _, err := made(lines); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", lines, err, want)
		}
	}
	for text, want := range map[string]string{
		"true":     "does not begin with #!",
		"#!\ntrue": "does not begin with #!",
		strings.Repeat("#", sbatch.MaxScript) + "#": "larger than",
	} {
		_, _, err := sbatch.Read("job.sh", text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// The command line comes before the script, and says so where it is wrong.
func TestCommandLineComesFirst(t *testing.T) {
	t.Parallel()
	m, err := made("#SBATCH -J script -a 1-3", sbatch.Given{Name: "job-name", Value: "line"})
	if err != nil || m.Document["name"] != "line" {
		t.Errorf("%v, %v", m, err)
	}
	_, err = made("#SBATCH -n 1", sbatch.Given{Name: "ntasks", Value: "2"})
	if err == nil || !strings.HasPrefix(err.Error(), "--ntasks: ") {
		t.Errorf("%v", err)
	}
}

func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string][2]string{
		"":                              {"slurm-job.out", ""},
		"#SBATCH -a 4-9":                {"slurm-job_7.out", ""},
		"#SBATCH -a 4-9 -o %x.%j":       {"job.sh.job.3", ""},
		"#SBATCH -e %A-%a.err -o 100%%": {"100%", "job-7.err"},
	} {
		m, err := made(lines)
		if err != nil {
			t.Fatal(err)
		}
		output, failed, err := m.Names.Files("job", 3, "7")
		if err != nil || output != want[0] || failed != want[1] {
			t.Errorf("%s: %q and %q, %v", lines, output, failed, err)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	m, err := made("#SBATCH -c 2 -n 1 --mem=2G -a 3-9:3 --export=HOME,A=b=c")
	if err != nil {
		t.Fatal(err)
	}
	env, _ := m.Document["env"].(map[string]string)
	for name, want := range map[string]string{
		"SLURM_JOB_ID": "{{job}}.{{index}}", "SLURM_ARRAY_JOB_ID": "{{job}}",
		"SLURM_ARRAY_TASK_ID": "{{item}}", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "9",
		"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_STEP": "3", "SLURM_CPUS_PER_TASK": "2",
		"SLURM_JOB_NAME": "job.sh", "SLURM_SUBMIT_DIR": "/home/me", "SLURM_NTASKS": "1",
		"SLURM_MEM_PER_NODE": "2048", "SLURM_JOB_CPUS_PER_NODE": "2", "SLURM_TASKS_PER_NODE": "1",
		"HOME": "of HOME", "A": "b=c",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
}

// What Slurm 22.05 sets only if an option is given, and the step that it tells of a list.
func TestVariablesAreThoseOfSlurm(t *testing.T) {
	t.Parallel()
	m, err := made("")
	if err != nil {
		t.Fatal(err)
	}
	env, _ := m.Document["env"].(map[string]string)
	for _, name := range []string{
		"SLURM_CPUS_PER_TASK", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_MEM_PER_NODE",
		"SLURM_MEM_PER_CPU", "SLURM_ARRAY_TASK_ID",
	} {
		if value, set := env[name]; set {
			t.Errorf("%s is %q and was not asked for", name, value)
		}
	}
	for list, want := range map[string]string{
		"1,3,5": "1", "10-20:5": "5", "31-33,37-39:2": "2", "50-54:2,60": "2",
		"70-76:3,80-81:1": "3", "1-5:2,11-20:3": "2", "0-9%2": "1", "0-8:4%2": "4",
	} {
		if m, err = made("#SBATCH -a " + list); err != nil {
			t.Fatal(err)
		}
		env, _ = m.Document["env"].(map[string]string)
		if step := env["SLURM_ARRAY_TASK_STEP"]; step != want {
			t.Errorf("the step of %s is %s, want %s", list, step, want)
		}
	}
}

// Whatever a script says: what is made of it is a job file, or its mistakes are named.
func FuzzScript(f *testing.F) {
	f.Add("#!/bin/sh\n#SBATCH -J a -t 1-2:3 --mem=4G -c2\n" +
		"#SBATCH -a 0-9%2,4 -d afterok:aaaaaaaaaaaaaaaa\n")
	f.Add("#!/usr/bin/env -S python3\r\n#SBATCH --begin=now+1day -e 'e %x' -o \"%A\" -i in.%a\r\n")
	f.Add("#!x\n#SBATCH --export=A=1,B --gres=gpu:1 x -n 1 # -n 2")
	now := time.Date(2026, 5, 1, 15, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		script, problems, err := sbatch.Read("job.sh", text)
		if err != nil {
			return
		}
		for _, p := range problems {
			if p.Line < 2 || p.Remedy == "" {
				t.Fatalf("a mistake without a place or a remedy: %+v", p)
			}
		}
		m, err := sbatch.Batch{
			Script: script, File: "/tmp/job.sh", Name: "job",
			Given:    sbatch.Merge(script.Given, nil),
			Variable: func(string) (string, bool) { return "x", true },
		}.Job()
		if err != nil {
			return
		}
		data, err := json.Marshal(m.Document)
		if err != nil {
			t.Fatal(err)
		}
		file, err := jobfile.Parse(data, jobfile.Options{Now: now})
		if err != nil {
			return // a job file says more of it
		}
		if items, _ := m.Document["items"].([]string); len(file.Items) != len(items) ||
			!slices.Contains(file.Spec.Args, "/batch/script") {
			t.Fatalf("%d items of %d; command %q", len(file.Items), len(items), file.Spec.Args)
		}
	})
}

// What is wrong with a field of the job file is said of the option that set it.
func TestFieldsNameTheirOption(t *testing.T) {
	t.Parallel()
	given := map[string]sbatch.Given{}
	for line, name := range []string{
		"mem", "cpus-per-task", "time", "begin", "deadline", "dependency", "array", "job-name",
		"export", "input",
	} {
		given[name] = sbatch.Given{File: "job.sh", Line: line + 2, Name: name}
	}
	b := sbatch.Batch{Given: given, Inputs: []string{"data"}, Returns: []string{"result"}}
	for field, want := range map[string]string{
		"resources.memory": "job.sh:2: --mem", "resources.cpus": "job.sh:3: --cpus-per-task",
		"runtime": "job.sh:4: --time", "limit": "job.sh:4: --time",
		"start.notBefore": "job.sh:5: --begin", "deadline": "job.sh:6: --deadline",
		"after[1]": "job.sh:7: --dependency", "items[3]": "job.sh:8: --array",
		"name": "job.sh:9: --job-name", "env.A": "job.sh:10: --export",
		"inputs[1].from": "--send", "inputs[2].from": "job.sh:11: --input",
		"outputs[0].to": "--return",
	} {
		if g, known := b.Option(field); !known || g.Where()+"--"+g.Name != want {
			t.Errorf("%s is of %s--%s, want %s", field, g.Where(), g.Name, want)
		}
	}
	for _, field := range []string{"inputs[0].from", "command", "names", "resources"} {
		if g, known := b.Option(field); known {
			t.Errorf("%s is of --%s, want none", field, g.Name)
		}
	}
}
