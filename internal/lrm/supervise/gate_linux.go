package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// gate holds back what a sandbox runs until that is bounded. Nothing but a byte opens it: the
// program's own descriptor writes as well as it reads, so that no end comes when the
// supervisor dies.
type gate struct {
	limits map[int]uint64
	info   *os.File // tells who waits
	bar    *os.File // takes the byte
}

// newGate makes a gate and puts the program's ends of it behind GateFD and InfoFD, which are
// counted from the standard input, the first of the files.
func newGate(limits map[int]uint64, files []*os.File) (*gate, []*os.File, error) {
	files = padded(files, GateFD-StatusFD+1) // the standard input is the first
	var bar [2]int
	// Not by the runtime's own pipes: what waits must block.
	if err := unix.Pipe2(bar[:], unix.O_CLOEXEC); err != nil {
		return nil, files, fmt.Errorf("make gate: %w", err)
	}
	g := &gate{limits: limits, bar: os.NewFile(uintptr(bar[1]), "gate")}
	waits, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", bar[0]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	_ = unix.Close(bar[0])
	if err != nil {
		g.close()
		return nil, files, fmt.Errorf("make gate: %w", err)
	}
	files = append(files, os.NewFile(uintptr(waits), "gate"))
	info, tells, err := os.Pipe()
	if err != nil {
		g.close()
		return nil, files, fmt.Errorf("make gate: %w", err)
	}
	g.info = info
	return g, append(files, tells), nil
}

// open bounds who waits at the gate, and lets it go on. An error means that it does not.
func (g *gate) open() error {
	defer g.close()
	var told struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(g.info).Decode(&told); err != nil {
		return fmt.Errorf("hear who waits at the gate: %w", err)
	}
	if !isProcess(told.Child) {
		return errors.New("nobody waits at the gate")
	}
	if err := limit(told.Child, g.limits); err != nil {
		return err
	}
	if _, err := g.bar.Write([]byte{1}); err != nil {
		return fmt.Errorf("open gate: %w", err)
	}
	return nil
}

func (g *gate) close() {
	if g == nil {
		return
	}
	closeAll([]*os.File{g.info, g.bar})
}
