// Package jobmap turns one command line and a list of arguments into an array job of one
// task for each argument, as GNU parallel would run them on one machine.
//
// It decides what stands for an argument in the command ({}, {.} and the like), how
// arguments are quoted for the shell, which of them name files that are sent along, and
// which files come back. The job itself is a job file, which package jobfile reads.
//
// A command runs by sh in the directory in which its files are, under the names that they
// have here. An item is the command of one task, so that status and logs show it, and the files
// that come back are gathered in a directory of their own when the command has ended, with the
// same names. Where one text without a special meaning sets the tasks apart, as in most maps, that
// is the item, and the site takes the files from where they are. A module has no shell: it may use
// one replacement string only.
//
// # Map of the files
//
//	line.go      the words of the command line, and where arguments come from
//	quote.go     words quoted for sh, and read back
//	template.go  replacement strings
//	files.go     arguments and inputs that are files here
//	order.go     Order: what is asked for; Map: the job file that it makes
//	joblog.go    GNU parallel's log of tasks
package jobmap
