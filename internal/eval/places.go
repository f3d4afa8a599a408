package eval

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Place numbers nodes of a hold: those from Low to below High of its site. A hold need not be in
// one piece.
type Place struct {
	Hold      int // its place in RunRecord.Holds
	Low, High float64
}

// least is less than what anything holds, nodes: below it are errors of rounding.
const least = 1e-6

// Places finds a place for each hold, as low as possible, in the order in which they begin.
// Schedulers count nodes and do not number them: any numbers that do not overlap say the same.
// What does not fit, which would be a mistake of a scheduler, lies above the site's last node.
func (r RunRecord) Places() []Place {
	order := make([]int, len(r.Holds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.Holds[a], r.Holds[b]
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.Site, y.Site),
			cmp.Compare(x.Job, y.Job), cmp.Compare(x.Copy, y.Copy))
	})
	sites := make([]taken, len(r.Grid.Sites))
	var places []Place
	for _, i := range order {
		h := r.Holds[i]
		nodes := float64(r.Grid.Sites[h.Site].MilliCPUs) / 1000
		for _, p := range sites[h.Site].take(h.Nodes, nodes, h.From, h.To) {
			places = append(places, Place{i, p.low, p.high})
		}
	}
	return places
}

// span is a part of a site's nodes until a time.
type span struct {
	low, high float64
	until     time.Duration
}

// taken lists the nodes of a site that are held, in their order.
type taken []span

// take finds so many nodes that nobody holds, and holds them.
func (t *taken) take(nodes, of float64, now, until time.Duration) []span {
	*t = slices.DeleteFunc(*t, func(s span) bool { return s.until <= now })
	var got []span
	low := 0.0
	for _, s := range append(slices.Clone(*t), span{low: of, high: of}) {
		if room := min(s.low-low, nodes); room > least {
			got = append(got, span{low, low + room, until})
			nodes -= room
		}
		low = max(low, s.high)
	}
	if nodes > least {
		got = append(got, span{low, low + nodes, until})
	}
	*t = append(*t, got...)
	slices.SortFunc(*t, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	return got
}

// FileName is a name as part of the name of a file: what may not be in one everywhere is a _.
func FileName(name string) string {
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("._-+", c) {
			return c
		}
		return '_'
	}, name)
	if strings.Trim(safe, ".") == "" {
		return "_" + safe
	}
	return safe
}
