package broker

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// name remembers by which key a job was asked for. The key lives as long as the job.
func (l *jobs) name(j *job, key string) {
	j.key = key
	if key != "" {
		l.byKey[key] = j.id
	}
}

// made is the job that the same request made before; empty: there is none. A key that named
// another request is an error: one of the two would be lost silently.
func (l *jobs) made(in step.Submit) (grid.JobID, error) {
	if len(in.Key) > step.MaxKey {
		return "", fmt.Errorf("%w: key: %d bytes, want at most %d", grid.ErrInvalid, len(in.Key),
			step.MaxKey)
	}
	id, known := l.byKey[in.Key]
	if in.Key == "" || !known {
		return "", nil
	}
	if j := l.all[id]; j.noWait != in.NoWait || !same(j.asked, in.Job) {
		return "", fmt.Errorf("%w (it made job %s)", step.ErrKeyUsed, id)
	}
	return id, nil
}

// same reports whether two submissions ask for the same. They are compared as JSON: a
// submission comes and is kept as such.
func same(a, b grid.Job) bool {
	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}
