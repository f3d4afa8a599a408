package view

// MachineView tells what was found out about a site's machine, apart from what its
// owner gives. What is left out is unknown.
type MachineView struct {
	OS              string `json:"os,omitempty"`
	Arch            string `json:"arch,omitempty"`
	CPUModel        string `json:"cpu_model,omitempty"`
	Cores           int    `json:"cores,omitempty"`
	MemoryBytes     *int64 `json:"memory_bytes,omitempty"`
	FreeMemoryBytes *int64 `json:"free_memory_bytes,omitempty"`
	DiskBytes       *int64 `json:"disk_bytes,omitempty"`
	FreeDiskBytes   *int64 `json:"free_disk_bytes,omitempty"`
	// of that, what the owner keeps: with less nothing starts, and jobs are frozen
	KeptDiskBytes int64 `json:"kept_disk_bytes,omitempty"`
	// nominal: of one core on the quiet machine
	CoreMFLOPS *int64 `json:"core_mflops,omitempty"`
	// of one core, what the host leaves of it
	CoreMFLOPSNow *int64 `json:"core_mflops_now,omitempty"`
	DiskBps       *int64 `json:"disk_bps,omitempty"` // rate of the disk
	// that others than this agent use, over some seconds, stolen ones included
	OtherCores *float64 `json:"other_cores,omitempty"`
	// of these, that the host gave to other guests
	StolenCores *float64 `json:"stolen_cores,omitempty"`
	// part of the time in which others waited for a processor, 0 to 1
	CPUPressure    *float64 `json:"cpu_pressure,omitempty"`
	MemoryPressure *float64 `json:"memory_pressure,omitempty"` // likewise for memory
	IOPressure     *float64 `json:"io_pressure,omitempty"`     // likewise for a disk
	// what is still to be measured, and why it was not
	Pending string `json:"pending,omitempty"`
}

// Standing gives a site's distance for a job, or why it would refuse it.
type Standing struct {
	Job            string   `json:"job"`         // what is asked for, for people
	X              *float64 `json:"x,omitempty"` // computation
	Y              *float64 `json:"y,omitempty"` // data
	Z              *float64 `json:"z,omitempty"` // availability: 1 - P(stays up)
	Distance       *float64 `json:"distance,omitempty"`
	WaitSeconds    *float64 `json:"wait_seconds,omitempty"`
	StageInSeconds *float64 `json:"stage_in_seconds,omitempty"`
	RunSeconds     *float64 `json:"run_seconds,omitempty"`
	Refusal        string   `json:"refusal,omitempty"` // left out: it would offer
}

// FullDisk must be free, in bytes, for the agent's own records and a small result.
const FullDisk = 16 << 20

// DiskFull reports whether the disk is known to be too full for the agent's records and
// the results of jobs. Of an unknown machine it is not known.
func (m *MachineView) DiskFull() bool {
	return m != nil && m.FreeDiskBytes != nil && *m.FreeDiskBytes < FullDisk
}

// DiskLow reports whether the disk is known to have less free than its owner keeps.
func (m *MachineView) DiskLow() bool {
	return m != nil && m.FreeDiskBytes != nil && *m.FreeDiskBytes < m.KeptDiskBytes
}
