// Package jobfile reads job files (YAML or JSON), checks them against the disk,
// and turns them into the grid.Job that is submitted.
//
// It goes in three steps. Parse reads the text and knows every mistake in it by
// line, field and remedy. Resolve looks at the files that the job names and lists
// what has to be uploaded, each file once. Plan.Job puts the content identifiers
// in when they are known. Format writes a job back as a job file with its inputs
// as cid:, which Parse reads again.
//
// A task's own words {{item}} and {{index}} may stand in args, env, from, path and
// to. With items.glob, {{item}} is the matched path relative to the job file, with
// slashes; matches are sorted. A relative from stays inside the job file's folder:
// a link that leads out of it is refused by name. A from that is absolute or
// starts with ../ is taken as the author meant it, with links checked against the
// named folder.
//
// # Flows
//
// A file whose key jobs holds several named jobs is a flow; LoadFlow reads it. An input of one may
// be an output of another, by name. A job that has run before is named so in a single job file, by
// its ID.
//
// # Defaults
//
// What a job file leaves out: runtime 10m, resources.cpus 1, resources.gflops 1,
// resources.memory 128MiB, resources.disk 64MiB, resources.bandwidth none, ttl 1s,
// unattended freeze, map thesis with weights 1. File.Notes mentions the runtime's
// default.
//
// # Map of the files
//
//	load.go        Load: a job file or a command line, read
//	parse.go       Parse: the keys of the file
//	keys.go        keys by name, and what each reads
//	placing.go     keys about where and when: after, reservation, priority
//	taken.go       inputs that other jobs leave
//	redundancy.go  keys about how often a task runs, and what has to agree
//	signature.go   who has signed it
//	encrypt.go     what an encrypted job cannot have
//	window.go      start and deadline
//	moment.go      moments in people's words
//	dimensions.go  the axes of the map
//	node.go        YAML and JSON as one tree with lines
//	file.go        File: what was read, with defaults
//	whole.go       checks of the whole
//	resolve.go     Plan: files looked up, tasks made
//	source.go      inputs on this machine: files, directories, tar streams
//	format.go      Document: a job written as a file
//	flow.go        Flow: several jobs in one file
//	flowlink.go    what they need of each other
//	errors.go      errors with line, field and remedy
package jobfile
