package owner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// clockTick is the unit of /proc/stat: USER_HZ is 100 on all of Linux.
const clockTick = 10 * time.Millisecond

// The pressures, in the order of counts.pressure.
const (
	pressureCPU = iota
	pressureMemory
	pressureIO
	pressures
)

func pressureNames() [pressures]string { return [pressures]string{"cpu", "memory", "io"} }

// counts are counters that only grow, at one moment.
type counts struct {
	at       time.Time
	busy     time.Duration            // of all processors together; -1 = unknown
	stolen   time.Duration            // of busy, taken by other guests of the host; -1 = unknown
	pressure [pressures]time.Duration // in which something waited; -1 = unknown
	own      [pressures]time.Duration // in which something of this agent's waited; -1 = unknown
	load     yield.Reading
}

// probe reads the counters. It belongs to one goroutine.
type probe struct {
	cores    int
	stat     *os.File // nil = not there
	load     *os.File
	pressure [pressures]*os.File
	own      [pressures]*os.File // of the agent's own group
	group    string              // that group; empty: there is none
	buffer   []byte
}

// files of /proc and /sys do not get longer than this, as far as it matters.
const enough = 4096

// newProbe opens what there is below root, which is / but in tests. It fails only
// when nothing at all is told.
func newProbe(root string) (*probe, error) {
	p := &probe{buffer: make([]byte, enough), group: ownGroup(root)}
	open := func(name string) *os.File {
		f, err := os.Open(filepath.Join(root, name))
		if err != nil {
			return nil
		}
		return f
	}
	p.stat, p.load = open("proc/stat"), open("proc/loadavg")
	for i, name := range pressureNames() {
		p.pressure[i] = open(filepath.Join("proc/pressure", name))
		if _, known := p.total(p.pressure[i]); !known { // there, but switched off
			p.pressure[i] = nil
		}
		if p.group != "" {
			p.own[i] = open(filepath.Join(p.group, name+".pressure"))
		}
	}
	p.cores = countCores(filepath.Join(root, "proc/stat"))
	if p.cores == 0 {
		p.close()
		return nil, errors.New("this system does not report how busy it is")
	}
	return p, nil
}

func (p *probe) close() {
	for _, f := range append(append([]*os.File{p.stat, p.load}, p.pressure[:]...), p.own[:]...) {
		if f != nil {
			f.Close()
		}
	}
}

// countCores counts the processors of the machine: the agent may be bound to
// fewer, but /proc/stat counts all.
func countCores(stat string) int {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if len(line) > 3 && strings.HasPrefix(line, "cpu") && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}
	return n
}

// ownGroup is the control group that holds this agent, its jobs and nothing else,
// as that of a service does; empty if there is none.
func ownGroup(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		place, is := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !is {
			continue
		}
		for ; len(place) > 1; place = filepath.Dir(place) {
			name := filepath.Base(place)
			if strings.HasSuffix(name, ".service") && !strings.HasPrefix(name, "user@") {
				return filepath.Join("sys/fs/cgroup", place)
			}
		}
	}
	return ""
}

// read takes the counters.
func (p *probe) read(at time.Time) counts {
	c := counts{at: at, busy: -1, stolen: -1}
	if text := p.text(p.stat); text != nil {
		c.busy, c.stolen = busyTime(text)
	}
	if text := p.text(p.load); text != nil {
		if first, _, ok := bytes.Cut(text, []byte(" ")); ok {
			v, err := strconv.ParseFloat(string(first), 64)
			c.load = yield.Reading{Value: v, Known: err == nil}
		}
	}
	for i := range pressures {
		c.pressure[i], c.own[i] = -1, -1
		if d, known := p.total(p.pressure[i]); known {
			c.pressure[i] = d
		}
		if d, known := p.total(p.own[i]); known {
			c.own[i] = d
		}
	}
	return c
}

// text reads a file from its beginning; nil if that fails.
func (p *probe) text(f *os.File) []byte {
	if f == nil {
		return nil
	}
	n, err := f.ReadAt(p.buffer, 0)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return p.buffer[:n]
}

// busyTime sums the first line of /proc/stat: user, nice, system, interrupts and
// what other guests of the host took, which is also told alone; not idle, and not
// waiting for disks. -1 is unknown.
func busyTime(text []byte) (busy, stolen time.Duration) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	const idle, iowait, steal = 4, 5, 8 // places of fields, the name being 0; guests count as user
	if len(fields) <= iowait || fields[0] != "cpu" {
		return -1, -1
	}
	var ticks int64
	stolen = -1
	for i, f := range fields[1:min(len(fields), steal+1)] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return -1, -1
		}
		if i+1 != idle && i+1 != iowait {
			ticks += n
		}
		if i+1 == steal {
			stolen = time.Duration(n) * clockTick
		}
	}
	return time.Duration(ticks) * clockTick, stolen
}

// total is the counter of the line "some" of a pressure file, which reacts
// immediately; the averages beside it take seconds.
func (p *probe) total(f *os.File) (time.Duration, bool) {
	text := p.text(f)
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, number, found := bytes.Cut(line, []byte("total="))
	if !found || !bytes.HasPrefix(line, []byte("some ")) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
	return time.Duration(n) * time.Microsecond, err == nil
}

// how says for people what is watched, and what this system does not report.
func (p *probe) how() string {
	var have, lack []string
	for i, name := range pressureNames() {
		if p.pressure[i] != nil {
			have = append(have, name)
		} else {
			lack = append(lack, name)
		}
	}
	text := fmt.Sprintf("watching %d processors", p.cores)
	switch {
	case len(lack) == 0:
		text += " and the pressure on cpu, memory and io"
	case len(have) == 0:
		text += " and the load; this kernel does not report pressure"
	default:
		text += " and the pressure on " + strings.Join(have, " and ") +
			"; this kernel does not report it on " + strings.Join(lack, " and ")
	}
	return text
}
