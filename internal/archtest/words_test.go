package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const nomenclature = "docs/nomenclature.md"

// TestWords refuses the phrases that docs/nomenclature.md gives up. Markdown has
// none; of each directory's Go the ratchet allows what it had, and no more.
func TestWords(t *testing.T) {
	given := readGivenUp(t, repositoryRoot)
	refuse(t, checkMarkdown(t, repositoryRoot, given.findAll))
	hold(t, "phrases", checkGoWords(mustRead(t, repositoryRoot), given))
}

func TestWordsRefuse(t *testing.T) {
	const root = "testdata/words"
	given := readGivenUp(t, root)
	repo := mustRead(t, root)
	compareWithMarks(t, repo, checkGoWords(repo, given))
	var got []string
	for _, f := range sorted(checkMarkdown(t, root, given.findAll)) {
		got = append(got, f.String())
	}
	want := []string{
		`README.md:3: "green cheese" is given up: say lunar regolith`,
		`README.md:7: "blue moon" is given up: say seldom`,
		`README.md:8: "green cheese" is given up: say lunar regolith`,
		`docs/nomenclature.md:4: "blue moon" is given up: say seldom`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNomenclatureDefinesOnce wants one definition for each word.
func TestNomenclatureDefinesOnce(t *testing.T) {
	refuse(t, checkDefinitions(nomenclature, readText(t, repositoryRoot, nomenclature)))
}

func TestNomenclatureDefinesOnceRefuses(t *testing.T) {
	found := checkDefinitions("n.md",
		"- **Tide**: water.\n- **Ebb, tide**: less of it.\n- **Flow**: more; **ebb** is above.\n")
	if len(found) != 1 || found[0].String() != `n.md:2: "tide" is defined on line 1 already` {
		t.Errorf("findings %v, want the second tide alone", found)
	}
}

// A definition is a word in bold, or several, and a colon.
var definitionPattern = regexp.MustCompile(`\*\*([^*]+)\*\*:`)

func checkDefinitions(file, text string) []finding {
	var found []finding
	first := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		for _, match := range definitionPattern.FindAllStringSubmatch(line, -1) {
			for word := range strings.SplitSeq(match[1], ",") {
				word = strings.ToLower(strings.TrimSpace(word))
				if at := first[word]; at > 0 {
					text := fmt.Sprintf("%q is defined on line %d already", word, at)
					found = append(found, finding{file, i + 1, text})
				}
				first[word] = i + 1
			}
		}
	}
	return found
}

// phrase is one way of saying something that is given up.
type phrase struct {
	pattern *regexp.Regexp
	text    string
	instead string
	screen  bool // refused only where a user reads it
}

type phrases []phrase

// A row of the table: phrases, what to say instead, and where.
var givenUpPattern = regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \| (everywhere|screen) \|$`)

// readGivenUp reads the nomenclature's table, the one list of phrases.
func readGivenUp(t *testing.T, root string) phrases {
	t.Helper()
	var given phrases
	for line := range strings.SplitSeq(readText(t, root, nomenclature), "\n") {
		match := givenUpPattern.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		for words := range strings.SplitSeq(match[1], ",") {
			text, instead := strings.TrimSpace(words), strings.TrimSpace(match[2])
			given = append(given, newPhrase(text, instead, match[3] == "screen"))
		}
	}
	if len(given) == 0 {
		t.Fatalf("%s has no table of phrases given up", nomenclature)
	}
	return given
}

func newPhrase(text, instead string, screen bool) phrase {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	// One line break counts as a space; an empty line parts two sentences.
	between := `(?:[ \t]+|[ \t]*\n[ \t]*)`
	return phrase{
		pattern: regexp.MustCompile(`(?i)\b` + strings.Join(words, between) + `\b`),
		text:    text, instead: instead, screen: screen,
	}
}

// findAll refuses the phrases in a text that begins on a line of a file.
func (given phrases) findAll(file string, line int, text string) []finding {
	return given.find(file, line, text, onScreen(file))
}

func (given phrases) find(file string, line int, text string, screen bool) []finding {
	var found []finding
	for _, p := range given {
		if p.screen && !screen {
			continue
		}
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			where := line + strings.Count(text[:at[0]], "\n")
			words := fmt.Sprintf("%q is given up: say %s", p.text, p.instead)
			found = append(found, finding{file, where, words})
		}
	}
	return found
}

// onScreen says which documents are written for users rather than for developers.
func onScreen(file string) bool {
	switch file {
	case "README.md", "docs/share.md", "docs/submit.md", "docs/operating.md",
		"docs/from-parallel.md", "docs/from-slurm.md", "docs/snakemake.md":
		return true
	}
	return strings.HasPrefix(file, "examples/")
}

func checkGoWords(repo *repository, given phrases) []finding {
	var found []finding
	for _, s := range repo.sources {
		if s.generated {
			continue
		}
		for _, group := range s.syntax.Comments {
			found = append(found, given.find(s.path, repo.line(group.Pos()), commentText(group), false)...)
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				found = append(found, given.find(s.path, repo.line(lit.Pos()), lit.Value, !s.test)...)
			}
			return true
		})
	}
	return found
}

// commentText is a group without its slashes, line by line as in the file.
func commentText(group *ast.CommentGroup) string {
	lines := make([]string, 0, len(group.List))
	for _, c := range group.List {
		lines = append(lines, strings.TrimPrefix(c.Text, "//"))
	}
	return strings.Join(lines, "\n")
}

// checkMarkdown calls a check for the prose of each Markdown file.
func checkMarkdown(
	t *testing.T, root string, check func(file string, line int, text string) []finding,
) []finding {
	t.Helper()
	var found []finding
	for _, file := range markdownFiles(t, root) {
		found = append(found, check(file, 1, prose(readText(t, root, file)))...)
	}
	return found
}

// markdownFiles are all but the changelog and its entries, which say what was said then.
func markdownFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		skipped := []string{"node_modules", "changes", "words"} // words is this test's own
		left := strings.HasPrefix(name, ".") || slices.Contains(skipped, name)
		if entry.IsDir() && file != root && left {
			return filepath.SkipDir
		}
		if filepath.Ext(name) == ".md" && name != "CHANGELOG.md" {
			rel, err := filepath.Rel(root, file)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("Markdown below %s: %d files, %v", root, len(files), err)
	}
	return files
}

var codeSpanPattern = regexp.MustCompile("`[^`\n]+`")

// prose blanks out what is quoted: code spans, blocks of output, and the rows of
// the table of phrases. Lines keep their numbers.
func prose(text string) string {
	lines := strings.Split(text, "\n")
	output := outputLines(lines)
	for i, line := range lines {
		if output[i] || givenUpPattern.MatchString(line) {
			lines[i] = ""
			continue
		}
		lines[i] = codeSpanPattern.ReplaceAllString(line, "`-`")
	}
	return strings.Join(lines, "\n")
}

// outputLines marks the lines of blocks that hold what a program printed: those
// fenced with "console" or "text".
func outputLines(lines []string) []bool {
	marks := make([]bool, len(lines))
	fence := ""
	for i, line := range lines {
		info, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && fence == "":
			fence = "```" + info
		case isFence:
			fence = ""
		default:
			marks[i] = fence == "```console" || fence == "```text"
		}
	}
	return marks
}

func readText(t *testing.T, root, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
