package eval

import (
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// RuleOf says which line of an experiment a strategy of a result is from: strategies of one line
// differ in their interval, or in their threshold.
type RuleOf struct {
	Name, Line string
	Interval   time.Duration // 0: it has none
	Share      float64       // the threshold eta; below 0: it has none
}

// noShare is the threshold of a rule that has none.
const noShare = -1

// point is the interval in seconds, or the threshold: rules of two lines are compared at the same.
func (r RuleOf) point() float64 { return max(r.Interval.Seconds(), r.Share) }

// rulesOf lists the strategies that were played, in their order.
func (f *caseResults) rulesOf() []RuleOf {
	var rules []RuleOf
	for _, c := range f.cells {
		if !slices.Contains(rules, c.rule) {
			rules = append(rules, c.rule)
		}
	}
	return rules
}

// SettingOf says what differs between the settings of a result.
type SettingOf struct {
	Name    string // see InSetting
	Law     string // of lifetimes
	Reading string // of the run factor; empty: there is none
	Value   string // the run factor; where the mean time up is named, the availability
}

// settingsOf says it of each setting of an experiment, in their order.
func settingsOf(settings []scenario.FailureSetting) []SettingOf {
	var all []SettingOf
	for _, s := range settings {
		one := SettingOf{Name: s.Name, Law: s.Law}
		number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
		switch {
		case s.Factor == 0:
			one.Value = "availability " + number(s.Availability)
		case s.Times:
			one.Reading = "longest run times factor"
			one.Value = "run factor " + number(s.Factor)
		default:
			one.Reading = "longest run over factor"
			one.Value = "run factor " + number(s.Factor)
		}
		all = append(all, one)
	}
	return all
}
