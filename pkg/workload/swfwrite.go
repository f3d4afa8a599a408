package workload

import (
	"iter"
	"strconv"
	"strings"
)

// Lines returns the lines of the log in the Standard Workload Format, without their ends:
// the header's comments, then the records. A line is overwritten when the next one is
// asked for. ReadSWF reads the same log from them, if its numbers are below 2^40.
func (l Log) Lines() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var line []byte
		for _, comment := range l.Header {
			line = appendComment(line[:0], comment)
			if !yield(line) {
				return
			}
		}
		for _, record := range l.Records {
			line = record.appendTo(line[:0])
			if !yield(line) {
				return
			}
		}
	}
}

// appendComment keeps a comment on one line: what came after a line break would be read
// as a record.
func appendComment(line []byte, comment string) []byte {
	line = append(line, ';')
	if comment == "" {
		return line
	}
	return append(append(line, ' '), strings.ReplaceAll(comment, "\n", " ")...)
}

// appendTo writes the 18 fields, separated by spaces.
func (r Record) appendTo(line []byte) []byte {
	for i, value := range [fields]int64{
		r.ID, int64(r.Submit), int64(r.Wait), int64(r.Run), r.UsedProcs, int64(r.UsedCPU), r.UsedKB,
		r.RequestedProcs, int64(r.RequestedTime), r.RequestedKB, r.Status, r.User, r.Group,
		r.Application, r.Queue, r.Partition, r.Preceding, int64(r.Think),
	} {
		if i > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, value, 10)
	}
	return line
}
