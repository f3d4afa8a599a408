package workload

import "math/rand/v2"

// Spell is a time in which a machine is up all the time, or down.
type Spell struct {
	From, To float64 // seconds
	Up       bool
}

// Turns is a machine that is up and down in turns, each time for a duration of its law.
type Turns struct {
	Up, Down Law // of seconds
}

// Availability is the share of time in which the machine is up, in the long run.
func (t Turns) Availability() float64 {
	up, down := t.Up.Mean(), t.Down.Mean()
	return up / (up + down)
}

// Spells draws the machine's spells from 0 on; the last one is cut off at the end. The
// machine has been there before: at every instant it is up with the probability of its
// availability, also at the first one.
func (t Turns) Spells(rng *rand.Rand, end float64) []Spell {
	up := rng.Float64() < t.Availability()
	length := t.law(up).remaining(rng)
	var spells []Spell
	for at := 0.0; at < end; up = !up {
		spells = append(spells, Spell{From: at, To: min(at+length, end), Up: up})
		at += length
		length = t.law(!up).Draw(rng)
	}
	return spells
}

func (t Turns) law(up bool) Law {
	if up {
		return t.Up
	}
	return t.Down
}
