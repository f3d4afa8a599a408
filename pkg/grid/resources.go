package grid

import "slices"

// Resources is an amount of a machine, asked for, offered, free or in use. All
// fields are at least 0.
type Resources struct {
	MilliCPUs   int64 // thousandths of a core
	MemoryBytes int64 // main memory
	DiskBytes   int64 // scratch space
	MFLOPS      int64 // sustained computation, 10^6 FLOP/s
	// NetBps is the part of the site's link, in bit/s, that the data of a task may take; 0 =
	// nothing is asked for, or unknown.
	NetBps int64
}

// maxAmount bounds every quantity far below overflow: sums of a million of them
// still fit an int64.
const maxAmount = 1 << 43

// maxBytes bounds data and memory: 2^53 bytes, exact in a float64 too.
const maxBytes = 1 << 53

// Validate reports a negative or absurd amount by its field's name.
func (r Resources) Validate() error {
	return firstError(
		checkRange("cpus (thousandths)", r.MilliCPUs, maxAmount),
		checkRange("memory (bytes)", r.MemoryBytes, maxBytes),
		checkRange("disk (bytes)", r.DiskBytes, maxBytes),
		checkRange("computation (MFLOP/s)", r.MFLOPS, maxAmount),
		checkRange("bandwidth (bit/s)", r.NetBps, maxBytes),
	)
}

func checkRange(field string, value, most int64) error {
	if value < 0 || value > most {
		return invalidf("%s: want 0 to %d, have %d", field, most, value)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Add is the sum, field by field.
func (r Resources) Add(s Resources) Resources {
	return Resources{
		MilliCPUs:   r.MilliCPUs + s.MilliCPUs,
		MemoryBytes: r.MemoryBytes + s.MemoryBytes,
		DiskBytes:   r.DiskBytes + s.DiskBytes,
		MFLOPS:      r.MFLOPS + s.MFLOPS,
		NetBps:      r.NetBps + s.NetBps,
	}
}

// Sub is the difference, field by field; it may be negative.
func (r Resources) Sub(s Resources) Resources {
	return Resources{
		MilliCPUs:   r.MilliCPUs - s.MilliCPUs,
		MemoryBytes: r.MemoryBytes - s.MemoryBytes,
		DiskBytes:   r.DiskBytes - s.DiskBytes,
		MFLOPS:      r.MFLOPS - s.MFLOPS,
		NetBps:      r.NetBps - s.NetBps,
	}
}

// Fits reports whether s fits into r in every field.
func (r Resources) Fits(s Resources) bool {
	return s.MilliCPUs <= r.MilliCPUs && s.MemoryBytes <= r.MemoryBytes &&
		s.DiskBytes <= r.DiskBytes && s.MFLOPS <= r.MFLOPS && s.NetBps <= r.NetBps
}

// Min is the smaller of both, field by field.
func (r Resources) Min(s Resources) Resources {
	return Resources{
		MilliCPUs:   min(r.MilliCPUs, s.MilliCPUs),
		MemoryBytes: min(r.MemoryBytes, s.MemoryBytes),
		DiskBytes:   min(r.DiskBytes, s.DiskBytes),
		MFLOPS:      min(r.MFLOPS, s.MFLOPS),
		NetBps:      min(r.NetBps, s.NetBps),
	}
}

// Counted returns the resources that a task with this need counts as, and may use:
// nothing runs in nothing, and a task that asks for nothing must not get a default for
// which no capacity is held. At least a hundredth of a core, 16 MiB of memory, 1 MiB of
// disk.
func (r Resources) Counted() Resources {
	r.MilliCPUs = max(r.MilliCPUs, leastMilliCPUs)
	r.MemoryBytes = max(r.MemoryBytes, leastMemory)
	r.DiskBytes = max(r.DiskBytes, leastDisk)
	return r
}

// MayLeave bounds the outputs and logs of a task with this need, in bytes as they are stored: what
// it may write, what is kept of its two streams, and what packing adds.
func (r Resources) MayLeave() int64 {
	disk := r.Counted().DiskBytes
	return disk + disk/packing + leastLeft
}

const (
	leastLeft = 64 << 20 // two streams, and the blocks that hold small files
	packing   = 64       // one part in so many is added by the blocks that hold large ones
)

const (
	leastMilliCPUs = 10
	leastMemory    = 16 << 20
	leastDisk      = 1 << 20
)

// IsZero reports whether nothing is asked for or left.
func (r Resources) IsZero() bool { return r == Resources{} }

// Capability states what a site's owner gives to the mesh: ceilings, not what the
// hardware has.
type Capability struct {
	Total      Resources  // the owner's ceilings
	CoreMFLOPS int64      // sustained computation of one core, 10^6 FLOP/s; 0 = unknown
	DownBps    int64      // link towards this site, bit/s; 0 = unknown
	UpBps      int64      // link away from this site, bit/s; 0 = unknown
	DiskBps    int64      // local disk, bit/s; 0 = unknown
	OS         string     // operating system as Go names it, "linux"
	Arch       string     // architecture as Go names it, "amd64"
	Kinds      []WorkKind // what the site runs, ascending
	Saves      bool       `json:",omitempty"` // commands can be saved whole, see Saving.Whole
}

// Validate reports the first field that is out of range.
func (c Capability) Validate() error {
	if err := c.Total.Validate(); err != nil {
		return err
	}
	if len(c.Kinds) > int(workKinds) {
		return invalidf("kinds: more than there are")
	}
	for _, k := range c.Kinds {
		if err := k.Validate(); err != nil {
			return err
		}
	}
	if len(c.OS) > 32 || len(c.Arch) > 32 {
		return invalidf("os, arch: longer than 32 bytes")
	}
	return firstError(
		checkRange("core speed (MFLOP/s)", c.CoreMFLOPS, maxAmount),
		checkRange("download (bit/s)", c.DownBps, maxBytes),
		checkRange("upload (bit/s)", c.UpBps, maxBytes),
		checkRange("disk rate (bit/s)", c.DiskBps, maxBytes),
	)
}

// Runs reports whether the site runs that kind of work. Every site that runs
// anything can reserve.
func (c Capability) Runs(kind WorkKind) bool {
	return kind == KindReservation && len(c.Kinds) > 0 || slices.Contains(c.Kinds, kind)
}
