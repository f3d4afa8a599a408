package standby

import "time"

// hold is the rest of rule 2: a machine that runs far ahead of what the group has committed
// would lose all of that with its lead. So its inputs stop when 8 MiB wait, or one second.
type hold struct {
	on    bool
	since time.Time // something has waited since then
	entry uint64    // the last committed one, when since was set
}

// holdInputs stops the machine's inputs, or lets them go on.
func (g *Group) holdInputs() {
	q := &g.gate
	waiting := q.size
	for number := q.committed + 1; number <= q.proposed; number++ {
		waiting += q.bytes[number]
	}
	switch {
	case waiting == 0:
		g.hold.since = time.Time{}
	case g.hold.since.IsZero() || g.hold.entry != q.committed:
		g.hold.since, g.hold.entry = g.now, q.committed
	}
	late := !g.hold.since.IsZero() && !g.now.Before(g.hold.since.Add(g.cfg.MaxWaiting))
	if on := late || waiting > g.cfg.MaxWaitingBytes; on != g.hold.on {
		g.hold.on = on
		g.emit(Hold{On: on})
	}
}
