package eval

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

//go:embed experiments
var builtIn embed.FS

// BuiltIn is an experiment that comes with the program.
type BuiltIn struct {
	Name  string
	Title string // the first sentence of its text
	Text  string
}

// BuiltIns lists them by name.
func BuiltIns() []BuiltIn {
	files, err := fs.Glob(builtIn, "experiments/*.txt")
	if err != nil {
		panic(err) // the pattern is right
	}
	var all []BuiltIn
	for _, file := range files {
		text, err := builtIn.ReadFile(file)
		if err != nil {
			panic(err) // it was just listed
		}
		name := strings.TrimSuffix(path.Base(file), ".txt")
		all = append(all, BuiltIn{Name: name, Title: titleOf(string(text)), Text: string(text)})
	}
	slices.SortFunc(all, func(a, b BuiltIn) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// titleOf is the first sentence of the comment that a text begins with.
func titleOf(text string) string {
	var title []string
	for raw := range strings.Lines(text) {
		comment, is := strings.CutPrefix(raw, "#")
		if !is {
			break
		}
		title = append(title, strings.TrimSpace(comment))
	}
	first, _, _ := strings.Cut(strings.Join(title, " "), ". ")
	return strings.TrimSuffix(first, ".")
}

// Source is the text of an experiment, and where it is from.
type Source struct {
	Name string // as it was asked for
	Text string
	Dir  string // in which its logs are looked for
}

// OpenExperiment reads an experiment that comes with the program, or a file. It does not look
// at the text.
func OpenExperiment(name string) (Source, error) {
	all := BuiltIns()
	if at := slices.IndexFunc(all, func(b BuiltIn) bool { return b.Name == name }); at >= 0 {
		return Source{Name: name, Text: all[at].Text}, nil
	}
	file, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Source{}, fmt.Errorf("%w: no experiment and no file is called %q: "+
			"gridsim list shows the experiments", ErrUsage, name)
	}
	if err != nil {
		return Source{}, err
	}
	if !scenario.IsExperiment(string(file)) {
		return Source{}, fmt.Errorf("%w: %s is no experiment: it has no line that "+
			"begins with grid, resources or machines (gridsim play shows a single story)",
			ErrUsage, name)
	}
	return Source{Name: name, Text: string(file), Dir: filepath.Dir(name)}, nil
}

func (s Source) parse() (scenario.Experiment, error) {
	e, err := scenario.ParseExperiment(s.Text)
	if err != nil {
		return scenario.Experiment{}, fmt.Errorf("%s:\n%w", s.Name, err)
	}
	return e, nil
}

// With is the experiment in which a key has a value. A log that is named so is looked for where
// the command was given, not beside the experiment.
func (s Source) With(key scenario.Setting, value string) (Source, error) {
	if key.Word == "jobs" && key.Key == "log" && s.Dir != "" && !filepath.IsAbs(value) {
		value = seenFrom(s.Dir, value)
	}
	text, err := key.Apply(s.Text, value)
	if err == nil {
		_, err = scenario.ParseExperiment(text)
	}
	if err != nil {
		return s, fmt.Errorf("%w: --set %s=%s: %w", ErrUsage, key.Path(), value, err)
	}
	s.Text = text
	return s, nil
}

// seenFrom is the name of a file for one who stands in a directory.
func seenFrom(dir, file string) string {
	from, err := filepath.Abs(dir)
	if err != nil {
		return file
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	there, err := filepath.Rel(from, to)
	if err != nil {
		return file
	}
	return there
}

// Compare is the comparison that the experiment asks for.
func (s Source) Compare() (*Compare, error) {
	e, err := s.parse()
	if err != nil {
		return nil, err
	}
	return &Compare{Name: s.Name, Experiment: e, Dir: s.Dir, First: 1}, nil
}
