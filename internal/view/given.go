package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// GivenShare says what a site gave to one submitter.
type GivenShare struct {
	// left out: submitters beyond those that are told apart
	Site        grid.SiteID `json:"site,omitempty"`
	Name        string      `json:"name,omitempty"` // as it was last known
	Own         bool        `json:"own,omitempty"`  // the site's own jobs: it was given nothing
	CoreSeconds float64     `json:"core_seconds"`   // processor time that its attempts used here
	Tasks       int         `json:"tasks"`          // that came to an end of their own here
}

// GivenDay lists what a site gave on one day, by its owner's clock.
type GivenDay struct {
	Date string       `json:"date"`
	For  []GivenShare `json:"for"`
}

// Given sums up what a site gave since a day, the own jobs left out of the sums.
type Given struct {
	// the first day that counts; left out: all that is known
	Since       string  `json:"since,omitempty"`
	CoreSeconds float64 `json:"core_seconds"`
	Tasks       int     `json:"tasks"`
	// who got most first, the own jobs last
	For []GivenShare `json:"for"`
	// ascending; left out where the sum alone is shown
	Days []GivenDay `json:"days,omitempty"`
}

// Monday is the date of the first day of a time's week.
func Monday(now time.Time) string {
	const week = 7
	back := (int(now.Weekday()) + week - int(time.Monday)) % week
	return now.AddDate(0, 0, -back).Format(time.DateOnly)
}

// SumGiven adds up what was given on days from a date on; an empty one is before all.
func SumGiven(days []GivenDay, since string) Given {
	g := Given{Since: since, For: []GivenShare{}, Days: []GivenDay{}}
	at := make(map[grid.SiteID]int)
	for _, d := range days {
		if d.Date < since {
			continue
		}
		g.Days = append(g.Days, d)
		for _, s := range d.For {
			i, known := at[s.Site]
			if !known {
				i = len(g.For)
				at[s.Site] = i
				g.For = append(g.For, GivenShare{Site: s.Site, Own: s.Own})
			}
			g.For[i].Name = cmp.Or(s.Name, g.For[i].Name)
			g.For[i].CoreSeconds += s.CoreSeconds
			g.For[i].Tasks += s.Tasks
			if !s.Own {
				g.CoreSeconds += s.CoreSeconds
				g.Tasks += s.Tasks
			}
		}
	}
	slices.SortFunc(g.For, GivenShare.compare)
	return g
}

// compare orders shares, the own one last and those of most processor time first.
func (s GivenShare) compare(o GivenShare) int {
	if s.Own != o.Own {
		if s.Own {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(o.CoreSeconds, s.CoreSeconds), cmp.Compare(o.Tasks, s.Tasks),
		cmp.Compare(s.Name, o.Name), cmp.Compare(s.Site, o.Site),
	)
}
