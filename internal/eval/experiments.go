package eval

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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

// LoadExperiment reads an experiment that comes with the program, or a file.
func LoadExperiment(name string) (scenario.Experiment, error) {
	all := BuiltIns()
	var text string
	if at := slices.IndexFunc(all, func(b BuiltIn) bool { return b.Name == name }); at >= 0 {
		text = all[at].Text
	} else {
		file, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return scenario.Experiment{}, fmt.Errorf("%w: no experiment and no file is called %q: "+
				"gridsim list shows the experiments", ErrUsage, name)
		}
		if err != nil {
			return scenario.Experiment{}, err
		}
		text = string(file)
	}
	if !scenario.IsExperiment(text) {
		return scenario.Experiment{}, fmt.Errorf("%w: %s is no experiment: it has no line that "+
			"begins with grid or resources (gridsim play shows a single story)", ErrUsage, name)
	}
	e, err := scenario.ParseExperiment(text)
	if err != nil {
		return scenario.Experiment{}, fmt.Errorf("%s:\n%w", name, err)
	}
	return e, nil
}
