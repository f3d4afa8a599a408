package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a site is asked for from afar.
const (
	SteerLook   = "look"   // its state
	SteerPause  = "pause"  // to take no new work
	SteerResume = "resume" // to end a pause that was ordered from afar
)

// SteerQuestion is one line of JSON, which opens a stream for steering; a SteerAnswer follows.
type SteerQuestion struct {
	Do    string `json:"do"`              // SteerLook, SteerPause or SteerResume
	Brief bool   `json:"brief,omitempty"` // without jobs, counters and walls
	// of a view.PauseOrder, in milliseconds
	SpanMS      int64 `json:"span_ms,omitempty"`
	Leave       bool  `json:"leave,omitempty"`
	StopAfterMS int64 `json:"stop_after_ms,omitempty"`
}

// SteerAnswer is the state of the site after what was asked for, or why that was not done.
type SteerAnswer struct {
	Refused string            `json:"refused,omitempty"` // why, for people
	Status  *view.AgentStatus `json:"status,omitempty"`
	Running int               `json:"running,omitempty"` // jobs that are there
}

const (
	maxSteerQuestion = 1 << 10 // bytes
	maxSteerAnswer   = 4 << 20 // bytes
	steerPatience    = 3 * time.Second
)

// AskSteering asks another site, whose owner has to allow it. A refusal is view.ErrDenied, a site
// that cannot be asked view.ErrBusy.
func (a *Agent) AskSteering(
	ctx context.Context, at grid.SiteID, q SteerQuestion,
) (SteerAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, steerPatience)
	defer cancel()
	stream, err := a.mesh.OpenSteering(ctx, at)
	if err != nil {
		return SteerAnswer{}, fmt.Errorf("%w: it is not connected, or of an older version",
			view.ErrBusy)
	}
	defer func() { _ = stream.Close() }()
	line, err := json.Marshal(q)
	if err == nil {
		_, err = stream.Write(append(line, '\n'))
	}
	var answer SteerAnswer
	if err == nil {
		answer, err = readSteering(io.LimitReader(stream, maxSteerAnswer))
	}
	switch {
	case err != nil:
		return SteerAnswer{}, fmt.Errorf("%w: it gives no answer that can be read within %v",
			view.ErrBusy, steerPatience)
	case answer.Status == nil && answer.Refused == "":
		return SteerAnswer{}, fmt.Errorf("%w: it answers without its state", view.ErrBusy)
	}
	return answer.OrRefusal()
}

// readSteering reads an answer. What a terminal would take for more than text is no part of it
// then: it is shown as it comes.
func readSteering(from io.Reader) (SteerAnswer, error) {
	var answer SteerAnswer
	var raw any
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	if err := decoder.Decode(&raw); err != nil {
		return answer, err
	}
	plain, err := json.Marshal(plainTexts(raw))
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(plain, &answer)
}

// plainTexts has the texts of a value of JSON without what is not to be printed.
func plainTexts(value any) any {
	switch v := value.(type) {
	case string:
		return grid.Plain(v)
	case []any:
		for i := range v {
			v[i] = plainTexts(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plainTexts(v[key])
		}
	}
	return value
}

// OrRefusal is the answer, or view.ErrDenied with the reason.
func (s SteerAnswer) OrRefusal() (SteerAnswer, error) {
	if s.Refused != "" {
		return s, fmt.Errorf("%w: %s", view.ErrDenied, s.Refused)
	}
	return s, nil
}

// steering answers the sites that the owner allows to ask.
type steering func(ctx context.Context, from grid.SiteID, q SteerQuestion) SteerAnswer

// OnSteering sets who answers the sites that the owner allows to ask, before Run.
func (a *Agent) OnSteering(answer func(context.Context, grid.SiteID, SteerQuestion) SteerAnswer) {
	a.steering.Store(new(steering(answer)))
}

// serveSteering answers a peer that looks at this site, or orders a pause.
func (a *Agent) serveSteering(from grid.SiteID, stream io.ReadWriteCloser) {
	ctx, cancel := context.WithTimeout(a.ctx, steerPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	// A peer that does not read it goes without.
	_ = json.NewEncoder(stream).Encode(a.steered(ctx, from, stream))
}

// steered reads a question, and has it answered if the owner allows that.
func (a *Agent) steered(ctx context.Context, from grid.SiteID, stream io.Reader) SteerAnswer {
	line, err := bufio.NewReader(io.LimitReader(stream, maxSteerQuestion)).ReadBytes('\n')
	var q SteerQuestion
	if err == nil {
		err = json.Unmarshal(line, &q)
	}
	known := slices.Contains([]string{SteerLook, SteerPause, SteerResume}, q.Do)
	answer := a.steering.Load()
	switch {
	case !a.mayNow(from):
		a.reports.count("steering_denied")
		return SteerAnswer{Refused: "its owner does not allow it; there: siteagent config set " +
			"owner.remote " + string(from)}
	case err != nil || !known:
		a.reports.count("steering_invalid")
		return SteerAnswer{Refused: "it understands look, pause and resume; " +
			"is it of an older version?"}
	case answer == nil:
		return SteerAnswer{Refused: "it is only just starting; try again"}
	default:
		a.reports.count("steering_" + q.Do)
		return (*answer)(ctx, from, q)
	}
}

// mayNow reports whether the owner allows a site to look at this one and to pause it.
func (a *Agent) mayNow(from grid.SiteID) bool {
	return slices.ContainsFunc(a.Terms().Owner.Remote, func(allowed grid.SiteID) bool {
		id, err := p2p.Canonical(allowed)
		return err == nil && id == from
	})
}
