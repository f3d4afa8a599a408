package main

// whole is the work, which lives between the calls of step.
var whole = newSieve() //nolint:gochecknoglobals // a module of steps has no other place

// step is called until it returns 0.
//
//go:wasmexport step
func step() int32 { return whole.advance() }
