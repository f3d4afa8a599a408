package scenario

import (
	"slices"
	"strings"
	"time"
)

// Forecast is a strategy that places nothing: it forecasts how many sites will be up.
//
//	forecast name=EQ11 by=equation ahead=1h
type Forecast struct {
	By    string // see Forecasters; empty: the strategy is none
	Ahead time.Duration
}

// Forecasters lists what forecasts may go by.
//
//	equation   equation (11) of the thesis with its error term e_T
//	bare       the same without e_T
//	nodes      the sum of the nodes' own probabilities instead of that of sets, with e_T
//	unchanged  as many as now
//	average    as many as in the long run
func Forecasters() []string { return []string{"equation", "bare", "nodes", "unchanged", "average"} }

// ForecastMeasures lists what forecasts are compared by.
//
//	within2  the share of forecasts that are off by two sites at most
//	off      by how many sites a forecast is off, the mean
//	bias     by how many sites it is too high, the mean
func ForecastMeasures() []string { return []string{"within2", "off", "bias"} }

// AllMeasures lists the measures of all kinds of strategies.
func AllMeasures() []string { return append(ExperimentMeasures(), ForecastMeasures()...) }

func (p *experimentParser) forecast(l *line) {
	s := Strategy{Name: l.required("name", "a name"), Copies: 1, Grain: 1}
	p.checkName(l, s.Name)
	s.By = Forecasters()[l.oneOf("by", Forecasters()...)]
	s.Ahead = l.lasting("ahead", time.Hour)
	p.e.Strategies = append(p.e.Strategies, s)
}

// checkName wants a name that can stand in those of ratios and settings.
func (p *experimentParser) checkName(l *line, name string) {
	if strings.ContainsAny(name, "/@") || slices.ContainsFunc(p.e.Strategies, func(o Strategy) bool {
		return o.Name == name
	}) {
		l.fail("name", name, "a name without / or @ that no other strategy has", "")
	}
}

// sides reads what a claim is about: a ratio of two strategies, or one strategy's own measure.
func (l *line) sides() (strategy, beside string) {
	if own, has := l.text("strategy"); has {
		return own, ""
	}
	above, below, ok := strings.Cut(l.required("ratio", "NAME/NAME, or strategy=NAME"), "/")
	if !ok || below == "" {
		l.fail("ratio", above, "the names of two strategies, NAME/NAME", "")
	}
	return above, below
}
