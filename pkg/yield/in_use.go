package yield

// InUse limits what jobs get while somebody uses keyboard or mouse, in percent of the ceilings, 1
// to 100. The zero value of each: all.
type InUse struct {
	Cores  int
	Memory int
}

// Limits reports whether that is less than otherwise.
func (u InUse) Limits() bool { return u.cores() < percent || u.memory() < percent }

func (u InUse) cores() int  { return orAll(u.Cores) }
func (u InUse) memory() int { return orAll(u.Memory) }

func orAll(part int) int {
	if part == 0 {
		return percent
	}
	return part
}

// Given tells how much the owner gives at a moment, in percent of the ceilings.
type Given struct {
	Cores  int  // 1 to 100; 0: it is a time of the week at which nothing is given
	Memory int  // 1 to 100
	InUse  bool // somebody uses keyboard or mouse
	ByUse  bool // fewer cores, or less memory, than the hours give, because of that
}

// While tells how much is given when the hours give a share of the cores, in percent, and somebody
// uses the machine or not.
func (u InUse) While(inUse bool, share int) Given {
	g := Given{Cores: share, Memory: percent, InUse: inUse}
	if !inUse || share == 0 {
		return g
	}
	g.Cores, g.Memory = min(share, u.cores()), u.memory()
	g.ByUse = g.Cores < share || g.Memory < percent
	return g
}
