// Package broker has a desk, and a strategy that reaches behind it.
package broker

// Machine is what strategies must not see.
type Machine struct{ now int }

type strategy interface{ place(d desk) }

type desk struct{ m *Machine }

func (d desk) now() int { return d.m.now }

func (m *Machine) award(s strategy) { s.place(desk{m}) }

func (m *Machine) count(n int) int {
	if n == 0 {
		return 0
	}
	return m.count(n - 1)
}

var first strategy = wrong{}
