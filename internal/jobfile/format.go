package jobfile

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Document is a job file as it is written: the keys of a job file, inputs as
// cid:. Its JSON is a job file.
type Document struct {
	Name       string            `json:"name,omitempty"`
	Wasm       string            `json:"wasm,omitempty"`
	Command    []string          `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Inputs     []docInput        `json:"inputs,omitempty"`
	Outputs    []docOutput       `json:"outputs,omitempty"`
	Resources  docResources      `json:"resources"`
	OS         string            `json:"os,omitempty"`
	Arch       string            `json:"arch,omitempty"`
	Runtime    string            `json:"runtime,omitempty"`
	Reserve    string            `json:"reserve,omitempty"`
	Limit      string            `json:"limit,omitempty"`
	Start      *docStart         `json:"start,omitempty"`
	Deadline   string            `json:"deadline,omitempty"`
	Items      []docItem         `json:"items,omitempty"`
	Count      uint32            `json:"count,omitempty"`
	TTL        string            `json:"ttl"`
	Unattended string            `json:"unattended"`
	Map        docMap            `json:"map"`

	After         []grid.JobID `json:"after,omitempty"`
	Priority      int          `json:"priority,omitempty"`
	Project       string       `json:"project,omitempty"`
	Reservation   grid.JobID   `json:"reservation,omitempty"`
	Overrun       string       `json:"overrun,omitempty"`
	Split         string       `json:"split,omitempty"`
	Communication string       `json:"communication,omitempty"`
	Placing       string       `json:"placing,omitempty"`
	Hold          bool         `json:"hold,omitempty"`
	Retries       uint32       `json:"retries,omitempty"`
	MaxFailures   uint32       `json:"max-failures,omitempty"`
	Checkpoint    string       `json:"checkpoint,omitempty"`
	Replicas      string       `json:"replicas,omitempty"`
	Agreement     uint32       `json:"agreement,omitempty"`
	Verify        float64      `json:"verify,omitempty"`
	Signature     string       `json:"signature,omitempty"`

	ModuleSignature string `json:"module-signature,omitempty"`
	Encrypt         bool   `json:"encrypt,omitempty"`
}

type docInput struct {
	Path string `json:"path"`
	From any    `json:"from"` // a text, or docTake
}

type docTake struct {
	Job    grid.JobID `json:"job"`
	Output string     `json:"output"`
	Each   bool       `json:"each,omitempty"`
}

type docOutput struct {
	Path string `json:"path"`
	To   string `json:"to"`
}

type docResources struct {
	GFLOPS float64 `json:"gflops"`
	CPUs   float64 `json:"cpus"`
	Memory string  `json:"memory"`
	Disk   string  `json:"disk"`

	Bandwidth string `json:"bandwidth,omitempty"`
}

type docStart struct {
	At        string `json:"at,omitempty"`
	NotBefore string `json:"notBefore,omitempty"`
}

type docItem struct {
	Value  string     `json:"value"`
	Inputs []docInput `json:"inputs,omitempty"`
}

type docMap struct {
	Kind    string     `json:"kind"`
	Weights docWeights `json:"weights"`

	Dimensions map[string]float64 `json:"dimensions,omitempty"`
}

type docWeights struct {
	C float64 `json:"C"`
	M float64 `json:"M"`
	F float64 `json:"F"`
	P float64 `json:"P"`
}

// Format writes a job as a job file.
func Format(job grid.Job) Document {
	s := job.Spec
	d := Document{
		Name: s.Name, Args: s.Args, Inputs: docInputs(s.Inputs), OS: s.OS, Arch: s.Arch,
		Resources: docResources{
			GFLOPS: float64(s.Need.MFLOPS) / 1000, CPUs: float64(s.Need.MilliCPUs) / 1000,
			Memory: bytesText(s.Need.MemoryBytes), Disk: bytesText(s.Need.DiskBytes),
		},
		Runtime: short(s.Runtime), TTL: short(job.TTL), Unattended: s.Unattended.String(),
		Map: docMap{Kind: s.Map.String(), Weights: docWeights(s.Weights)},
	}
	if s.Need.NetBps > 0 {
		d.Resources.Bandwidth = strconv.FormatInt(s.Need.NetBps, 10) + "bit/s"
	}
	switch s.Kind {
	case grid.KindCommand:
		d.Command, d.Args = s.Args, nil
	case grid.KindReservation:
		d.Reserve, d.Runtime = d.Runtime, ""
	default:
		d.Wasm = "cid:" + string(s.Module.CID)
	}
	fillDocument(&d, job)
	fillPlacing(&d, job)
	return d
}

// fillPlacing writes when, after what, in what and beside whom a job runs.
func fillPlacing(d *Document, job grid.Job) {
	s := job.Spec
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	d.Deadline = moment(s.Window.Deadline)
	start := (docStart{At: moment(s.Window.At), NotBefore: moment(s.Window.NotBefore)})
	if start != (docStart{}) {
		d.Start = &start
	}
	d.After, d.Priority, d.Project, d.Reservation = job.After, s.Priority, s.Project, s.Reservation
	d.Split = job.Split.String()
	if s.Overrun != grid.OverrunSuspend {
		d.Overrun = s.Overrun.String()
	}
	if s.Checkpoint != (grid.Saving{}) {
		d.Checkpoint = s.Checkpoint.String()
	}
	if job.CommBytes > 0 {
		d.Communication = bytesText(job.CommBytes)
	}
	if job.Flood {
		d.Placing = placingFlood
	}
	d.Hold, d.Retries, d.MaxFailures = job.Held, job.Retries, job.MaxFailures
	for _, t := range job.Takes {
		d.Inputs = append(d.Inputs, docInput{Path: t.Path, From: docTake{
			Job: t.Job, Output: t.Output, Each: t.Each,
		}})
	}
	d.Replicas, d.Agreement = job.Redundancy.ReplicasWord(), job.Redundancy.Agreement
	d.Verify, d.Encrypt = job.Redundancy.Verify, job.Spec.Encrypted
	switch s.Signature.Of {
	case grid.SignedTemplate:
		d.Signature = s.Signature.Text
	case grid.SignedModule:
		d.ModuleSignature = s.Signature.Text
	}
}

func fillDocument(d *Document, job grid.Job) {
	s := job.Spec
	for _, a := range s.Axes {
		if d.Map.Dimensions == nil {
			d.Map.Dimensions = map[string]float64{}
		}
		d.Map.Dimensions[a.Dimension.String()] = a.Weight
	}
	for _, e := range s.Env {
		if d.Env == nil {
			d.Env = map[string]string{}
		}
		d.Env[e.Name] = e.Value
	}
	for _, out := range s.Outputs {
		d.Outputs = append(d.Outputs, docOutput(out))
	}
	if s.TimeLimit > 0 {
		d.Limit = short(s.TimeLimit)
	}
	for _, item := range job.Items {
		d.Items = append(d.Items, docItem{Value: item.Value, Inputs: docInputs(item.Inputs)})
	}
	if len(job.Items) == 0 && job.Count > 1 {
		d.Count = job.Count
	}
}

func docInputs(inputs []grid.Input) []docInput {
	var out []docInput
	for _, in := range inputs {
		out = append(out, docInput{Path: in.Path, From: "cid:" + string(in.CID)})
	}
	return out
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + "B" }

// JSON is the document as one line.
func (d Document) JSON() ([]byte, error) { return json.Marshal(d) }
