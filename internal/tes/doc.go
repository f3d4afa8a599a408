// Package tes is a door of the agent's interface for workflow engines: the Task Execution Service
// of GA4GH, version 1.1. A task becomes a job of one command, which runs its executors one after
// the other in one sandbox, and is placed as every other job is.
//
// The specification comes first: server.gen.go is generated from tes-1.1.yaml, the official
// document, and nothing is answered that it does not name. What is known here beyond it, such as
// the site and its distance, stands in the metadata of a task's logs.
//
// A task is answered as soon as its record is on disk. Its inputs are read, the job is handed over
// and the outputs are written afterwards, by one goroutine for each task that has not ended, which
// goes on after a restart of the agent where it was. Files are read and written only below the
// directories that the owner names, and no link leads out of them; inputs may also come from
// addresses of the web that the owner names. An image says which programs a task expects; the owner
// names those whose programs the sites have, and others are refused.
//
//	tes.go       Config, Tasks: what is kept of tasks, and who follows them
//	life.go      one task from its inputs to its outputs
//	check.go     a task as it is given: what is wrong, and what is left out
//	paths.go     paths inside the sandbox
//	amounts.go   resources and parameters
//	job.go       a task as a job
//	script.go    the executors as one script
//	shown.go     a job's state as a task's, and the views
//	ran.go       what the script noted of each executor
//	files.go     the directories that may be read and written
//	inputs.go    files and directories read
//	urls.go      files of the web read
//	outputs.go   files and directories written
//	mounts.go    directories that a task reads and may change
//	store.go     records on disk
//	pages.go     lists: order, filters, tokens
//	handlers.go  the operations over HTTP
//	generate.go  how server.gen.go is made
package tes
