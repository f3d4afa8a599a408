package archtest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// spot is a place in the picture: a room, or, without one, where an arrow passes a
// level.
type spot struct {
	room  *drawnRoom
	level int
	x     float64 // of its middle
	width float64
	up    []*spot // what leads here
	down  []*spot // where it leads
}

// laidOut is the picture in numbers. All of it follows from the rooms alone, whatever
// the machine.
type laidOut struct {
	levels [][]*spot // from the bottom, each from the left
	rooms  map[string]*spot
	width  float64
}

const (
	boxGap  = 18.0 // between two boxes
	passGap = 13.0 // between two arrows that pass a level
)

// lay gives every room a place, so that few arrows cross and most are short.
func lay(rooms []drawnRoom, width func(drawnRoom) float64) laidOut {
	l := laidOut{rooms: map[string]*spot{}}
	for i := range rooms {
		r := &rooms[i]
		s := &spot{room: r, level: r.level, width: width(*r)}
		l.rooms[r.name] = s
		l.put(s)
	}
	for i := range rooms {
		for _, to := range rooms[i].imports {
			l.lead(l.rooms[rooms[i].name], l.rooms[to])
		}
	}
	l.order()
	l.place()
	return l
}

func (l *laidOut) put(s *spot) {
	for len(l.levels) <= s.level {
		l.levels = append(l.levels, nil)
	}
	l.levels[s.level] = append(l.levels[s.level], s)
}

// lead draws an arrow, with a spot on every level that it passes.
func (l *laidOut) lead(from, to *spot) {
	at := from
	for level := from.level - 1; level > to.level; level-- {
		pass := &spot{level: level}
		l.put(pass)
		at.down, pass.up = append(at.down, pass), append(pass.up, at)
		at = pass
	}
	at.down, to.up = append(at.down, to), append(to.up, at)
}

// order sorts each level by the middle of its neighbours, up and down in turns, begins
// from several orders, and keeps the one in which the fewest arrows cross.
func (l *laidOut) order() {
	const beginnings, sweeps = 24, 30
	chance := rand.New(rand.NewPCG(1, 2))
	best, least := l.snapshot(), l.crossings()
	for range beginnings {
		for i := range sweeps {
			l.sweep(i%2 == 1)
			if now := l.crossings(); now < least {
				best, least = l.snapshot(), now
			}
		}
		for _, level := range l.levels {
			chance.Shuffle(len(level), func(i, j int) { level[i], level[j] = level[j], level[i] })
		}
	}
	l.levels = best
}

func (l *laidOut) sweep(down bool) {
	for n := range l.levels {
		level, neighbours := l.levels[n], func(s *spot) []*spot { return s.down }
		if down {
			level, neighbours = l.levels[len(l.levels)-1-n], func(s *spot) []*spot { return s.up }
		}
		sortByMiddle(level, l.index(), neighbours)
	}
	l.swap()
}

// swap exchanges neighbours as long as fewer arrows cross then.
func (l *laidOut) swap() {
	const most = 20
	for range most {
		better := false
		for n, level := range l.levels {
			up, down := places(l.levels, n+1), places(l.levels, n-1)
			for i := range len(level) - 1 {
				a, b := level[i], level[i+1]
				now := crossed(a.up, b.up, up) + crossed(a.down, b.down, down)
				then := crossed(b.up, a.up, up) + crossed(b.down, a.down, down)
				if then < now {
					level[i], level[i+1], better = b, a, true
				}
			}
		}
		if !better {
			return
		}
	}
}

// places returns the place of each spot within its level.
func places(levels [][]*spot, n int) map[*spot]int {
	at := map[*spot]int{}
	if n >= 0 && n < len(levels) {
		for i, s := range levels[n] {
			at[s] = i
		}
	}
	return at
}

// crossed counts the arrows of a left spot that cross one of a right one.
func crossed(left, right []*spot, at map[*spot]int) (count int) {
	for _, a := range left {
		for _, b := range right {
			if at[a] > at[b] {
				count++
			}
		}
	}
	return count
}

func sortByMiddle(level []*spot, at map[*spot]int, neighbours func(*spot) []*spot) {
	middle := map[*spot]float64{}
	for i, s := range level {
		middle[s] = float64(i)
		if near := neighbours(s); len(near) > 0 {
			sum := 0.0
			for _, n := range near {
				sum += float64(at[n])
			}
			middle[s] = sum / float64(len(near))
		}
	}
	slices.SortStableFunc(level, func(a, b *spot) int { return cmp.Compare(middle[a], middle[b]) })
}

func (l *laidOut) snapshot() [][]*spot {
	var copies [][]*spot
	for _, level := range l.levels {
		copies = append(copies, slices.Clone(level))
	}
	return copies
}

// index is each spot's place in its level, in parts of a thousand.
func (l *laidOut) index() map[*spot]int {
	at := map[*spot]int{}
	for _, level := range l.levels {
		for i, s := range level {
			at[s] = i * 1000 / len(level)
		}
	}
	return at
}

func (l *laidOut) crossings() int {
	count := 0
	for n, level := range l.levels {
		at := places(l.levels, n-1)
		var ends [][2]int
		for i, s := range level {
			for _, to := range s.down {
				ends = append(ends, [2]int{i, at[to]})
			}
		}
		for i, a := range ends {
			for _, b := range ends[:i] {
				if (a[0]-b[0])*(a[1]-b[1]) < 0 {
					count++
				}
			}
		}
	}
	return count
}

// place moves every spot towards the middle of its neighbours, as far as the order and
// the gaps let it.
func (l *laidOut) place() {
	for _, level := range l.levels {
		x := 0.0
		for i, s := range level {
			if i > 0 {
				x += gap(level[i-1], s)
			}
			s.x = x
		}
		for _, s := range level {
			s.x -= x / 2
		}
	}
	const rounds = 200
	for i := range rounds {
		for n := range l.levels {
			level := l.levels[n]
			if i%2 == 1 {
				level = l.levels[len(l.levels)-1-n]
			}
			settle(level)
		}
	}
	left, right := math.Inf(1), math.Inf(-1)
	for _, s := range l.all() {
		left, right = min(left, s.x-s.width/2), max(right, s.x+s.width/2)
	}
	for _, s := range l.all() {
		s.x = whole(s.x - left)
	}
	l.width = whole(right - left)
}

// whole rounds; what is close to a half goes up on every machine, however it adds.
func whole(x float64) float64 { return math.Floor(x + 0.513) }

func (l *laidOut) all() []*spot { return slices.Concat(l.levels...) }

func gap(a, b *spot) float64 {
	between := boxGap
	if a.room == nil && b.room == nil {
		between = passGap
	}
	return a.width/2 + between + b.width/2
}

// settle finds the places next to where the spots of a level would like to be, by least
// squares: who wants to stand where another one does moves together with it.
func settle(level []*spot) {
	type block struct{ sum, weight float64 }
	var blocks []block
	var sizes []int
	offsets := make([]float64, len(level))
	for i, s := range level {
		if i > 0 {
			offsets[i] = offsets[i-1] + gap(level[i-1], s)
		}
		at, weight := wish(s)
		b, size := block{(at - offsets[i]) * weight, weight}, 1
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum/last.weight <= b.sum/b.weight {
				break
			}
			b.sum, b.weight, size = b.sum+last.sum, b.weight+last.weight, size+sizes[len(sizes)-1]
			blocks, sizes = blocks[:len(blocks)-1], sizes[:len(sizes)-1]
		}
		blocks, sizes = append(blocks, b), append(sizes, size)
	}
	i := 0
	for n, b := range blocks {
		for range sizes[n] {
			level[i].x = b.sum/b.weight + offsets[i]
			i++
		}
	}
}

// wish returns the preferred place of a spot, and its weight: arrows that pass want
// to go straight.
func wish(s *spot) (x, weight float64) {
	near := slices.Concat(s.up, s.down)
	if len(near) == 0 {
		return s.x, 0.1
	}
	const straight, firm = 30, 3
	all := 0.0
	for _, n := range near {
		pull := 1.0
		if s.room == nil && n.room == nil {
			pull = straight
		}
		x, all = x+pull*n.x, all+pull
	}
	if s.room == nil {
		return x / all, firm
	}
	return x / all, 1
}
