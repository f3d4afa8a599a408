package protocol

import (
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// each converts a list; an empty one becomes nil, as protobuf decodes it.
func each[A, B any](list []A, convert func(A) B) []B {
	if len(list) == 0 {
		return nil
	}
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = convert(v)
	}
	return out
}

// forPeople makes text that programs may have written UTF-8, so that it cannot
// keep a message from being sent. It never becomes longer.
func forPeople(text string) string { return strings.ToValidUTF8(text, "?") }

func asText[S ~string](s S) string { return string(s) }

func wireResources(r grid.Resources) *wirepb.Resources {
	return &wirepb.Resources{
		MilliCpus: r.MilliCPUs, MemoryBytes: r.MemoryBytes, DiskBytes: r.DiskBytes,
		Mflops: r.MFLOPS, NetBps: r.NetBps,
	}
}

func wireCapability(c grid.Capability) *wirepb.Capability {
	return &wirepb.Capability{
		Total: wireResources(c.Total), CoreMflops: c.CoreMFLOPS, DownBps: c.DownBps, UpBps: c.UpBps,
		DiskBps: c.DiskBps, Os: c.OS, Arch: c.Arch,
		Kinds: each(c.Kinds, func(k grid.WorkKind) uint32 { return uint32(k) }),
		Saves: c.Saves,
	}
}

func wireWeights(w grid.Weights) *wirepb.Weights {
	return &wirepb.Weights{C: w.C, M: w.M, F: w.F, P: w.P}
}

func wireAxis(a grid.Axis) *wirepb.Axis {
	return &wirepb.Axis{Dimension: uint32(a.Dimension), Weight: a.Weight}
}

func wireCoordinate(c grid.Coordinate) *wirepb.Coordinate {
	return &wirepb.Coordinate{Dimension: uint32(c.Dimension), Value: c.Value, Known: c.Known}
}

func wireTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func wireWindow(w grid.Window) *wirepb.Window {
	return &wirepb.Window{
		NotBeforeMs: wireTime(w.NotBefore), AtMs: wireTime(w.At), DeadlineMs: wireTime(w.Deadline),
	}
}

func wireRequirement(r grid.Requirement) *wirepb.Requirement {
	return &wirepb.Requirement{
		Kind: uint32(r.Kind), Os: r.OS, Arch: r.Arch,
		Need: wireResources(r.Need), RuntimeNs: int64(r.Runtime),
		Sources: each(r.Sources, wireSource), Window: wireWindow(r.Window), Map: uint32(r.Map),
		Weights: wireWeights(r.Weights), Axes: each(r.Axes, wireAxis),
		Project: r.Project, Reservation: string(r.Reservation), Saves: r.Saves,
		Signature: wireSignature(r.Signature), Encrypted: r.Encrypted,
	}
}

// wireSignature is nil where nobody has signed the job.
func wireSignature(s grid.Signature) *wirepb.Signature {
	if s.IsZero() {
		return nil
	}
	return &wirepb.Signature{
		Of: uint32(s.Of), Digest: s.Digest, Text: s.Text, Items: s.Items, Root: s.Root,
	}
}

func wireSource(s grid.DataSource) *wirepb.DataSource {
	return &wirepb.DataSource{
		Digest: string(s.Digest), Bytes: s.Bytes, Holders: each(s.Holders, asText[grid.SiteID]),
		UploadBps: s.UploadBps, PotentialBps: s.PotentialBps,
	}
}

func wireInput(in grid.Input) *wirepb.Input {
	return &wirepb.Input{Path: in.Path, Cid: string(in.CID), Bytes: in.Bytes, Dir: in.Dir}
}

func wireSpec(s grid.Spec) *wirepb.Spec {
	return &wirepb.Spec{
		Name: s.Name, Kind: uint32(s.Kind), Module: wireInput(s.Module), Args: s.Args,
		Env: each(s.Env, func(e grid.EnvVar) *wirepb.EnvVar {
			return &wirepb.EnvVar{Name: e.Name, Value: e.Value}
		}),
		Inputs: each(s.Inputs, wireInput),
		Outputs: each(s.Outputs, func(o grid.Output) *wirepb.Output {
			return &wirepb.Output{Path: o.Path, To: o.To}
		}),
		Need: wireResources(s.Need), Os: s.OS, Arch: s.Arch, RuntimeNs: int64(s.Runtime),
		TimeLimitNs: int64(s.TimeLimit), Window: wireWindow(s.Window), Map: uint32(s.Map),
		Weights: wireWeights(s.Weights), Axes: each(s.Axes, wireAxis), Unattended: uint32(s.Unattended),
		Priority: int32(s.Priority), Project: s.Project,
		Reservation: string(s.Reservation), Overrun: uint32(s.Overrun),
		Checkpoint: wireSaving(s.Checkpoint), Signature: wireSignature(s.Signature),
		Encrypted: s.Encrypted,
	}
}

// wireSaving is nil where the site decides.
func wireSaving(s grid.Saving) *wirepb.Saving {
	if s == (grid.Saving{}) {
		return nil
	}
	return &wirepb.Saving{
		Off: s.Off, EveryNs: int64(s.Every), Whole: s.Whole, Rule: uint32(s.Rule),
	}
}

func wireCheckpoint(c grid.Checkpoint) *wirepb.Checkpoint {
	return &wirepb.Checkpoint{
		Number: c.Number, Cid: string(c.CID), Bytes: c.Bytes, WorkedNs: int64(c.Worked),
		Percent: uint32(c.Percent),
	}
}

func wireItem(it grid.Item) *wirepb.Item {
	return &wirepb.Item{Value: it.Value, Inputs: each(it.Inputs, wireInput), Proof: it.Proof}
}

func wireOffer(o grid.Offer) *wirepb.Offer {
	p := o.Parts
	return &wirepb.Offer{
		Id: o.ID, Site: string(o.Site),
		Parts: &wirepb.Parts{
			X: p.X, Y: p.Y, Z: p.Z, Distance: p.Distance,
			WaitNs: int64(p.Wait), StageInNs: int64(p.StageIn), RunNs: int64(p.Run),
			Further: each(p.Further, wireCoordinate), PotentialUnknown: p.PotentialUnknown,
		},
		LatestStartNs: int64(o.LatestStart), FinishNs: int64(o.Finish), Firm: o.Firm,
		ValidityNs: int64(o.Validity), TasksNow: o.TasksNow, CoreMflops: o.CoreMFLOPS,
		Decrypts: o.Decrypts,
	}
}

func wireRefusal(r grid.Refusal) *wirepb.Refusal {
	return &wirepb.Refusal{Reason: uint32(r.Reason), Never: r.Never, Want: r.Want, Have: r.Have}
}

func wireAttempt(a grid.AttemptID) *wirepb.Attempt {
	return &wirepb.Attempt{Job: string(a.Task.Job), Index: a.Task.Index, Token: uint64(a.Token)}
}

func wireRenew(m Renew) *wirepb.Renew {
	w := &wirepb.Renew{
		Renewal: m.Renewal, Attempts: each(m.Attempts, wireAttempt),
		LeftNs: each(m.Left, func(d time.Duration) int64 { return int64(d) }),
	}
	if m.List != nil {
		w.List = &wirepb.Listing{
			Also: each(m.List.Also, wireAttempt), After: wireEnd(m.List.After), UpTo: wireEnd(m.List.UpTo),
		}
	}
	return w
}

// wireEnd is an end of a range; an open one is left out.
func wireEnd(a grid.AttemptID) *wirepb.Attempt {
	if a == (grid.AttemptID{}) {
		return nil
	}
	return wireAttempt(a)
}

func wireProduced(p grid.Produced) *wirepb.Produced {
	return &wirepb.Produced{Path: p.Path, Cid: string(p.CID), Bytes: p.Bytes, Dir: p.Dir}
}

func wireExit(e grid.Exit) *wirepb.Exit {
	return &wirepb.Exit{
		Cause: uint32(e.Cause), Code: int64(e.Code), Text: forPeople(e.Text),
		Outputs: each(e.Outputs, wireProduced),
		Stdout:  wireProduced(e.Stdout), Stderr: wireProduced(e.Stderr), WallNs: int64(e.Wall),
	}
}

func wireTestimony(m Testimony) *wirepb.Testimony {
	return &wirepb.Testimony{
		Author: string(m.Author), Sequence: m.Sequence, IssuedMs: m.IssuedMS,
		Said: each(m.Said, func(s Statement) *wirepb.Statement {
			return &wirepb.Statement{
				About: string(s.About), Index: s.Index, Tried: s.Tried, OverNs: int64(s.Over),
				Causes: s.Causes,
			}
		}), Signature: m.Signature,
	}
}
