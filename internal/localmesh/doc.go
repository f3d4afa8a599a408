// Package localmesh runs a whole mesh on one machine, each agent a process of its own,
// for programs that show or try it. All that it writes stands in one temporary
// directory, and all that it starts ends with it.
//
//	mesh.go     Mesh: agents configured, introduced, started
//	place.go    the temporary directory, and programs built into it
//	play.go     Example, Play: its command line and its life
//	program.go  a WASM module of a few instructions, made without a compiler
//	screen.go   what an example prints
//	sleeper.go  a WASM module that sleeps, made without a compiler
//	sys_*.go    processes of this system: groups, signals
package localmesh
