package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// Sweep is the same experiment with one or two of its values varied.
type Sweep struct {
	Source   Source
	Settings []scenario.Setting // those with several values are varied, the first one slowest
	First    uint64
	Seeds    int // of each combination; 0: as many as the experiment says
	Only     []string
	Workers  int       // 0: one for each processor
	Progress func(int) // see Compare
	points   []SweepPoint
	compares []*Compare
}

// SweepResult holds the measures of a sweep.
type SweepResult struct {
	Scenario string       `json:"scenario"`
	Varied   []Varied     `json:"varied"`
	Points   []SweepPoint `json:"points"` // one for each combination of the values, in their order
}

// Varied is a key that was varied.
type Varied struct {
	Key    string   `json:"key"` // jobs.load, strategy:MRS.grain
	Values []string `json:"values"`
}

// SweepPoint is an experiment with one value for each key that is varied.
type SweepPoint struct {
	Set map[string]string `json:"set"` // by key
	CompareResult
}

// mostPoints bounds the combinations of a sweep: nobody reads more.
const mostPoints = 1000

// Prepare reads the experiment with all its values. Errors that are the asker's say ErrUsage.
func (s *Sweep) Prepare() error {
	varied, points := s.varied(), 1
	for _, v := range varied {
		points *= len(v.Values)
	}
	switch {
	case len(varied) == 0:
		return fmt.Errorf("%w: --set: want a key with several values, such as --set jobs.load=.5,.6,.7",
			ErrUsage)
	case len(varied) > 2:
		return fmt.Errorf("%w: --set: %d keys have several values: want one or two",
			ErrUsage, len(varied))
	case points > mostPoints:
		return fmt.Errorf("%w: --set: %d combinations: want at most %d", ErrUsage, points, mostPoints)
	}
	seen := make(map[string]bool)
	for _, key := range s.Settings {
		if seen[key.Path()] {
			return fmt.Errorf("%w: --set %s: given twice: write all its values behind one =",
				ErrUsage, key.Path())
		}
		seen[key.Path()] = true
	}
	s.points, s.compares = nil, nil
	return s.expand(s.Source, s.Settings, nil)
}

// varied are the keys with several values.
func (s *Sweep) varied() []Varied {
	var varied []Varied
	for _, key := range s.Settings {
		if len(key.Values) > 1 {
			varied = append(varied, Varied{Key: key.Path(), Values: key.Values})
		}
	}
	return varied
}

// expand adds all combinations of the settings to those that were made.
func (s *Sweep) expand(source Source, rest []scenario.Setting, set []string) error {
	if len(rest) == 0 {
		c, err := source.Compare()
		if err != nil {
			return err
		}
		if c.Experiment.Failing != nil {
			return fmt.Errorf("%w: %s has cases of its own: write a line resources for each",
				ErrUsage, s.Source.Name)
		}
		c.First, c.Seeds, c.Only = s.First, s.Seeds, s.Only
		point := SweepPoint{Set: make(map[string]string)}
		for i, v := range s.varied() {
			point.Set[v.Key] = set[i]
		}
		s.points, s.compares = append(s.points, point), append(s.compares, c)
		return nil
	}
	key := rest[0]
	for _, value := range key.Values {
		changed, err := source.With(key, value)
		if err != nil {
			return err
		}
		chosen := set
		if len(key.Values) > 1 {
			chosen = append(slices.Clip(set), value)
		}
		if err := s.expand(changed, rest[1:], chosen); err != nil {
			return err
		}
	}
	return nil
}

// Runs counts the runs that Run plays. Prepare comes first.
func (s *Sweep) Runs() int {
	runs := 0
	for _, c := range s.compares {
		runs += c.Runs()
	}
	return runs
}

// Measures are those of the experiment, in the order of its tables. Prepare comes first.
func (s *Sweep) Measures() []string {
	if c := s.compares[0]; c.Experiment.InCases() {
		measures, _ := c.measuresInCases()
		return measures
	}
	return scenario.ExperimentMeasures()
}

// namesInCases are the names of all strategies in all cases.
func namesInCases(r CompareResult) []string {
	var names []string
	for _, in := range r.Cases {
		for _, name := range r.Names {
			names = append(names, inCase(name, in))
		}
	}
	return names
}

// Beside is the strategy that another one is compared with: the first one, of its case if there
// are cases.
func (p SweepPoint) Beside(name string) string {
	at := strings.LastIndex(name, "@")
	if len(p.Cases) == 0 || at < 0 {
		return p.Names[0]
	}
	return p.Names[slices.IndexFunc(p.Names, func(o string) bool {
		return strings.HasSuffix(o, name[at:])
	})]
}

// Run plays all combinations. Prepare comes first.
func (s *Sweep) Run(ctx context.Context) (SweepResult, error) {
	results, err := runAll(ctx, s.compares, s.Workers, s.Progress)
	if err != nil {
		return SweepResult{}, err
	}
	for i, r := range results {
		if s.points[i].CompareResult = r; len(r.Cases) > 0 {
			s.points[i].Names = namesInCases(r)
		}
	}
	return SweepResult{Scenario: s.Source.Name, Varied: s.varied(), Points: s.points}, nil
}
