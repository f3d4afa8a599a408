package jobfile

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// File is a job file: the job to be, its inputs still paths or CIDs, other jobs still
// as they were written.
type File struct {
	Spec   grid.Spec // without Module and Inputs; Args hold a command's line too
	Wasm   Ref       // the module; empty for a command
	Inputs []InputRef
	Items  []ItemRef // of items as a list
	Glob   string    // of items as a glob; empty = none
	Count  uint32    // of an array without items, or 1
	TTL    time.Duration

	After       []Ref // own jobs that must be done before, by ID or its beginning
	Reservation Ref   // the one it runs in, likewise; empty = none
	Split       grid.Split
	CommBytes   int64
	Flood       bool
	Redundancy  grid.Redundancy
	Retries     uint32 // of a task that fails by its own doing
	MaxFailures uint32 // failed tasks that end the job; 0: no number of them
	Held        bool   // it is not placed before it is released
	Encrypt     bool   // its content is encrypted, see Plan.KeyName

	Notes []string       // assumptions to show to the user
	lines map[string]int // field -> line, for what Resolve finds

	vouching     vouching
	allowOutside bool // as Options say
	unsigned     bool // likewise
}

// Ref is a text that names content: a path or cid:CID.
type Ref struct {
	Text  string
	Field string // its place in the file, for messages
}

// InputRef is an input whose content is named, or that another job leaves.
type InputRef struct {
	Path string // inside the sandbox
	From Ref    // empty if Take is not
	Take TakeRef
}

// TakeRef names an output of another job.
type TakeRef struct {
	Job    Ref    // by ID or its beginning, in a flow by name; empty = none
	Output string // its path there
	Each   bool   // each task takes that of the task with its own index alone
}

// isTaken reports whether another job leaves it.
func (in InputRef) isTaken() bool { return in.Take.Job.Field != "" }

// ItemRef is one item of a list. Its own inputs come from a file that Format
// wrote.
type ItemRef struct {
	Value  string
	Inputs []InputRef
}

// Defaults of what a job file leaves out.
const (
	defaultRuntime     = 10 * time.Minute
	defaultMilliCPUs   = 1_000
	defaultMFLOPS      = 1_000
	defaultMemoryBytes = 128 << 20
	defaultDiskBytes   = 64 << 20
	defaultTTL         = time.Second
)

// newFile is a job file with the defaults and nothing to run.
func newFile(o Options) *File {
	return &File{
		Spec: grid.Spec{
			Need: grid.Resources{
				MilliCPUs: defaultMilliCPUs, MFLOPS: defaultMFLOPS,
				MemoryBytes: defaultMemoryBytes, DiskBytes: defaultDiskBytes,
			},
			Weights: grid.DefaultWeights(),
		},
		Count: 1, TTL: defaultTTL, lines: map[string]int{}, Encrypt: o.Encrypt,
		allowOutside: o.AllowOutside, unsigned: o.Unsigned,
	}
}
