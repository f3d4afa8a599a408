// Package grid has a map that is not quite true.
//
//	a.go, b.go    two at once
//	c.go          one
//	d.go
//	sys_*.go      one for each system
//	gone.go       it went
package grid // want "no line for e.go" want "a line for gone.go, which is not there"
