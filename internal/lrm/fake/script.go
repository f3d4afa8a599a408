package fake

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// byArgs reads what an attempt does from its task's arguments, VERB=VALUE each:
//
//	run=2s            runs that long; run=-1s without end
//	exit=7            ends with that code
//	print=TEXT        prints a line
//	lines=10          prints lines evenly over its run
//	put=/out/x:TEXT   leaves a file
//	memory=BYTES      wants that much memory
//	disk=BYTES        writes that much
//	save=1s           saves its state so often, and goes on from one
//	fail-start=TEXT   does not start
//
// Other arguments mean nothing. A value that cannot be read counts as 0.
func byArgs(a lrm.Attempt) Behaviour {
	b := Behaviour{Files: make(map[string]string)}
	for _, arg := range a.Task.Args {
		verb, value, _ := strings.Cut(arg, "=")
		number, _ := strconv.ParseInt(value, 10, 64)
		switch verb {
		case "run":
			b.Run, _ = time.ParseDuration(value)
		case "exit":
			b.Code = int(number)
		case "print":
			b.Stdout += value + "\n"
		case "lines":
			b.Lines = int(number)
		case "put":
			path, text, _ := strings.Cut(value, ":")
			b.Files[path] = text
		case "memory":
			b.Memory = number
		case "disk":
			b.Disk = number
		case "save":
			b.Save, _ = time.ParseDuration(value)
		case "fail-start":
			b.FailStart = errors.New(value)
		}
	}
	return b
}
