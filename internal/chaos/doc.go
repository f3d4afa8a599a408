// Command chaos plays real life with a mesh of real agents, each a process in a network
// namespace of its own, and then counts what became of the jobs: from the journals of all
// agents, and by a look at the machine itself.
//
//	go run ./internal/chaos                   12 agents, 2,000 jobs, 30 minutes
//	CHAOS=short go run ./internal/chaos       200 jobs, three minutes, as CI does
//	CHAOS_SEED=7 go run ./internal/chaos      that story again; each run prints its seed
//	CHAOS_FENCING=off go run ./internal/chaos a build that fences nothing off: must double
//
// It wants Linux and root, because of the namespaces; elsewhere it says so and ends with 3.
// The seed draws which trouble meets whom when, and what is submitted; how processes and
// packets interleave is the machine's.
//
// The agents that submit have two standbys each. Among the troubles are those of such a group:
// all of it killed, its owner away for long, a standby's disk lost, its members changed under
// load. Some jobs save their states, some run in two copies that have to agree, and users and
// owners have jobs moved.
//
// What no kernel gives to a part of its processes is not played here but in the simulator:
// a step of the wall clock, a suspended machine, a lost write.
//
//	main.go      the run: start, story, healing, verdict
//	story.go     when which trouble comes, and when it is over
//	trouble.go   the kinds of trouble
//	group.go     those of a submitter and its standbys
//	mesh.go      the agents in their namespaces, some on small disks
//	disk_*.go    small disks: mounted, filled, unmounted
//	busy.go      a slow disk: another program keeps it busy
//	jobs.go      the families of jobs, and their submission
//	judge.go     what is counted at the end
//	processes.go what still runs
package main
