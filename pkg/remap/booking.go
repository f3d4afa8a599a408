package remap

// Booking is the booking profile: how much requests have reserved, for so many slots ahead of
// them. VRM, section 4.5. The zero value has seen no request.
type Booking struct {
	// Elapsed is the number of slots in which requests could come: what was reserved is an average
	// over them.
	Elapsed int64

	sums [len(Amount{})][]int64
}

// Note adds what a request has reserved, from so many slots ahead up to so many.
func (b *Booking) Note(need Amount, from, stop int64) {
	for d, n := range need {
		if n == 0 {
			continue
		}
		if missing := stop - int64(len(b.sums[d])); missing > 0 {
			b.sums[d] = append(b.sums[d], make([]int64, missing)...)
		}
		for ahead := from; ahead < stop; ahead++ {
			b.sums[d][ahead] += n
		}
	}
}

// mean tells how much is reserved in one slot, for so many slots ahead.
func (b *Booking) mean(d int, ahead int64) float64 {
	if ahead >= int64(len(b.sums[d])) || b.Elapsed == 0 {
		return 0
	}
	return float64(b.sums[d][ahead]) / float64(b.Elapsed)
}
