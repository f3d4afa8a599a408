package eval

import (
	"math"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// forecasts counts the forecasts of a run, at instants that are spread evenly over it.
const forecasts = 50

// forecastStep is the step of the thesis' equations, in seconds: a minute.
const forecastStep = 60

// forecast says again and again how many sites will be up a while later, and counts by how many
// that was off. It knows what the thesis' equations take: how long each site is up and down on
// average, and how long it has been as it is. P and Q are 0.
func forecast(e scenario.Experiment, s played, seed uint64) (map[string]float64, error) {
	lives, err := drawLives(*s.setting, e.Grid.Sites, seed)
	if err != nil {
		return nil, err
	}
	ahead, every := s.Ahead.Seconds(), s.setting.End.Seconds()/forecasts
	var past []avail.ForecastPair // without e_T
	within, offs, bias := 0, 0.0, 0.0
	for k := range forecasts {
		at := float64(k) * every
		known := min(int(max(at-ahead, 0)/every), len(past)) // of those before, what came of them
		plain, err := forecastOf(s, lives, at)
		if err != nil {
			return nil, err
		}
		errorTerm := 0.0
		if s.By == "equation" || s.By == "nodes" {
			if errorTerm, err = avail.ForecastError(past[:known]); err != nil {
				return nil, err
			}
		}
		actual := upAt(lives, at+ahead)
		past = append(past, avail.ForecastPair{Predicted: plain, Actual: actual})
		off := plain + errorTerm - actual
		if math.Abs(off) <= 2 {
			within++
		}
		offs, bias = offs+math.Abs(off), bias+off
	}
	return map[string]float64{
		"within2": float64(within) / forecasts, "off": offs / forecasts, "bias": bias / forecasts,
	}, nil
}

// forecastOf forecasts once, without the error term.
func forecastOf(s played, lives []siteLife, at float64) (float64, error) {
	switch s.By {
	case "unchanged":
		return upAt(lives, at), nil
	case "average":
		return s.setting.Availability * float64(len(lives)), nil
	}
	var up []avail.UpNode
	var down []avail.DownNode
	for _, l := range lives {
		age := int64((at - l.since(at)) / forecastStep)
		if l.isUp(at) {
			up = append(up, avail.UpNode{FailuresPerStep: forecastStep / l.turns.Up.Mean(), UpSteps: age})
		} else {
			down = append(down, avail.DownNode{
				RecoveriesPerStep: forecastStep / l.turns.Down.Mean(), DownSteps: age,
			})
		}
	}
	f, err := avail.CapacityForecast(up, down, int64(s.Ahead.Seconds()/forecastStep), 0)
	if s.By == "nodes" {
		return f.Mean, err
	}
	return f.Paper, err
}

// upAt counts the sites that are up at an instant.
func upAt(lives []siteLife, at float64) float64 {
	n := 0.0
	for _, l := range lives {
		if l.isUp(at) {
			n++
		}
	}
	return n
}
