package grid

import (
	"math"
	"time"
)

// WorkKind says what a task is made of.
type WorkKind uint8

// The kinds of work.
const (
	KindWasm    WorkKind = iota + 1 // a WASI preview 1 module
	KindCommand                     // a command under the site's sandbox
	// KindReservation runs nothing: capacity is held for the jobs that are bound to it.
	// Every site can do that.
	KindReservation
	workKinds = KindReservation
)

// Validate reports a kind that this version does not know.
func (k WorkKind) Validate() error {
	if k < KindWasm || k > workKinds {
		return invalidf("kind of work %d is unknown", k)
	}
	return nil
}

// String is the job file's word for the kind.
func (k WorkKind) String() string {
	switch k {
	case KindWasm:
		return "wasm"
	case KindCommand:
		return "command"
	case KindReservation:
		return "reservation"
	default:
		return "unknown"
	}
}

// MapKind selects the virtual map in which distance is measured.
type MapKind uint8

// The maps of protocol.md, "Where a job waits".
const (
	MapThesis  MapKind = iota // raw x, y, z; a site offers only what starts now
	MapSeconds                // axes in seconds; sites queue in their plans
	mapKinds   = MapSeconds
)

// String is the job file's word for the map.
func (m MapKind) String() string {
	if m == MapSeconds {
		return "seconds"
	}
	return "thesis"
}

// Weights are the factors K of the computation index, one for each dimension.
// 0 ignores a dimension, 1 is neutral.
type Weights struct {
	C float64 // computation
	M float64 // memory
	F float64 // disk
	P float64 // bandwidth potential
}

// DefaultWeights weighs every dimension alike.
func DefaultWeights() Weights { return Weights{C: 1, M: 1, F: 1, P: 1} }

// Validate reports a weight that is negative, infinite or no number.
func (w Weights) Validate() error {
	for _, k := range []float64{w.C, w.M, w.F, w.P} {
		if !(k >= 0) || k > math.MaxFloat32 {
			return invalidf("weights: want finite numbers of at least 0, have %v", w)
		}
	}
	return nil
}

// Window bounds when a task may run. The zero time leaves a side open. All of them
// are moments, so that zones and summer time do not matter here.
type Window struct {
	NotBefore time.Time // earliest start
	At        time.Time // the only start (OpenCCS' Fix-Time); excludes NotBefore
	Deadline  time.Time // latest end
}

// Promised reports whether the window asks for a promise rather than for a best
// effort: a fixed start or a deadline.
func (w Window) Promised() bool { return !w.At.IsZero() || !w.Deadline.IsZero() }

// Earliest is the earliest start, zero if it is open.
func (w Window) Earliest() time.Time {
	if !w.At.IsZero() {
		return w.At
	}
	return w.NotBefore
}

// Shift moves the sides that are not open.
func (w Window) Shift(by time.Duration) Window {
	for _, side := range []*time.Time{&w.NotBefore, &w.At, &w.Deadline} {
		if !side.IsZero() {
			*side = side.Add(by)
		}
	}
	return w
}

// Validate reports a window that ends before it begins.
func (w Window) Validate() error {
	if !w.At.IsZero() && !w.NotBefore.IsZero() {
		return invalidf("window: a fixed start and an earliest start exclude each other")
	}
	if !w.At.IsZero() && !w.Deadline.IsZero() && !w.At.Before(w.Deadline) {
		return invalidf("window: the deadline %s is not after the start %s",
			w.Deadline.Format(time.RFC3339), w.At.Format(time.RFC3339))
	}
	if !w.NotBefore.IsZero() && !w.Deadline.IsZero() && !w.NotBefore.Before(w.Deadline) {
		return invalidf("window: the deadline %s is not after the earliest start %s",
			w.Deadline.Format(time.RFC3339), w.NotBefore.Format(time.RFC3339))
	}
	return nil
}

// Input is data that is at Path before the task starts.
type Input struct {
	Path  string // absolute path inside the sandbox
	CID   CID    // the content
	Bytes int64  // its size
	Dir   bool   // a directory rather than a file
}

// Output is data that the task leaves at Path.
type Output struct {
	Path string // absolute path inside the sandbox
	To   string // where the submitter wants it, relative to the job file; meaningless to sites
}

// EnvVar is one environment variable.
type EnvVar struct {
	Name  string
	Value string
}

// Spec says what to run: one task, or the template of every task of an array. In Args,
// Env, Input.Path, Output.Path and Output.To the words {{index}} and {{item}} stand for
// the task's own, and {{job}} for the job's ID.
type Spec struct {
	Name   string   // for people; at most 128 bytes
	Kind   WorkKind // what Module and Args mean
	Module Input    // wasm: the module; command: empty
	// Args are the arguments behind a module's name, or a command's whole line.
	Args       []string
	Env        []EnvVar      // ascending by name
	Inputs     []Input       // common to all tasks
	Outputs    []Output      // of each task
	Need       Resources     // what one task needs
	OS         string        // required operating system, empty = any
	Arch       string        // required architecture, empty = any
	Runtime    time.Duration // estimate on a site that offers exactly Need.MFLOPS
	TimeLimit  time.Duration // a task is stopped after running this long; 0 = the site's own limit
	Window     Window        // when it may run
	Map        MapKind       // how distance is measured
	Weights    Weights       // of the computation index
	Axes       []Axis        // of the map; none = DefaultAxes
	Unattended Unattended    // what happens when the submitter is gone

	Priority    int    // among its submitter's own jobs, higher first, -MaxPriority to MaxPriority
	Project     string // whose share of a site it counts against; empty = none, at most 64 bytes
	Reservation JobID  // it runs in what that reservation holds, and nowhere else; empty = none
	Overrun     Overrun
	Checkpoint  Saving `json:",omitzero"` // when its tasks' states are saved
	// Signature says who vouches for it.
	Signature Signature `json:",omitzero"`
	// Encrypted: what it reads and leaves is encrypted wherever it lies, see Encryption.
	Encrypted bool `json:",omitempty"`
}

// Item sets one task of an array apart from the others.
type Item struct {
	Value  string  // replaces {{item}}
	Inputs []Input // in addition to the common ones
	// Proof shows that the item is one of those that a signed template covers, at most maxProof
	// bytes; empty in other jobs.
	Proof string `json:",omitempty"`
}

// Job is everything the submitter knows of what it submitted.
type Job struct {
	Spec  Spec
	Count uint32        // number of tasks, at least 1
	Items []Item        // empty, or one for each task
	TTL   time.Duration // how long answers to an announcement are awaited

	After     []JobID // own jobs that must be done before this one is announced; at most MaxAfter
	Split     Split   // whether its tasks are parts that run together
	CommBytes int64   // what each part exchanges with the others in all, bytes
	Flood     bool    // several sites queue it, and the first whose turn it is runs it (Migol 6.2.2)

	// Retries counts the further runs of a task that fails by its own doing, at most MaxRetries; 0:
	// its first end is final.
	Retries uint32 `json:",omitempty"`
	// MaxFailures counts the failed tasks that end the job: what is left of it is stopped then; 0:
	// no number of them.
	MaxFailures uint32 `json:",omitempty"`
	// Redundancy says how often each task runs, and what has to agree.
	Redundancy Redundancy `json:",omitzero"`

	// Takes are outputs of jobs in After that become inputs of this one, at most as many as inputs.
	Takes []Take `json:",omitzero"`
	// Held: it is not placed before its submitter releases it.
	Held bool `json:",omitempty"`
	// Encryption names the key of an encrypted job; sites get it encrypted for each alone.
	Encryption Encryption `json:",omitzero"`
}

// Limits on what a job may hold; bulk goes through the data room.
const (
	MaxTasks    = 100_000   // tasks of one job
	maxArgs     = 1_024     // arguments, variables or outputs of a task
	MaxInputs   = maxArgs   // of a task
	MaxSpecText = 128 << 10 // bytes of all texts of a Spec
	MinTTL      = 10 * time.Millisecond
	MaxTTL      = 5 * time.Minute
	MaxAfter    = 256   // jobs that one waits for
	MaxPriority = 1_000 // of a job
	MaxRetries  = 100   // of a task
	maxProject  = 64
	MaxRuntime  = 366 * 24 * time.Hour
	maxName     = 128
	maxPath     = 4_096
)

// Validate reports the first thing that no site could run.
func (j Job) Validate() error {
	if j.Count < 1 || j.Count > MaxTasks {
		return invalidf("count: want 1 to %d tasks, have %d", MaxTasks, j.Count)
	}
	if len(j.Items) != 0 && len(j.Items) != int(j.Count) {
		return invalidf("items: want none or %d, have %d", j.Count, len(j.Items))
	}
	if j.TTL < MinTTL || j.TTL > MaxTTL {
		return invalidf("ttl: want %s to %s, have %s", MinTTL, MaxTTL, j.TTL)
	}
	for i, item := range j.Items {
		if err := item.Validate(); err != nil {
			return invalidf("item %d: %v", i, err)
		}
	}
	return firstError(j.validatePlacing(), j.validateEncryption(), j.Spec.Validate())
}

// Validate reports the first thing that no site could run.
func (it Item) Validate() error {
	if len(it.Value) > maxPath {
		return invalidf("value: longer than %d bytes", maxPath)
	}
	if len(it.Proof) > maxProof {
		return invalidf("proof: longer than %d bytes", maxProof)
	}
	return validateInputs(it.Inputs)
}

// Validate reports the first field that is out of its range.
func (s Spec) Validate() error {
	if len(s.Name) > maxName {
		return invalidf("name: longer than %d bytes", maxName)
	}
	if len(s.Args) > maxArgs || len(s.Env) > maxArgs || len(s.Outputs) > maxArgs {
		return invalidf("args, env, outputs: more than %d", maxArgs)
	}
	if s.textBytes() > MaxSpecText {
		return invalidf("the job's texts take more than %d bytes; put data into inputs", MaxSpecText)
	}
	if s.Map > mapKinds || s.Unattended > unattendedKinds || s.Overrun > overrunKinds {
		return invalidf("map, unattended or overrun: unknown value")
	}
	if s.Runtime <= 0 || s.Runtime > MaxRuntime {
		return invalidf("runtime: want more than 0 and at most %s, have %s", MaxRuntime, s.Runtime)
	}
	if s.TimeLimit < 0 || s.TimeLimit > MaxRuntime {
		return invalidf("limit: want 0 to %s, have %s", MaxRuntime, s.TimeLimit)
	}
	for _, out := range s.Outputs {
		if err := validatePath("output", out.Path); err != nil {
			return err
		}
	}
	return firstError(s.Kind.Validate(), s.validateWork(), s.validateStanding(), s.Need.Validate(),
		s.validateWhole(), s.Checkpoint.Validate(), s.Signature.Validate(),
		s.validateEncryption(),
		s.Window.Validate(), s.Weights.Validate(), ValidateAxes(s.Axes), validateInputs(s.Inputs))
}

func (s Spec) validateWork() error {
	switch {
	case s.Kind == KindWasm:
		return s.Module.CID.Validate()
	case s.Kind == KindReservation:
		if len(s.Args)+len(s.Inputs)+len(s.Outputs) > 0 || s.Module.CID != "" || s.Window.At.IsZero() {
			return invalidf("reservation: want a start and no work")
		}
		return nil
	case len(s.Args) == 0:
		return invalidf("command: empty")
	default:
		return nil
	}
}

func (s Spec) textBytes() int {
	n := len(s.Name) + len(s.OS) + len(s.Arch)
	for _, a := range s.Args {
		n += len(a)
	}
	for _, e := range s.Env {
		n += len(e.Name) + len(e.Value)
	}
	for _, o := range s.Outputs {
		n += len(o.Path) + len(o.To)
	}
	return n
}

func validateInputs(inputs []Input) error {
	if len(inputs) > maxArgs {
		return invalidf("inputs: more than %d", maxArgs)
	}
	for _, in := range inputs {
		err := firstError(validatePath("input", in.Path), in.CID.Validate(),
			checkRange("input "+in.Path+" (bytes)", in.Bytes, maxBytes))
		if err != nil {
			return err
		}
	}
	return nil
}

// validatePath wants an absolute, clean path without a way out.
func validatePath(what, path string) error {
	if len(path) < 2 || len(path) > maxPath || path[0] != '/' {
		return invalidf("%s path %q: want an absolute path below /", what, path)
	}
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] == 0 {
			return invalidf("%s path: holds a zero byte", what)
		}
		if i < len(path) && path[i] != '/' {
			continue
		}
		if part := path[start:i]; part == "" || part == "." || part == ".." {
			return invalidf("%s path %q: empty, . and .. are not allowed as parts", what, path)
		}
		start = i + 1
	}
	return nil
}
