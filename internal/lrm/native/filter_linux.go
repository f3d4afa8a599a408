package native

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
)

// The places in what the kernel shows a filter of a system call.
const (
	callNumber = 0
	callArch   = 4
	callFirst  = 16 // lower half of the first argument, on little-endian machines
	callSecond = 24
	word       = 4 // bytes
)

// callFilter is a program for the kernel that lets a command make the system calls that rulesOf
// allows, and refuses all others. Besides those that no program without rights needs it
// refuses what namespaces do not enclose: sockets that reach the machine's host or its
// radios, the owner's keys, typing into a terminal, watches of files, which the
// kernel counts together with the owner's, and what holds files for others. Where no control group
// holds memory it refuses memory that belongs to no process, too: looking at processes does
// not see it. It is nil where the machine's architecture is not known.
func callFilter(memoryHeld bool) ([]byte, error) {
	if _, known := auditArch(runtime.GOARCH); !known {
		return nil, nil
	}
	program, err := filterFor(runtime.GOARCH, memoryHeld)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble filter of system calls: %w", err)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.NativeEndian, raw); err != nil { // as struct sock_filter
		return nil, fmt.Errorf("write filter of system calls: %w", err)
	}
	return out.Bytes(), nil
}

// auditArch is the kernel's name for an architecture.
func auditArch(arch string) (uint32, bool) {
	id, ok := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
	}[arch]
	return id, ok
}

// filterFor is the program for an architecture. Calls of another one are unknown, as are those with
// numbers that are in no list, such as the x32 calls of amd64.
func filterFor(arch string, memoryHeld bool) ([]bpf.Instruction, error) {
	rules, err := rulesOf(arch, memoryHeld)
	if err != nil {
		return nil, err
	}
	id, _ := auditArch(arch)
	begin := []bpf.Instruction{
		load(callArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: id, SkipTrue: 1},
		bpf.RetConstant{Val: unknown},
		load(callNumber),
	}
	return append(begin, search(runsOf(rules))...), nil
}

// run is a rule that holds from a number up to the next run.
type run struct {
	from uint32
	rule rule
}

// runsOf has the rules for all numbers, in their order.
func runsOf(rules map[uint32]rule) []run {
	runs := []run{{0, rule{verdict: unknown}}}
	add := func(number uint32, r rule) {
		if last := runs[len(runs)-1]; last.rule != r {
			runs = append(runs, run{number, r})
		}
	}
	next := uint32(0)
	for _, number := range slices.Sorted(maps.Keys(rules)) {
		if number > next {
			add(next, rule{verdict: unknown})
		}
		add(number, rules[number])
		next = number + 1
	}
	add(next, rule{verdict: unknown})
	if len(runs) > 1 && runs[1].from == 0 {
		runs = runs[1:]
	}
	return runs
}

// search finds the run of the number by halving: the kernel runs a filter for each of its calls
// when a command starts, to know those that need no look, and for those that do each time.
func search(runs []run) []bpf.Instruction {
	if len(runs) == 1 {
		return runs[0].rule.program()
	}
	half := len(runs) / 2
	lower, upper := search(runs[:half]), search(runs[half:])
	return slices.Concat([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: runs[half].from, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(lower))}, // a condition reaches no further than 255
	}, lower, upper)
}

// program ends with the verdict.
func (r rule) program() []bpf.Instruction {
	end := bpf.RetConstant{Val: r.verdict}
	if r.by == nil {
		return []bpf.Instruction{end}
	}
	program := []bpf.Instruction{
		load(r.by.at), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: r.by.mask},
	}
	for _, value := range r.by.among {
		program = append(
			program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipFalse: 1},
			bpf.RetConstant{Val: r.by.verdict},
		)
	}
	return append(program, end)
}

func load(at uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: at, Size: word} }

// keepFilter puts the filter behind supervise.FilterFD.
func keepFilter(program []byte) error {
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err = unix.Pwrite(fd, program, 0); err != nil {
		return err
	}
	if fd == supervise.FilterFD {
		_, err = unix.FcntlInt(supervise.FilterFD, unix.F_SETFD, 0)
		return err
	}
	return unix.Dup3(fd, supervise.FilterFD, 0)
}
