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
	var spells []Spell
	for s := t.First(rng); s.From < end; s = t.Next(s, rng) {
		spells = append(spells, Spell{From: s.From, To: min(s.To, end), Up: s.Up})
	}
	return spells
}

// First draws the spell from 0 on of a machine that has been there before.
func (t Turns) First(rng *rand.Rand) Spell {
	up := rng.Float64() < t.Availability()
	return Spell{To: t.law(up).remaining(rng), Up: up}
}

// Next draws the spell that follows one.
func (t Turns) Next(s Spell, rng *rand.Rand) Spell {
	return Spell{From: s.To, To: s.To + t.law(!s.Up).Draw(rng), Up: !s.Up}
}

func (t Turns) law(up bool) Law {
	if up {
		return t.Up
	}
	return t.Down
}
