package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// A run that was refused by another site because of a newer one ends, and leaves a file that
// says why. As long as it is there no agent starts from this directory: else two machines with
// one identity would take turns, each ending what the other runs.

// ErrSuperseded refuses a state directory whose site runs on another machine.
var ErrSuperseded = errors.New("another machine runs with this site's identity")

const supersededFile = "superseded"

// Newer is the run because of which this directory's agent does not start.
type Newer struct {
	Incarnation uint64    `json:"incarnation"`
	Since       time.Time `json:"since"` // by the other machine's clock
}

// Explain is the error of one whose state directory is dir.
func (n Newer) Explain(dir string) error {
	return fmt.Errorf("%w since %s; remedy: let the site go on there and remove %s, or end it there "+
		"and run siteagent adopt here; a machine that is to be a site of its own joins with an "+
		"identity of its own (siteagent init, siteagent join)",
		ErrSuperseded, n.Since.UTC().Format(time.RFC3339), dir)
}

// Supersede notes durably that a newer run has this site's identity.
func (s *Store) Supersede(n Newer) error {
	text, err := json.Marshal(n)
	if err == nil {
		err = durable.Replace(filepath.Join(s.dir, supersededFile), text)
	}
	if err != nil {
		return fmt.Errorf("note that the site runs on another machine: %w", err)
	}
	return nil
}

// Superseded reads because of which run no agent starts from a directory, if there is one.
func Superseded(dir string) (n Newer, is bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, supersededFile)) //nolint:gosec // the owner chose dir
	if errors.Is(err, fs.ErrNotExist) {
		return n, false, nil
	}
	if err != nil {
		return n, false, fmt.Errorf("read why the site does not start: %w", err)
	}
	if json.Unmarshal(text, &n) != nil {
		n = Newer{} // damaged; that it is there says enough
	}
	return n, true, nil
}

// outrank lets the next start have a higher number than the run that was heard of.
func outrank(meta *bolt.Bucket, n Newer) error {
	var last uint64
	if old := meta.Get(incarnationKey); len(old) == 8 {
		last = binary.BigEndian.Uint64(old)
	}
	return meta.Put(incarnationKey, binary.BigEndian.AppendUint64(nil, max(last, n.Incarnation)))
}
