package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// steerMost bounds the sites that are asked side by side.
const steerMost = 16

// Fleet gives a page of the members of the domain with what each says of itself, this site first.
// Only the sites of the page are asked.
func (b *Backend) Fleet(ctx context.Context, q view.PageQuery) ([]view.FleetRow, error) {
	members, err := b.Members(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]view.FleetRow, 0, len(members.Sites))
	for _, m := range members.Sites {
		if m.Member {
			rows = append(rows, view.FleetRow{
				Site: m.Site, Name: m.Name, Self: m.Site == b.mesh.Self(), Connected: m.Connected,
			})
		}
	}
	rows, err = view.Page(rows, q, func(row view.FleetRow) grid.SiteID { return row.Site })
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, steerMost)
	for i := range rows {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			b.lookAt(ctx, &rows[i])
		})
	}
	all.Wait()
	return rows, nil
}

// lookAt fills in what a site says of itself.
func (b *Backend) lookAt(ctx context.Context, row *view.FleetRow) {
	answer, err := b.steer(ctx, row.Site, agent.SteerQuestion{Do: agent.SteerLook, Brief: true})
	if err != nil {
		row.Trouble = err.Error()
		return
	}
	row.Status, row.Running = answer.Status, answer.Running
}

// StatusAt is the state of another site, whose owner allows it.
func (b *Backend) StatusAt(ctx context.Context, peer string) (view.AgentStatus, error) {
	return b.steerNamed(ctx, peer, agent.SteerQuestion{Do: agent.SteerLook})
}

// PauseAt pauses another site, whose owner allows it, and returns its state then.
func (b *Backend) PauseAt(
	ctx context.Context, peer string, p view.PauseOrder,
) (view.AgentStatus, error) {
	return b.steerNamed(ctx, peer, agent.SteerQuestion{
		Do: agent.SteerPause, SpanMS: p.Span.Milliseconds(), Leave: p.Leave,
		StopAfterMS: p.StopAfter.Milliseconds(),
	})
}

// ResumeAt ends a pause of another site that was ordered from afar, and returns its state then.
func (b *Backend) ResumeAt(ctx context.Context, peer string) (view.AgentStatus, error) {
	return b.steerNamed(ctx, peer, agent.SteerQuestion{Do: agent.SteerResume})
}

func (b *Backend) steerNamed(
	ctx context.Context, peer string, q agent.SteerQuestion,
) (view.AgentStatus, error) {
	row, err := b.find(ctx, peer)
	if err != nil {
		return view.AgentStatus{}, err
	}
	answer, err := b.steer(ctx, row.Site, q)
	if err != nil {
		return view.AgentStatus{}, fmt.Errorf("ask %s: %w", cmp.Or(row.Name, string(row.Site)), err)
	}
	return *answer.Status, nil
}

// steer asks a site, this one too.
func (b *Backend) steer(
	ctx context.Context, at grid.SiteID, q agent.SteerQuestion,
) (agent.SteerAnswer, error) {
	if at != b.mesh.Self() {
		return b.agent.AskSteering(ctx, at, q)
	}
	return b.answerSteering(ctx, "", q).OrRefusal()
}

// answerSteering does what a site asks for that may; by is empty for this site's own owner.
func (b *Backend) answerSteering(
	ctx context.Context, by grid.SiteID, q agent.SteerQuestion,
) agent.SteerAnswer {
	if err := b.obey(ctx, by, q); err != nil {
		return agent.SteerAnswer{Refused: err.Error()}
	}
	s, err := b.Status(ctx)
	if err != nil {
		return agent.SteerAnswer{Refused: err.Error()}
	}
	answer := agent.SteerAnswer{Status: &s, Running: len(s.Running)}
	if q.Brief {
		s.Running, s.Counters, s.Walls, s.Faults = []view.RunningTask{}, nil, nil, []view.FaultRow{}
	}
	return answer
}

// errOwners: a pause, or the end of one, that has to yield to the owner's own.
var errOwners = errors.New("its owner has paused it, or stops it; only there that ends")

func (b *Backend) obey(ctx context.Context, by grid.SiteID, q agent.SteerQuestion) error {
	var err error
	switch q.Do {
	case agent.SteerLook:
		return nil
	case agent.SteerPause:
		if q.SpanMS < 0 || q.StopAfterMS < 0 || q.StopAfterMS > 0 && !q.Leave {
			return fmt.Errorf("%w: pause: want times from 0 on, and a stop only of jobs that leave",
				grid.ErrInvalid)
		}
		err = b.pause(ctx, by, view.PauseOrder{
			Span: time.Duration(q.SpanMS) * time.Millisecond, Leave: q.Leave,
			StopAfter: time.Duration(q.StopAfterMS) * time.Millisecond,
		})
	case agent.SteerResume:
		err = b.agent.Order(ctx, step.Resume{By: by})
	default:
		return fmt.Errorf("%w: %q: want look, pause or resume", grid.ErrInvalid, q.Do)
	}
	if err != nil || by == "" {
		return err
	}
	return b.obeyed(ctx, q.Do)
}

// obeyed says whether the owner's own orders left it at that.
func (b *Backend) obeyed(ctx context.Context, order string) error {
	var s site.Status
	if err := b.agent.AskSite(ctx, func(m *site.Machine) { s = m.Status() }); err != nil {
		return err
	}
	if s.Draining || s.Paused && (s.PausedBy == "" || order == agent.SteerResume) {
		return errOwners
	}
	return nil
}
