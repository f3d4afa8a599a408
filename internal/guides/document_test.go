package guides

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repositoryRoot = "../.."

// documents are those whose commands are tested.
func documents() []string {
	return []string{
		"README.md", "docs/share.md", "docs/submit.md", "docs/operating.md", "docs/simulate.md",
		"docs/from-parallel.md", "docs/from-slurm.md", "docs/tes.md",
		"docs/snakemake.md",
	}
}

// command is one that a document shows.
type command struct {
	line   int    // in the document, from 1
	user   string // of the prompt; empty for the reader
	text   string
	output []string
	hidden []string // script lines that stood before it
}

var promptPattern = regexp.MustCompile(`^([a-z][a-z0-9-]*)?\$ (.+)$`)

// parse finds the commands of a document in their order, and the script lines that
// follow the last of them.
func parse(text string) (commands []command, rest []string) {
	var inside, script bool
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		prompt := promptPattern.FindStringSubmatch(line)
		switch {
		case line == "<!-- script":
			script = true
		case script && line == "-->":
			script = false
		case script:
			rest = append(rest, line)
		case line == "```console":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && prompt != nil:
			commands = append(commands, command{line: n, user: prompt[1], text: prompt[2], hidden: rest})
			rest = nil
		case inside && len(commands) > 0:
			last := &commands[len(commands)-1]
			last.output = append(last.output, line)
		}
	}
	return commands, rest
}

// program is the first word of a command.
func (c command) program() string { return strings.Fields(c.text)[0] }

// complete says that all of the output is shown.
func (c command) complete() bool {
	return !slices.Contains(c.output, "...")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse(t *testing.T) {
	commands, rest := parse(strings.Join([]string{
		"# A guide", "$ not a command", "<!-- script", "module a.wasm", "-->",
		"```console", "$ siteagent init --name attic", "attic", "study$ submit list", "```",
		"```sh", "$ not one either", "```", "<!-- script", "agent kill", "-->",
	}, "\n"))
	shown := examples("```sh\nsubmit list  # all\n```\nno\n")
	if len(shown) != 1 || shown[0].text != "submit list" {
		t.Errorf("examples %+v", shown)
	}
	if len(commands) != 2 || len(rest) != 1 {
		t.Fatalf("commands %+v, rest %q", commands, rest)
	}
	first, second := commands[0], commands[1]
	if first.line != 7 || first.user != "" || first.text != "siteagent init --name attic" ||
		len(first.output) != 1 || len(first.hidden) != 1 {
		t.Errorf("the first command is %+v", first)
	}
	if second.user != "study" || second.program() != "submit" || second.output != nil {
		t.Errorf("the second command is %+v", second)
	}
}

// examples finds the lines of blocks that are fenced with "sh": they are not run, but
// what they name must exist.
func examples(text string) (lines []command) {
	inside := false
	scanner := bufio.NewScanner(strings.NewReader(text))
	for n := 1; scanner.Scan(); n++ {
		line, _, _ := strings.Cut(scanner.Text(), " # ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && strings.TrimSpace(line) != "":
			lines = append(lines, command{line: n, text: strings.TrimSpace(line)})
		}
	}
	return lines
}
