package native

import (
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	trialMilli  = 250      // of a core that a trial may use
	trialMemory = 64 << 20 // bytes that a trial may have
	trialDisk   = 1 << 20
)

// walls tell how the ceilings of commands are enforced here, each with a command
// that runs against it.
func (h *host) walls() []lrm.Wall {
	shell := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	cores := "the supervisor measures, and lets the command pause"
	memory := "the supervisor looks, and the kernel holds each process"
	disk := "the supervisor looks, and no file gets larger"
	if h.held {
		disk = "a file system of its own in memory, which counts as memory"
	}
	if h.groups.cpu() {
		cores = h.groups.version(ctlCPU)
	}
	if h.groups.memory() {
		memory = h.groups.version(ctlMemory)
	}
	return []lrm.Wall{
		{
			Ceiling: "cores", How: cores,
			Trial: &lrm.Trial{Args: shell("while :; do :; done"), Limits: lrm.Limits{MilliCPUs: trialMilli}},
		},
		{
			Ceiling: "memory", How: memory,
			Trial: &lrm.Trial{
				Args:   shell("x=0123456789abcdef; while :; do x=$x$x; done"),
				Limits: lrm.Limits{MemoryBytes: trialMemory, DiskBytes: trialDisk},
				Want:   grid.CauseMemory,
			},
		},
		{
			Ceiling: "disk", How: disk,
			Trial: &lrm.Trial{
				Args:   shell("while :; do echo 0123456789abcdef0123456789abcdef; done > file"),
				Limits: lrm.Limits{DiskBytes: trialDisk}, Want: grid.CauseDisk,
			},
		},
	}
}

// version says in which version of control groups a controller was found.
func (g groups) version(controller string) string {
	for _, h := range g {
		if h.has(controller) && h.v2 {
			return "control group, version 2"
		}
	}
	return "control group, version 1"
}
