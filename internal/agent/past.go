package agent

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// How often the past is evaluated, and how far ahead capacity is forecast.
const (
	learnEvery     = time.Hour
	forecastAhead  = time.Hour
	forecastMemory = 7 * 24 // forecasts that were checked, of which the mean error is taken
)

// outlook keeps the agent's forecasts. Only the goroutine of remember and, within the
// broker's loop, readers of errorTerm touch it.
type outlook struct {
	said      float64 // the last forecast, sites
	dueBoot   time.Duration
	pending   bool
	pairs     []avail.ForecastPair
	errorTerm float64
}

// reading is all clocks now.
func (a *Agent) reading() history.Reading {
	return history.Reading{
		Wall: a.clock.real().Round(0), Boot: time.Duration(a.clock.read()),
		Awake: time.Since(a.started), BootID: a.bootID,
	}
}

// openPast opens the account of what this site gave, and its history. Without one the site works,
// and learns from this run alone.
func (a *Agent) openPast() {
	a.openAccount()
	a.bootID = history.BootID()
	var err error
	if a.past, err = history.Open(a.cfg.StateDir, time.Local, a.reading(), a.log); err != nil {
		a.log.Warn("the history of this site cannot be used; what it learns is lost at its end",
			"error", err)
		a.cfg.Notices = append(slices.Clone(a.cfg.Notices), view.Notice{
			Text:   "the history of this site cannot be used; its z follows from this run alone",
			Cause:  err.Error(),
			Action: "look at " + history.FileName + " in the state directory",
		})
	}
}

// remember writes that the site lives, and learns from its past now and then, until the
// agent ends.
func (a *Agent) remember() {
	beat, tidy := time.NewTicker(history.Every), time.NewTicker(tidyEvery)
	defer beat.Stop()
	defer tidy.Stop()
	last := a.clock.now()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tidy.C:
			a.tidy()
			continue
		case <-beat.C:
		}
		now := a.reading()
		before := a.past.Known(now).Counts
		a.past.Beat(now)
		after := a.past.Known(now).Counts
		changed := before.Suspends != after.Suspends || before.Jumps != after.Jumps
		if changed || a.clock.now().Sub(last) >= learnEvery {
			last = a.clock.now()
			a.learn()
		}
		a.checkForecast(now)
	}
}

// tidyEvery is between two looks at the run record: in that time some hundred kilobytes come.
const tidyEvery = 10 * time.Second

// tidy shortens the run record when it has grown.
func (a *Agent) tidy() {
	if a.cfg.Tidy == nil {
		return
	}
	if err := a.cfg.Tidy(); err != nil {
		a.log.Warn("the run record cannot be made shorter", "error", err)
	}
}

// learn fits the model of the site's availability and tells its machine.
func (a *Agent) learn() {
	now := a.reading()
	known := a.past.Known(now)
	machine := a.clock.now()
	_, zone := now.Wall.In(time.Local).Zone()
	// The machine's clock does not follow a wall clock that is set: the zone does.
	off := math.Mod(
		(now.Wall.Sub(machine) + time.Duration(zone)*time.Second).Seconds(), avail.WeekSeconds,
	)
	model, err := avail.Fit(
		known.History, avail.DefaultPriors(), a.Terms().Closed, int(math.Round(off)),
	)
	if err != nil {
		a.reports.count("history_unusable")
		a.log.Warn("nothing can be learned from the history of this site", "error", err)
		return
	}
	a.site.tell(step.AvailabilityLearned{
		Model: model, Up: machine.Add(-known.Up), Free: machine.Add(-known.Free),
	})
}

// noteOwner records that the owner wants the machine back, or leaves it again: the
// site's availability ends or begins, and z takes that into account.
func (a *Agent) noteOwner(busy bool) {
	a.past.Owner(busy, a.reading())
	a.learn()
}

// Forecast returns how many sites there will be.
func (a *Agent) Forecast(ctx context.Context) (*view.Forecast, error) {
	v := &view.Forecast{Hours: forecastAhead.Hours()}
	var failed error
	err := a.broker.ask(ctx, func() {
		v.ErrorTerm, v.Checked = a.outlook.errorTerm, len(a.outlook.pairs)
		forecast, sites, err := a.seenBroker().Forecast(a.clock.now(), forecastAhead, v.ErrorTerm)
		v.Sites, v.Mean, v.Low, v.Paper, failed = sites, forecast.Mean, forecast.Low, forecast.Paper, err
	})
	if err == nil {
		err = failed
	}
	return v, err
}

// checkForecast holds a forecast against what came of it and makes the next.
func (a *Agent) checkForecast(now history.Reading) {
	_ = a.broker.ask(a.ctx, func() { // an agent that ends needs no forecast
		o := &a.outlook
		if o.pending && now.Boot < o.dueBoot {
			return
		}
		if o.pending && now.Boot < o.dueBoot+2*history.Every { // else the machine slept over it
			up := 1.0
			for _, m := range a.seenBroker().Members() {
				if m.Connected {
					up++
				}
			}
			o.pairs = append(o.pairs, avail.ForecastPair{Predicted: o.said, Actual: up})
			o.pairs = o.pairs[max(len(o.pairs)-forecastMemory, 0):]
			o.errorTerm, _ = avail.ForecastError(o.pairs) // finite numbers have a mean
		}
		// Without the error term: it is to measure the forecast and not itself.
		forecast, _, err := a.seenBroker().Forecast(a.clock.now(), forecastAhead, 0)
		o.said, o.dueBoot, o.pending = forecast.Mean, now.Boot+forecastAhead, err == nil
	})
}
