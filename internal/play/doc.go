// Package play plays scenarios in the simulator, with the machines that run in every agent, and
// shows what happened: as text, as a picture, and as a page that one can step through. It also
// plays again what real agents did, as far as their journals tell.
//
//	simulation.go  a scenario in the simulator, and its outcome
//	realms.go      several domains, and their links
//	trouble.go     what goes wrong with sites, and what the oracle is told
//	result.go      the outcome as programs read it
//	record.go      Record: all that happened
//	journals.go    Record of real agents, from what they wrote down
//	observed.go    Observed: what journals tell of a mesh that a simulation needs
//	watcher.go     how it is read from them
//	traffic.go     messages and orders, each with its answer
//	lags.go        Measured: how long these took, for a simulation
//	courses.go     Course: what became of a job
//	again.go       the simulation of what was observed
//	told.go        which of it is told, and in what words
//	lines.go       like things in one line
//	sitelines.go   what happened at each site: who runs, frozen, lost, fenced
//	timeline.go    that, as lines of letters
//	svg.go         that, as a picture
//	page.go        the picture and all steps, as a page of HTML
package play
