package border

// The kinds of facts, with the version of their format.
const (
	factTaken  = "border_taken/1"  // key attempt; an order that a neighbour has taken
	factGiven  = "border_given/1"  // key attempt and neighbour; an order of a neighbour
	factFavour = "border_favour/1" // key neighbour; what was given and taken, by receipts
	factCount  = "border_count/1"  // no key; the number of the last request
)

// Snapshot implements step.Durable.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Durable.
func (m *Machine) Restore([]byte) error { return nil }
