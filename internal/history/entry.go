package history

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// kind is the kind of entry on a line of the file.
type kind string

// The kinds. What they are followed by: the wall clock, the clock since boot, and for
// some a number, all in milliseconds; for a start the name of the boot.
const (
	kindStart   kind = "start"   // the agent started
	kindBeat    kind = "beat"    // it lives
	kindStop    kind = "stop"    // it ended in order
	kindSuspend kind = "suspend" // the machine slept for so long until now
	kindJump    kind = "jump"    // the wall clock was set by so much
	kindBusy    kind = "busy"    // the owner wants the machine back
	kindFree    kind = "free"    // the owner is away again
)

// entry is one line.
type entry struct {
	kind   kind
	wallMS int64  // since 1970, UTC, as the clock said
	bootMS int64  // since boot, suspend included
	value  int64  // of a suspend and a jump, ms
	bootID string // of a start; empty = unknown
}

// errLine says that a line was not written by this package, or is damaged.
var errLine = errors.New("not a line of a history")

// Bounds of what a line may say.
const (
	maxLineBytes = 128
	maxMS        = 1 << 52 // 140,000 years
	maxBootID    = 36
)

// line writes an entry, with a checksum in front.
func (e entry) line() []byte {
	body := string(e.kind) + " " + strconv.FormatInt(e.wallMS, 10) + " " +
		strconv.FormatInt(e.bootMS, 10)
	switch {
	case e.kind == kindSuspend, e.kind == kindJump:
		body += " " + strconv.FormatInt(e.value, 10)
	case e.kind == kindStart && e.bootID != "":
		body += " " + e.bootID
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE([]byte(body)), body)
}

// parseLine reads what line wrote, without the line's end.
func parseLine(text string) (entry, error) {
	if len(text) > maxLineBytes {
		return entry{}, fmt.Errorf("%w: longer than %d bytes", errLine, maxLineBytes)
	}
	sum, body, _ := strings.Cut(text, " ")
	if fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) != sum {
		return entry{}, fmt.Errorf("%w: wrong checksum", errLine)
	}
	fields := strings.Split(body, " ")
	if len(fields) < 3 || len(fields) > 4 {
		return entry{}, fmt.Errorf("%w: want 3 or 4 fields, have %d", errLine, len(fields))
	}
	e := entry{kind: kind(fields[0])}
	var err error
	if e.wallMS, err = milliseconds(fields[1]); err != nil {
		return entry{}, err
	}
	if e.bootMS, err = milliseconds(fields[2]); err != nil {
		return entry{}, err
	}
	return e.withRest(fields[3:])
}

// withRest reads what follows the clocks.
func (e entry) withRest(rest []string) (_ entry, err error) {
	switch e.kind {
	case kindBeat, kindStop, kindBusy, kindFree:
		if len(rest) != 0 {
			return e, fmt.Errorf("%w: too many fields", errLine)
		}
	case kindStart:
		if len(rest) == 1 {
			e.bootID = rest[0]
		}
		if len(e.bootID) > maxBootID {
			return e, fmt.Errorf("%w: name of the boot", errLine)
		}
	case kindSuspend, kindJump:
		if len(rest) != 1 {
			return e, fmt.Errorf("%w: too few fields", errLine)
		}
		e.value, err = milliseconds(rest[0])
	default:
		return e, fmt.Errorf("%w: unknown kind", errLine)
	}
	return e, err
}

func milliseconds(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxMS || n < -maxMS {
		return 0, fmt.Errorf("%w: want milliseconds, have %.20q", errLine, text)
	}
	return n, nil
}

// parse reads a file: the entries that are whole, and the lines that are not.
func parse(text []byte) (entries []entry, damaged []string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if line == "" {
			continue
		}
		e, err := parseLine(line)
		if err != nil {
			damaged = append(damaged, line)
			continue
		}
		entries = append(entries, e)
	}
	return entries, damaged
}

// compact leaves out the heartbeats that something later makes superfluous.
func compact(entries []entry) []entry {
	kept := make([]entry, 0, len(entries))
	for i, e := range entries {
		if e.kind == kindBeat && i+1 < len(entries) && entries[i+1].kind != kindStart {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// youngest leaves out whole runs, oldest first, until the first one left ended after a
// time, or has a clock that cannot be right, and all together are no longer than a
// number of bytes. The last run stays in any case.
func youngest(entries []entry, afterMS int64, limit int) []entry {
	size := 0
	for _, e := range entries {
		size += len(e.line())
	}
	for len(entries) > 0 {
		next := 1
		for next < len(entries) && entries[next].kind != kindStart {
			next++
		}
		ended := entries[next-1].wallMS
		old := ended < afterMS && time.UnixMilli(ended).UTC().Year() >= firstYear
		if next == len(entries) || size <= limit && !old {
			break
		}
		for _, e := range entries[:next] {
			size -= len(e.line())
		}
		entries = entries[next:]
	}
	return entries
}
