package view

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// JobSpec is a grid.Job as JSON: what POST /jobs takes.
type JobSpec struct {
	Name             string       `json:"name,omitempty"`
	Kind             string       `json:"kind"`             // wasm, command or reservation
	Module           *InputSpec   `json:"module,omitempty"` // wasm only; its path is left out
	Args             []string     `json:"args,omitempty"`
	Env              []EnvSpec    `json:"env,omitempty"`
	Inputs           []InputSpec  `json:"inputs,omitempty"`
	Outputs          []OutputSpec `json:"outputs,omitempty"`
	Need             Resources    `json:"need"`
	OS               string       `json:"os,omitempty"`
	Arch             string       `json:"arch,omitempty"`
	RuntimeSeconds   float64      `json:"runtime_seconds"`
	TimeLimitSeconds float64      `json:"time_limit_seconds,omitempty"`
	NotBefore        Time         `json:"not_before,omitzero"`
	At               Time         `json:"at,omitzero"` // the only start; excludes not_before
	Deadline         Time         `json:"deadline,omitzero"`
	Map              string       `json:"map,omitempty"`     // thesis (default) or seconds
	Weights          *WeightsSpec `json:"weights,omitempty"` // default: 1 each
	// of the map; default: computation, data, availability
	Dimensions []AxisSpec `json:"dimensions,omitempty"`
	Unattended string     `json:"unattended,omitempty"` // freeze (default), finish or stop
	Count      uint32     `json:"count"`
	Items      []ItemSpec `json:"items,omitempty"`
	TTLSeconds float64    `json:"ttl_seconds"`
	// among the submitter's own jobs, higher first
	Priority int    `json:"priority,omitempty"`
	Project  string `json:"project,omitempty"` // whose share of a site it counts against
	// it runs in what that holds, and nowhere else
	Reservation grid.JobID `json:"reservation,omitempty"`
	Overrun     string     `json:"overrun,omitempty"` // suspend (default) or stop
	// auto (default), off, or every and a span
	Checkpoint string       `json:"checkpoint,omitempty"`
	After      []grid.JobID `json:"after,omitempty"` // own jobs that must be done before
	// never, if-needed or greedy: its tasks are parts that run together
	Split     string `json:"split,omitempty"`
	CommBytes int64  `json:"comm_bytes,omitempty"` // what each part exchanges with the others
	// several sites queue it, and the first whose turn it is runs it
	Flood       bool   `json:"flood,omitempty"`
	Retries     uint32 `json:"retries,omitempty"`      // of a task that fails by its own doing
	MaxFailures uint32 `json:"max_failures,omitempty"` // failed tasks that end the job
	// how many copies of each task run: a number, or auto
	Replicas  string `json:"replicas,omitempty"`
	Agreement uint32 `json:"agreement,omitempty"` // how many of them have to give the same result
	// the part of the results that is compared with that of another site
	Verify float64 `json:"verify,omitempty"`
	// outputs of jobs in after that become inputs when these are done
	Takes []TakeSpec `json:"takes,omitempty"`
	Held  bool       `json:"held,omitempty"` // it is not placed before it is released
	// who vouches for what it runs
	Signature *SignatureSpec `json:"signature,omitempty"`
	// names the key for which its content was encrypted; left out: it was not
	Encrypt string `json:"encrypt,omitempty"`
}

// SignatureSpec is a grid.Signature as JSON.
type SignatureSpec struct {
	Of     string `json:"of"`              // template or module
	Digest string `json:"digest"`          // BLAKE2b-512 of it, in hexadecimal digits
	Text   string `json:"text"`            // as minisign writes it
	Items  uint32 `json:"items,omitempty"` // that a template covers
	Root   string `json:"root,omitempty"`  // of their Merkle tree, in hexadecimal digits
}

func fromSignature(s grid.Signature) *SignatureSpec {
	if s.IsZero() {
		return nil
	}
	return &SignatureSpec{
		Of: s.Of.String(), Digest: s.Digest, Text: s.Text, Items: s.Items, Root: s.Root,
	}
}

// grid converts back; what it does not know fails the validation of the job.
func (s *SignatureSpec) grid() grid.Signature {
	if s == nil {
		return grid.Signature{}
	}
	out := grid.Signature{Digest: s.Digest, Text: s.Text, Items: s.Items, Root: s.Root}
	for _, of := range []grid.SignedPart{grid.SignedTemplate, grid.SignedModule} {
		if s.Of == of.String() {
			out.Of = of
		}
	}
	return out
}

// TakeSpec is a grid.Take as JSON.
type TakeSpec struct {
	Path   string     `json:"path"`
	Job    grid.JobID `json:"job"`
	Output string     `json:"output"`
	// each task takes that of the task with its own index alone
	Each bool `json:"each,omitempty"`
}

// InputSpec is a grid.Input as JSON.
type InputSpec struct {
	Path  string   `json:"path,omitempty"`
	CID   grid.CID `json:"cid"`
	Bytes int64    `json:"bytes"`
	Dir   bool     `json:"dir,omitempty"`
}

// OutputSpec is a grid.Output as JSON.
type OutputSpec struct {
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
}

// EnvSpec is a grid.EnvVar as JSON.
type EnvSpec struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ItemSpec is a grid.Item as JSON.
type ItemSpec struct {
	Value  string      `json:"value"`
	Inputs []InputSpec `json:"inputs,omitempty"`
	Proof  string      `json:"proof,omitempty"` // that a signed template covers it
}

// WeightsSpec is grid.Weights as JSON.
type WeightsSpec struct {
	C float64 `json:"C"`
	M float64 `json:"M"`
	F float64 `json:"F"`
	P float64 `json:"P"`
}

// AxisSpec is a grid.Axis as JSON.
type AxisSpec struct {
	Dimension string  `json:"dimension"`
	Weight    float64 `json:"weight"`
}

// Resources is grid.Resources as JSON.
type Resources struct {
	MilliCPUs   int64 `json:"milli_cpus"`
	MemoryBytes int64 `json:"memory_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`
	MFLOPS      int64 `json:"mflops,omitempty"`  // left out: none is asked for, or nobody knows
	NetBps      int64 `json:"net_bps,omitempty"` // likewise, bit/s of the link
}

// FromResources converts.
func FromResources(r grid.Resources) Resources { return Resources(r) }

// grid converts.
func (r Resources) grid() grid.Resources { return grid.Resources(r) }

// FromJob converts a job to its JSON form.
func FromJob(j grid.Job) JobSpec {
	s := j.Spec
	out := JobSpec{
		Name: s.Name, Kind: s.Kind.String(), Args: s.Args, Inputs: fromInputs(s.Inputs),
		Need: Resources(s.Need), OS: s.OS, Arch: s.Arch,
		RuntimeSeconds: s.Runtime.Seconds(), TimeLimitSeconds: s.TimeLimit.Seconds(),
		NotBefore: At(s.Window.NotBefore), At: At(s.Window.At), Deadline: At(s.Window.Deadline),
		Map: s.Map.String(), Weights: (*WeightsSpec)(&s.Weights),
		Unattended: s.Unattended.String(), Count: j.Count, TTLSeconds: j.TTL.Seconds(),
		Priority: s.Priority, Project: s.Project,
		Reservation: s.Reservation, Overrun: overrunWord(s.Overrun),
		Checkpoint: savingWord(s.Checkpoint),
		After:      j.After, Split: j.Split.String(), CommBytes: j.CommBytes, Flood: j.Flood,
		Retries: j.Retries, MaxFailures: j.MaxFailures,
		Replicas: j.Redundancy.ReplicasWord(), Agreement: j.Redundancy.Agreement,
		Verify: j.Redundancy.Verify, Held: j.Held, Signature: fromSignature(s.Signature),
		Encrypt: j.Encryption.Name,
	}
	for _, t := range j.Takes {
		out.Takes = append(out.Takes, TakeSpec(t))
	}
	if s.Module.CID != "" {
		out.Module = &InputSpec{CID: s.Module.CID, Bytes: s.Module.Bytes}
	}
	for _, a := range s.Axes {
		out.Dimensions = append(out.Dimensions, AxisSpec{
			Dimension: a.Dimension.String(), Weight: a.Weight,
		})
	}
	for _, e := range s.Env {
		out.Env = append(out.Env, EnvSpec(e))
	}
	for _, o := range s.Outputs {
		out.Outputs = append(out.Outputs, OutputSpec(o))
	}
	for _, item := range j.Items {
		out.Items = append(out.Items, ItemSpec{
			Value: item.Value, Inputs: fromInputs(item.Inputs), Proof: item.Proof,
		})
	}
	return out
}

func fromInputs(inputs []grid.Input) []InputSpec {
	var out []InputSpec
	for _, in := range inputs {
		out = append(out, InputSpec(in))
	}
	return out
}

func toInputs(inputs []InputSpec) []grid.Input {
	var out []grid.Input
	for _, in := range inputs {
		out = append(out, grid.Input(in))
	}
	return out
}

// Job converts back and validates. Every error wraps grid.ErrInvalid.
func (s JobSpec) Job() (grid.Job, error) {
	kind, err := parseKind(s.Kind)
	if err != nil {
		return grid.Job{}, err
	}
	mapKind, err := ParseMap(s.Map)
	if err != nil {
		return grid.Job{}, err
	}
	unattended, err := grid.ParseUnattended(s.Unattended)
	if err != nil {
		return grid.Job{}, err
	}
	weights := grid.DefaultWeights()
	if s.Weights != nil {
		weights = grid.Weights(*s.Weights)
	}
	job := grid.Job{
		Spec: grid.Spec{
			Name: s.Name, Kind: kind, Args: s.Args, Inputs: toInputs(s.Inputs), Need: s.Need.grid(),
			OS: s.OS, Arch: s.Arch, Runtime: Duration(s.RuntimeSeconds),
			TimeLimit: Duration(s.TimeLimitSeconds),
			Window: grid.Window{ // a job reads the same however it travelled
				NotBefore: s.NotBefore.UTC(), At: s.At.UTC(), Deadline: s.Deadline.UTC(),
			},
			Map: mapKind, Weights: weights, Unattended: unattended,
			Priority: s.Priority, Project: s.Project, Reservation: s.Reservation,
			Signature: s.Signature.grid(), Encrypted: s.Encrypt != "",
		},
		Count: s.Count, TTL: Duration(s.TTLSeconds), After: s.After, CommBytes: s.CommBytes,
		Flood: s.Flood, Retries: s.Retries, MaxFailures: s.MaxFailures, Held: s.Held,
		Encryption: grid.Encryption{Name: s.Encrypt},
	}
	if err = s.fillWords(&job); err != nil {
		return grid.Job{}, err
	}
	s.fill(&job)
	if job.Spec.Axes, err = s.axes(); err != nil {
		return grid.Job{}, err
	}
	if err := job.Validate(); err != nil {
		return grid.Job{}, fmt.Errorf("check job: %w", err)
	}
	return job, nil
}

func (s JobSpec) axes() ([]grid.Axis, error) {
	var axes []grid.Axis
	for _, a := range s.Dimensions {
		d, err := grid.ParseDimension(a.Dimension)
		if err != nil {
			return nil, err
		}
		axes = append(axes, grid.Axis{Dimension: d, Weight: a.Weight})
	}
	return axes, nil
}

func (s JobSpec) fill(job *grid.Job) {
	if s.Module != nil {
		job.Spec.Module = grid.Input(*s.Module)
	}
	for _, e := range s.Env {
		job.Spec.Env = append(job.Spec.Env, grid.EnvVar(e))
	}
	for _, o := range s.Outputs {
		job.Spec.Outputs = append(job.Spec.Outputs, grid.Output(o))
	}
	for _, t := range s.Takes {
		job.Takes = append(job.Takes, grid.Take(t))
	}
	for _, item := range s.Items {
		job.Items = append(job.Items, grid.Item{
			Value: item.Value, Inputs: toInputs(item.Inputs), Proof: item.Proof,
		})
	}
}

func parseKind(word string) (grid.WorkKind, error) {
	switch word {
	case grid.KindWasm.String():
		return grid.KindWasm, nil
	case grid.KindCommand.String():
		return grid.KindCommand, nil
	case grid.KindReservation.String():
		return grid.KindReservation, nil
	default:
		return 0, fmt.Errorf("%w: kind %q: want wasm, command or reservation", grid.ErrInvalid, word)
	}
}

// ParseMap reads the word for a map: thesis (also for nothing) or seconds.
func ParseMap(word string) (grid.MapKind, error) {
	switch word {
	case "", grid.MapThesis.String():
		return grid.MapThesis, nil
	case grid.MapSeconds.String():
		return grid.MapSeconds, nil
	default:
		return 0, fmt.Errorf("%w: map %q: want thesis or seconds", grid.ErrInvalid, word)
	}
}
