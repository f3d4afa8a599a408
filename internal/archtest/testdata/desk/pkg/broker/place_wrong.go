package broker

type wrong struct{}

func (w wrong) place(d desk) {
	_ = d.now()
	_ = d.m.now  // want "nothing of the machine"
	d.m.award(w) // want "nothing of the machine"
}

func (w wrong) keep(m *Machine) {} // want "nothing of the machine" want "nothing of the machine"
