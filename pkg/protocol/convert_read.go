package protocol

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// reader converts what was unmarshalled, and remembers the first value that no
// Go value can stand for. Missing parts become zero values: to refuse them is
// Validate's task.
type reader struct {
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// small converts the number of an enumeration. One that is too large becomes
// the largest, which no enumeration uses, rather than wrap around to a valid
// one.
func small[E ~uint8](v uint32) E { return E(min(v, math.MaxUint8)) }

func resources(w *wirepb.Resources) grid.Resources {
	return grid.Resources{
		MilliCPUs: w.GetMilliCpus(), MemoryBytes: w.GetMemoryBytes(), DiskBytes: w.GetDiskBytes(),
		MFLOPS: w.GetMflops(), NetBps: w.GetNetBps(),
	}
}

func capability(w *wirepb.Capability) grid.Capability {
	return grid.Capability{
		Total: resources(w.GetTotal()), CoreMFLOPS: w.GetCoreMflops(), DownBps: w.GetDownBps(),
		UpBps:   w.GetUpBps(),
		DiskBps: w.GetDiskBps(), OS: w.GetOs(), Arch: w.GetArch(),
		Kinds: each(w.GetKinds(), small[grid.WorkKind]), Saves: w.GetSaves(),
	}
}

func weights(w *wirepb.Weights) grid.Weights {
	return grid.Weights{C: w.GetC(), M: w.GetM(), F: w.GetF(), P: w.GetP()}
}

func axis(w *wirepb.Axis) grid.Axis {
	return grid.Axis{Dimension: small[grid.Dimension](w.GetDimension()), Weight: w.GetWeight()}
}

func coordinate(w *wirepb.Coordinate) grid.Coordinate {
	return grid.Coordinate{
		Dimension: small[grid.Dimension](w.GetDimension()), Value: w.GetValue(), Known: w.GetKnown(),
	}
}

// time reads a moment. Moments outside the years 1 to 9999 are refused, because
// they have no text form.
func (r *reader) time(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	t := time.UnixMilli(*ms).UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		r.fail(invalidf("window: %d ms since 1970 is not in the years 1 to 9999", *ms))
	}
	return t
}

func (r *reader) window(w *wirepb.Window) grid.Window {
	if w == nil {
		return grid.Window{}
	}
	return grid.Window{
		NotBefore: r.time(w.NotBeforeMs), At: r.time(w.AtMs), Deadline: r.time(w.DeadlineMs),
	}
}

func (r *reader) requirement(w *wirepb.Requirement) grid.Requirement {
	return grid.Requirement{
		Kind: small[grid.WorkKind](w.GetKind()), OS: w.GetOs(), Arch: w.GetArch(),
		Need:    resources(w.GetNeed()),
		Runtime: time.Duration(w.GetRuntimeNs()), Sources: each(w.GetSources(), source),
		Window: r.window(w.GetWindow()),
		Map:    small[grid.MapKind](w.GetMap()), Weights: weights(w.GetWeights()),
		Axes: each(w.GetAxes(), axis), Project: w.GetProject(),
		Reservation: grid.JobID(w.GetReservation()), Saves: w.GetSaves(),
		Signature: signature(w.GetSignature()), Encrypted: w.GetEncrypted(),
	}
}

func signature(w *wirepb.Signature) grid.Signature {
	if w == nil {
		return grid.Signature{}
	}
	return grid.Signature{
		Of: small[grid.SignedPart](w.Of), Digest: w.Digest, Text: w.Text,
		Items: w.Items, Root: w.Root,
	}
}

func source(w *wirepb.DataSource) grid.DataSource {
	return grid.DataSource{
		Digest: grid.DataDigest(w.GetDigest()), Bytes: w.GetBytes(),
		Holders:   each(w.GetHolders(), func(s string) grid.SiteID { return grid.SiteID(s) }),
		UploadBps: w.GetUploadBps(), PotentialBps: w.GetPotentialBps(),
	}
}

func input(w *wirepb.Input) grid.Input {
	return grid.Input{
		Path: w.GetPath(), CID: grid.CID(w.GetCid()), Bytes: w.GetBytes(), Dir: w.GetDir(),
	}
}

func (r *reader) spec(w *wirepb.Spec) grid.Spec {
	return grid.Spec{
		Name: w.GetName(), Kind: small[grid.WorkKind](w.GetKind()), Module: input(w.GetModule()),
		Args: w.GetArgs(),
		Env: each(w.GetEnv(), func(e *wirepb.EnvVar) grid.EnvVar {
			return grid.EnvVar{Name: e.GetName(), Value: e.GetValue()}
		}),
		Inputs: each(w.GetInputs(), input),
		Outputs: each(w.GetOutputs(), func(o *wirepb.Output) grid.Output {
			return grid.Output{Path: o.GetPath(), To: o.GetTo()}
		}),
		Need: resources(w.GetNeed()), OS: w.GetOs(),
		Arch: w.GetArch(), Runtime: time.Duration(w.GetRuntimeNs()),
		TimeLimit: time.Duration(w.GetTimeLimitNs()), Window: r.window(w.GetWindow()),
		Map: small[grid.MapKind](w.GetMap()), Weights: weights(w.GetWeights()),
		Axes: each(w.GetAxes(), axis), Unattended: small[grid.Unattended](w.GetUnattended()),
		Priority: int(w.GetPriority()), Project: w.GetProject(),
		Reservation: grid.JobID(w.GetReservation()),
		Overrun:     small[grid.Overrun](w.GetOverrun()),
		Checkpoint: grid.Saving{
			Off: w.GetCheckpoint().GetOff(), Every: time.Duration(w.GetCheckpoint().GetEveryNs()),
			Whole: w.GetCheckpoint().GetWhole(),
			Rule:  small[grid.SavingRule](w.GetCheckpoint().GetRule()),
		},
		Signature: signature(w.GetSignature()), Encrypted: w.GetEncrypted(),
	}
}

func checkpoint(w *wirepb.Checkpoint) grid.Checkpoint {
	return grid.Checkpoint{
		Number: w.GetNumber(), CID: grid.CID(w.GetCid()), Bytes: w.GetBytes(),
		Worked: time.Duration(w.GetWorkedNs()), Percent: small[uint8](w.GetPercent()),
	}
}

func item(w *wirepb.Item) grid.Item {
	return grid.Item{Value: w.GetValue(), Inputs: each(w.GetInputs(), input), Proof: w.GetProof()}
}

func offer(w *wirepb.Offer) grid.Offer {
	p := w.GetParts()
	return grid.Offer{
		ID: w.GetId(), Site: grid.SiteID(w.GetSite()),
		Parts: grid.Parts{
			X: p.GetX(), Y: p.GetY(), Z: p.GetZ(),
			Distance: p.GetDistance(), Wait: time.Duration(p.GetWaitNs()),
			StageIn: time.Duration(p.GetStageInNs()), Run: time.Duration(p.GetRunNs()),
			Further: each(p.GetFurther(), coordinate), PotentialUnknown: p.GetPotentialUnknown(),
		},
		LatestStart: time.Duration(w.GetLatestStartNs()), Finish: time.Duration(w.GetFinishNs()),
		Firm:     w.GetFirm(),
		Validity: time.Duration(w.GetValidityNs()),
		TasksNow: w.GetTasksNow(), CoreMFLOPS: w.GetCoreMflops(),
		Decrypts: w.GetDecrypts(),
	}
}

func reason(v uint32) grid.Reason { return grid.Reason(min(v, math.MaxUint16)) }

func refusal(w *wirepb.Refusal) grid.Refusal {
	return grid.Refusal{
		Reason: reason(w.GetReason()), Never: w.GetNever(), Want: w.GetWant(), Have: w.GetHave(),
	}
}

func attempt(w *wirepb.Attempt) grid.AttemptID {
	return grid.AttemptID{
		Task:  grid.TaskID{Job: grid.JobID(w.GetJob()), Index: w.GetIndex()},
		Token: grid.Token(w.GetToken()),
	}
}

func attempts(list []*wirepb.Attempt) []grid.AttemptID { return each(list, attempt) }

func renew(w *wirepb.Renew) Renew {
	m := Renew{
		Renewal: w.GetRenewal(), Attempts: attempts(w.GetAttempts()),
		Left: each(w.GetLeftNs(), func(ns int64) time.Duration { return time.Duration(ns) }),
	}
	if list := w.GetList(); list != nil {
		m.List = &Listing{
			Also: attempts(list.GetAlso()), After: attempt(list.GetAfter()), UpTo: attempt(list.GetUpTo()),
		}
	}
	return m
}

func produced(w *wirepb.Produced) grid.Produced {
	return grid.Produced{
		Path: w.GetPath(), CID: grid.CID(w.GetCid()), Bytes: w.GetBytes(), Dir: w.GetDir(),
	}
}

func exit(w *wirepb.Exit) grid.Exit {
	return grid.Exit{
		Cause: small[grid.ExitCause](w.GetCause()), Code: int(w.GetCode()), Text: w.GetText(),
		Outputs: each(w.GetOutputs(), produced), Stdout: produced(w.GetStdout()),
		Stderr: produced(w.GetStderr()),
		Wall:   time.Duration(w.GetWallNs()),
	}
}

func testimony(w *wirepb.Testimony) Testimony {
	return Testimony{
		Author: grid.SiteID(w.GetAuthor()), Sequence: w.GetSequence(), IssuedMS: w.GetIssuedMs(),
		Said: each(w.GetSaid(), func(s *wirepb.Statement) Statement {
			return Statement{
				About: grid.SiteID(s.GetAbout()), Index: s.GetIndex(), Tried: s.GetTried(),
				Over: time.Duration(s.GetOverNs()), Causes: s.GetCauses(),
			}
		}), Signature: w.GetSignature(),
	}
}
