package guides

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/scripttest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

// reader is the user of a prompt without a name.
const reader = "you"

// TestCommandsRun runs what the documents show, and compares what is printed.
func TestCommandsRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts agents")
	}
	scripts, record := t.TempDir(), t.TempDir()
	documented := map[string][]command{}
	for _, name := range documents() {
		commands, rest := parse(read(t, name))
		documented[name] = commands
		script := compose(commands, rest, filepath.Join(record, flat(name)), *update)
		file := filepath.Join(scripts, flat(name)+".txtar")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		t.Cleanup(func() { rewriteAll(t, documented, record) })
	}
	scripttest.Run(t, scripts)
}

func flat(name string) string {
	return strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "-")
}

// compose makes one script of a document's commands. With recording, outputs are
// stored as files with this prefix and a number instead of being compared.
func compose(commands []command, rest []string, record string, recording bool) string {
	var b, files strings.Builder
	known := map[string]bool{}
	user := ""
	for i, c := range commands {
		if who := cmp.Or(c.user, reader); who != user {
			user = who
			fmt.Fprintf(&b, "user %s\n", user)
		}
		for _, line := range c.hidden {
			fmt.Fprintln(&b, line)
		}
		fmt.Fprintf(&b, "# line %d: %s\n", c.line, c.text)
		if i > 0 && commands[i-1].wrote(c) {
			known[strings.TrimPrefix(c.text, "cat ")] = true
		}
		switch file := strings.TrimPrefix(c.text, "cat "); {
		case file != c.text && !known[file] && !strings.Contains(file, " "):
			known[file] = true
			fmt.Fprintf(&files, "-- %s --\n%s\n", file, strings.Join(c.output, "\n"))
		case c.text == "siteagent run":
			b.WriteString("agent start\n")
		case runs(c):
			b.WriteString(runLine(c.text))
			if recording {
				fmt.Fprintf(&b, "exec cp last %s\n", outputFile(record, i))
				break
			}
			if len(c.output) > 0 {
				fmt.Fprintf(&b, "like stdout want-%d\n", i)
				fmt.Fprintf(&files, "-- want-%d --\n%s\n", i, loosenAll(c.output))
			}
		}
		if c.text == "siteagent stop" {
			b.WriteString("agent wait\n")
		}
	}
	for _, line := range rest {
		fmt.Fprintln(&b, line)
	}
	return b.String() + files.String()
}

// wrote reports whether the next command reads what this one has written: it stands right below.
func (c command) wrote(next command) bool {
	return c.program() == "submit" && next.program() == "cat" &&
		next.line == c.line+1+len(c.output)
}

func outputFile(record string, i int) string { return fmt.Sprintf("%s-%d", record, i) }

func loosenAll(lines []string) string {
	loose := make([]string, len(lines))
	for i, line := range lines {
		loose[i] = loosen(line)
	}
	return strings.Join(loose, "\n")
}

// runs says whether a command is run: our own programs, cat of what they wrote, and those that
// ask an agent over HTTP, curl and Snakemake.
func runs(c command) bool {
	ours := []string{"siteagent", "submit", "gridsim", "cat", "curl"}
	return slices.Contains(ours, c.program()) || strings.Contains(c.text, " snakemake --tes ")
}

// runLine runs a command as in a terminal, where both outputs are one, and remembers
// the token and the job that it names.
func runLine(text string) string {
	text = regexp.MustCompile(`\b(TOKEN|ID)\b`).ReplaceAllString(text, "$$$1")
	text = strings.ReplaceAll(text, "127.0.0.1:4800", "127.0.0.1:$PORT") // a hidden line sets it
	text = strings.ReplaceAll(text, "'", "''")                           // as testscript quotes
	line := "exec sh -c '{ " + text + "; } >last 2>&1; c=$?; cat last; exit $c'\n"
	if strings.HasPrefix(text, "siteagent invite") ||
		strings.HasPrefix(text, "siteagent domain invite") {
		line += keep("TOKEN", `mrs(link)?1\.[A-Za-z0-9_-]+`)
	}
	if strings.HasPrefix(text, "submit ") || strings.HasPrefix(text, "curl ") {
		line += keep("ID", `\b[a-z2-7]{16}\b`)
	}
	return line
}

// keep sets a variable to the first match in the last output, if there is one.
func keep(name, pattern string) string {
	return fmt.Sprintf("exec sh -c '"+
		`grep -oEm1 "%s" last | head -n1 | grep . || printf %%s "$%s"`+"'\n"+
		"keep %s\nstdin last\nexec cat\n", pattern, name, name)
}

func TestCompose(t *testing.T) {
	commands := []command{
		{line: 3, text: "cat job.yaml", output: []string{"name: pi"}},
		{
			line: 5, text: "submit job job.yaml",
			output: []string{"job mfrgg43foq5dkmru"}, hidden: []string{"mesh"},
		},
		{line: 8, user: "attic", text: "siteagent run"},
		{line: 9, user: "attic", text: "siteagent stop"},
		{line: 10, text: "go install ./cmd/..."},
		{line: 12, text: "submit get ID", output: []string{"one file"}},
		{line: 14, text: "cat result", output: []string{"42"}},
	}
	script := compose(commands, []string{"agent stop"}, "/record/x", false)
	for _, want := range []string{
		"user you\n# line 3: cat job.yaml\nmesh\n", "submit job job.yaml; } >last", "like stdout want-1",
		"user attic\n# line 8: siteagent run\nagent start\n", "agent wait", "user you\n# line 10",
		"{ cat result; } >last", "like stdout want-6\n",
		"agent stop\n-- job.yaml --\nname: pi\n", "-- want-1 --\njob <id>\n",
	} {
		if !strings.Contains(script, want) {
			t.Errorf("no %q in the script:\n%s", want, script)
		}
	}
}

// TestCommandsExist asks the programs for the help of each command shown, so that a
// renamed command or flag is noticed where agents cannot run, too.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	place, err := localmesh.MakePlace("mrs-guides-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if failed := place.Remove(); failed != nil {
			t.Error(failed)
		}
	})
	programs := map[string]string{}
	for _, name := range []string{"siteagent", "submit", "gridsim"} {
		if programs[name], err = place.Build(t.Context(), name, "cmd/"+name, nil); err != nil {
			t.Fatal(err)
		}
	}
	helps := map[string]string{}
	for _, name := range documents() {
		commands, _ := parse(read(t, name))
		for _, c := range append(commands, examples(read(t, name))...) {
			for _, problem := range check(t, programs, helps, c) {
				t.Errorf("%s:%d: %s: %s", name, c.line, c.text, problem)
			}
		}
	}
}

// check returns what a command line asks for and does not exist.
func check(t *testing.T, programs, helps map[string]string, c command) (problems []string) {
	t.Helper()
	unquoted := regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(c.text, "Q")
	for part := range strings.SplitSeq(unquoted, "|") {
		words := strings.Fields(part)
		if len(words) < 2 {
			continue
		}
		program, ours := programs[words[0]]
		switch {
		case words[0] == "go":
			problems = append(problems, checkPaths(words)...)
		case ours:
			help := helpOf(t, program, helps, words)
			if words[0] == "siteagent" {
				help += settingFlags(t, program, helps)
			}
			problems = append(problems, checkFlags(help, words[1:])...)
		}
	}
	return problems
}

// checkPaths wants the packages that go is given.
func checkPaths(words []string) (problems []string) {
	for _, word := range words {
		dir := strings.TrimSuffix(word, "/...")
		if !strings.HasPrefix(word, "./") || dir == "." {
			continue
		}
		info, err := os.Stat(filepath.Join(repositoryRoot, path.Clean(dir)))
		if err != nil || !info.IsDir() {
			problems = append(problems, word+" does not exist")
		}
	}
	return problems
}

// helpOf asks the program for the help of a verb; a group's verb has two words.
func helpOf(t *testing.T, program string, helps map[string]string, words []string) string {
	t.Helper()
	verb := []string{words[1]}
	group := slices.Contains([]string{"config", "domain", "workload"}, words[1]) ||
		strings.HasPrefix(strings.Join(words, " "), "submit sign key ") // sign takes files, too
	if group && len(words) > 2 && !strings.HasPrefix(words[2], "-") {
		verb = append(verb, words[2])
	}
	if words[1] == "help" || strings.HasPrefix(words[1], "-") {
		return ""
	}
	key := words[0] + " " + strings.Join(verb, " ")
	if _, known := helps[key]; !known {
		out, err := exec.CommandContext(t.Context(), program, append(verb, "--help")...).CombinedOutput()
		// The help of a command names it; that of the whole program names all.
		if err != nil || !strings.Contains(string(out), "Usage:\n  "+key) {
			out = []byte("no command " + key)
		}
		helps[key] = string(out)
	}
	return helps[key]
}

// settingPattern finds the settings in the help that lists them.
var settingPattern = regexp.MustCompile(`(?m)^[* ] ([a-z][a-z.-]*)  `)

// settingFlags are the settings of an agent as flags, which all its commands take.
func settingFlags(t *testing.T, siteagent string, helps map[string]string) string {
	t.Helper()
	const key = "siteagent help settings"
	if _, known := helps[key]; !known {
		out, err := exec.CommandContext(t.Context(), siteagent, "help", "settings").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range settingPattern.FindAllStringSubmatch(string(out), -1) {
			helps[key] += "\n--" + strings.ReplaceAll(match[1], ".", "-") + "\n"
		}
	}
	return helps[key]
}

func checkFlags(help string, words []string) (problems []string) {
	if strings.HasPrefix(help, "no command") {
		return []string{help}
	}
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		if name == "--" {
			break
		}
		if strings.HasPrefix(name, "-") && help != "" &&
			!regexp.MustCompile(`(?m)(^|[\s,])`+regexp.QuoteMeta(name)+`([\s,=]|$)`).MatchString(help) {
			problems = append(problems, "there is no flag "+name)
		}
	}
	return problems
}

// rewriteAll writes the outputs that were recorded into the documents.
func rewriteAll(t *testing.T, documented map[string][]command, record string) {
	t.Helper()
	for name, commands := range documented {
		outputs := map[int]string{}
		for i, c := range commands {
			text, err := os.ReadFile(outputFile(filepath.Join(record, flat(name)), i))
			if err == nil && c.complete() && len(c.output) > 0 {
				outputs[c.line] = tidy(string(text))
			}
		}
		file := filepath.Join(repositoryRoot, filepath.FromSlash(name))
		text := rewrite(read(t, name), commands, outputs)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// homePattern finds the homes of a script's users.
var homePattern = regexp.MustCompile(`/[^\s:"]*/(script-[\w-]+|mrs\d+)/`)

// tidy replaces the directories of the test by those of a reader.
func tidy(output string) string {
	return strings.TrimRight(homePattern.ReplaceAllString(output, "/home/"), "\n")
}

// rewrite replaces the outputs below the commands on these lines.
func rewrite(text string, commands []command, outputs map[int]string) string {
	lines := strings.Split(text, "\n")
	for _, c := range slices.Backward(commands) {
		if output, recorded := outputs[c.line]; recorded {
			lines = slices.Replace(lines, c.line, c.line+len(c.output), strings.Split(output, "\n")...)
		}
	}
	return strings.Join(lines, "\n")
}

func TestRewrite(t *testing.T) {
	text := "a\n```console\n$ submit list\nold\nlines\n$ submit version\nv1\n```\nb\n"
	commands, _ := parse(text)
	got := rewrite(text, commands, map[int]string{3: "new"})
	if want := "a\n```console\n$ submit list\nnew\n$ submit version\nv1\n```\nb\n"; got != want {
		t.Errorf("rewritten:\n%s\nwant:\n%s", got, want)
	}
}
