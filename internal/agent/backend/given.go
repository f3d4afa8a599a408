package backend

import (
	"context"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/given"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Given lists what this site gave, by day. What is shown is durable.
func (b *Backend) Given(ctx context.Context) ([]view.GivenDay, error) {
	return b.givenDays(b.agent.Given(ctx)), nil
}

// givenWeek sums up what this site gave in the week of a time.
func (b *Backend) givenWeek(days []given.Day, now time.Time) *view.Given {
	g := view.SumGiven(b.givenDays(days), view.Monday(now))
	g.Days = nil
	return &g
}

func (b *Backend) givenDays(days []given.Day) []view.GivenDay {
	out := []view.GivenDay{}
	for _, d := range days {
		day := view.GivenDay{Date: d.Date, For: []view.GivenShare{}}
		for _, s := range d.Shares {
			day.For = append(day.For, view.GivenShare{
				Site: s.For, Name: s.Name, Own: s.For == b.mesh.Self(),
				CoreSeconds: s.CoreSeconds, Tasks: s.Tasks,
			})
		}
		out = append(out, day)
	}
	return out
}
