package grid

import (
	"math"
	"time"
)

// DataSource is one thing a task must have before it starts, and what is known
// of those who hold it.
type DataSource struct {
	// Digest is empty for data that each task of an array has of its own: it counts as not local.
	Digest       DataDigest
	Bytes        int64    // size
	Holders      []SiteID // who has it, the submitter first; at most MaxHolders
	UploadBps    int64    // the first holder's upload rate, bit/s; 0 = unknown
	PotentialBps int64    // the first holder's potential P_src, bit/s; 0 = unknown
}

// MaxHolders bounds the holders named for one data source.
const MaxHolders = 8

// Requirement states what one task of a job asks of a site: all that a site needs to know
// to answer an announcement.
type Requirement struct {
	Kind    WorkKind
	OS      string // empty = any
	Arch    string // empty = any
	Need    Resources
	Runtime time.Duration // estimate on a site that offers exactly Need.MFLOPS
	Sources []DataSource
	Window  Window
	Map     MapKind
	Weights Weights
	Axes    []Axis // of the map; none = DefaultAxes

	Project     string // whose share of a site it counts against; empty = none
	Reservation JobID  // only sites that hold it can offer, out of what it holds; empty = none
	Saves       bool   `json:",omitempty"` // only sites that save commands whole
	// Signature says who vouches for the job.
	Signature Signature `json:",omitzero"`
	Encrypted bool      `json:",omitempty"` // only sites that open encrypted content
}

// Validate reports the first field that is out of its range.
func (r Requirement) Validate() error {
	if r.Runtime <= 0 || r.Runtime > MaxRuntime {
		return invalidf("runtime: want more than 0 and at most %s, have %s", MaxRuntime, r.Runtime)
	}
	if len(r.OS) > 32 || len(r.Arch) > 32 {
		return invalidf("os, arch: longer than 32 bytes")
	}
	if r.Map > mapKinds {
		return invalidf("map %d is unknown", r.Map)
	}
	if len(r.Project) > maxProject {
		return invalidf("project: longer than %d bytes", maxProject)
	}
	if len(r.Sources) > maxArgs {
		return invalidf("data sources: more than %d", maxArgs)
	}
	for _, s := range r.Sources {
		if err := s.Validate(); err != nil {
			return err
		}
	}
	return firstError(r.Kind.Validate(), r.Need.Validate(), r.Window.Validate(), r.Weights.Validate(),
		ValidateAxes(r.Axes), validateReservation(r.Kind, r.Reservation),
		r.Signature.Validate())
}

// Validate reports the first field that is out of its range.
func (s DataSource) Validate() error {
	if s.Digest != "" {
		if err := s.Digest.Validate(); err != nil {
			return err
		}
	}
	if len(s.Holders) > MaxHolders {
		return invalidf("holders: more than %d", MaxHolders)
	}
	for _, h := range s.Holders {
		if err := h.Validate(); err != nil {
			return err
		}
	}
	return firstError(
		checkRange("data source (bytes)", s.Bytes, maxBytes),
		checkRange("upload (bit/s)", s.UploadBps, maxBytes),
		checkRange("potential (bit/s)", s.PotentialBps, maxBytes),
	)
}

// Requirement returns what one task of the job asks of a site of the domain. Data that all tasks
// share comes as sources with a digest; data of the tasks' own comes as one source without, and of
// the mean size. The submitter holds all of it.
func (j Job) Requirement(
	domain DomainID, submitter SiteID, up Capability, potentialBps int64,
) Requirement {
	r := Requirement{
		Kind: j.Spec.Kind, OS: j.Spec.OS, Arch: j.Spec.Arch, Need: j.Spec.Need, Runtime: j.Spec.Runtime,
		Window: j.Spec.Window, Map: j.Spec.Map, Weights: j.Spec.Weights,
		Axes: j.Spec.Axes, Project: j.Spec.Project, Reservation: j.Spec.Reservation,
		Saves: j.Spec.Checkpoint.Whole, Signature: j.Spec.Signature,
		Encrypted: j.Spec.Encrypted,
	}
	source := func(cid CID, bytes int64) {
		r.Sources = append(r.Sources, DataSource{
			Digest: cid.Digest(domain), Bytes: bytes, Holders: []SiteID{submitter},
			UploadBps: up.UpBps, PotentialBps: potentialBps,
		})
	}
	if j.Spec.Module.CID != "" {
		source(j.Spec.Module.CID, j.Spec.Module.Bytes)
	}
	for _, in := range j.Spec.Inputs {
		source(in.CID, in.Bytes)
	}
	if own := j.meanItemBytes(); own > 0 {
		source("", own)
	}
	return r
}

func (j Job) meanItemBytes() int64 {
	if len(j.Items) == 0 {
		return 0
	}
	var sum int64
	for _, item := range j.Items {
		for _, in := range item.Inputs {
			sum += in.Bytes
		}
	}
	return sum / int64(len(j.Items))
}

// DataBytes is the size of the data that a task needs, in bytes, the largest number if that is too
// small.
func (r Requirement) DataBytes() (sum int64) {
	for _, src := range r.Sources {
		if sum += src.Bytes; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum
}
