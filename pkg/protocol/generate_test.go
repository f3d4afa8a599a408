package protocol

import (
	"encoding/hex"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const testBytes = 1 << 53

func drawJob(t *rapid.T) grid.JobID {
	return grid.JobID(
		rapid.StringOfN(rapid.RuneFrom([]rune("abcxyz234567")), 16, 16, 16).Draw(t, "job"),
	)
}

func drawSite(t *rapid.T) grid.SiteID {
	return grid.SiteID(
		rapid.StringOfN(rapid.RuneFrom([]rune("12D3KooWaz.-")), 1, 60, 60).Draw(t, "site"),
	)
}

func drawCID(t *rapid.T) grid.CID {
	return grid.CID(
		"baf" + rapid.StringOfN(rapid.RuneFrom([]rune("abcdef0123")), 0, 59, 59).Draw(t, "cid"),
	)
}

func drawPath(t *rapid.T) string {
	return "/" + rapid.StringOfN(rapid.RuneFrom([]rune("abcä世{}")), 1, 12, -1).Draw(t, "path")
}

func drawText(t *rapid.T) string {
	return rapid.StringOfN(rapid.Rune(), 0, 8, 30).Draw(t, "text")
}

func drawNat(t *rapid.T) int64 { return rapid.Int64Range(0, testBytes).Draw(t, "nat") }

func drawDur(t *rapid.T, low, high time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, "duration"))
}

func drawFloat(t *rapid.T, low, high float64) float64 {
	return rapid.Float64Range(low, high).Draw(t, "float")
}

func drawList[V any](t *rapid.T, high int, draw func(*rapid.T) V) []V {
	var list []V
	for range rapid.IntRange(0, high).Draw(t, "length") {
		list = append(list, draw(t))
	}
	return list
}

func drawSome[V any](t *rapid.T, draw func(*rapid.T) V) []V {
	return append(drawList(t, 3, draw), draw(t))
}

func drawResources(t *rapid.T) grid.Resources {
	amount := rapid.Int64Range(0, 1<<43)
	return grid.Resources{
		MilliCPUs: amount.Draw(t, "cpus"), MemoryBytes: drawNat(t), DiskBytes: drawNat(t),
		MFLOPS: amount.Draw(t, "mflops"), NetBps: drawNat(t),
	}
}

func drawKind(t *rapid.T) grid.WorkKind {
	return rapid.SampledFrom([]grid.WorkKind{grid.KindWasm, grid.KindCommand}).Draw(t, "kind")
}

func drawWindow(t *rapid.T) grid.Window {
	var w grid.Window
	start := rapid.Int64Range(-60_000, 4e12).Draw(t, "start")
	if rapid.Bool().Draw(t, "has start") {
		w.NotBefore = time.UnixMilli(start).UTC()
		if rapid.Bool().Draw(t, "fixed") {
			w.At, w.NotBefore = w.NotBefore, time.Time{}
		}
	}
	if rapid.Bool().Draw(t, "has deadline") {
		w.Deadline = time.UnixMilli(start + rapid.Int64Range(1, 1e10).Draw(t, "length")).UTC()
	}
	return w
}

func drawWeights(t *rapid.T) grid.Weights {
	return grid.Weights{
		C: drawFloat(t, 0, 9), M: drawFloat(t, 0, 9), F: drawFloat(t, 0, 1e30), P: drawFloat(t, 0, 1),
	}
}

func drawMap(t *rapid.T) grid.MapKind {
	return rapid.SampledFrom([]grid.MapKind{grid.MapThesis, grid.MapSeconds}).Draw(t, "map")
}

func drawRequirement(t *rapid.T) grid.Requirement {
	return grid.Requirement{
		Kind: drawKind(t), OS: drawText(t), Arch: "amd64",
		Need: drawResources(t), Runtime: drawDur(t, 1, grid.MaxRuntime),
		Sources: drawList(t, 3, drawSource), Window: drawWindow(t),
		Map: drawMap(t), Weights: drawWeights(t),
		Axes: drawAxes(t), Project: drawText(t), Reservation: drawReservation(t),
		Saves: rapid.Bool().Draw(t, "saves"), Signature: drawSignature(t),
		Encrypted: rapid.Bool().Draw(t, "encrypted"),
	}
}

func drawSignature(t *rapid.T) grid.Signature {
	if !rapid.Bool().Draw(t, "signed") {
		return grid.Signature{}
	}
	hexOf := func(n int) string { return hex.EncodeToString(drawBytes(t, n)) }
	s := grid.Signature{
		Of: grid.SignedModule, Digest: hexOf(64), Text: "text" + drawText(t),
	}
	if rapid.Bool().Draw(t, "template") {
		s.Of = grid.SignedTemplate
		s.Items = rapid.Uint32Range(0, grid.MaxSignedItems).Draw(t, "items")
		if s.Items > 0 {
			s.Root = hexOf(32)
		}
	}
	return s
}

func drawAxes(t *rapid.T) []grid.Axis {
	var axes []grid.Axis
	for d := grid.Computation; d <= grid.Distrust; d++ {
		if rapid.Bool().Draw(t, "axis") {
			axes = append(axes, grid.Axis{Dimension: d, Weight: drawFloat(t, 0, 9)})
		}
	}
	return axes
}

func drawFurther(t *rapid.T) []grid.Coordinate {
	var further []grid.Coordinate
	for d := grid.QueueWait; d <= grid.Distrust; d++ {
		if rapid.Bool().Draw(t, "further") {
			further = append(further,
				grid.Coordinate{Dimension: d, Value: drawFloat(t, 0, 9), Known: rapid.Bool().Draw(t, "known")})
		}
	}
	return further
}

func drawSource(t *rapid.T) grid.DataSource {
	s := grid.DataSource{
		Bytes: drawNat(t), Holders: drawList(t, grid.MaxHolders, drawSite), UploadBps: drawNat(t),
		PotentialBps: drawNat(t),
	}
	if rapid.Bool().Draw(t, "has digest") {
		s.Digest = drawCID(t).Digest("home")
	}
	return s
}

func drawInput(t *rapid.T) grid.Input {
	return grid.Input{
		Path: drawPath(t), CID: drawCID(t), Bytes: drawNat(t), Dir: rapid.Bool().Draw(t, "dir"),
	}
}

func drawCheckpoint(t *rapid.T) grid.Checkpoint {
	return grid.Checkpoint{
		Number: rapid.Uint64Min(1).Draw(t, "number"), CID: drawCID(t), Bytes: drawNat(t),
		Worked:  drawDur(t, 0, grid.MaxRuntime),
		Percent: rapid.Uint8Max(100).Draw(t, "percent"),
	}
}

// drawSaved draws the checkpoints of a task, the latest first.
func drawSaved(t *rapid.T) []grid.Checkpoint {
	saved := drawList(t, grid.MaxSaved, drawCheckpoint)
	for i := range saved {
		saved[i].Number = uint64(len(saved) - i)
	}
	return saved
}

func drawSaving(t *rapid.T, kind grid.WorkKind) grid.Saving {
	if rapid.Bool().Draw(t, "off") {
		return grid.Saving{Off: true}
	}
	return grid.Saving{
		Every: drawDur(t, grid.MinSaving, grid.MaxSaving),
		Whole: kind == grid.KindCommand && rapid.Bool().Draw(t, "whole"),
		Rule:  grid.SavingRule(rapid.IntRange(0, int(grid.SaveMFCA)).Draw(t, "rule")),
	}
}

func drawSpec(t *rapid.T) grid.Spec {
	kind := drawKind(t)
	return grid.Spec{
		Name: drawText(t), Kind: kind, Module: drawInput(t), Args: drawSome(t, drawText),
		Env: drawList(t, 2, func(t *rapid.T) grid.EnvVar {
			return grid.EnvVar{Name: drawText(t), Value: drawText(t)}
		}),
		Inputs: drawList(t, 2, drawInput),
		Outputs: drawList(t, 2, func(t *rapid.T) grid.Output {
			return grid.Output{Path: drawPath(t), To: drawText(t)}
		}),
		Need: drawResources(t), OS: drawText(t),
		Arch: drawText(t), Runtime: drawDur(t, 1, grid.MaxRuntime),
		TimeLimit: drawDur(t, 0, grid.MaxRuntime), Window: drawWindow(t),
		Map: drawMap(t), Weights: drawWeights(t),
		Axes: drawAxes(t), Unattended: rapid.SampledFrom(
			[]grid.Unattended{grid.UnattendedFreeze, grid.UnattendedFinish, grid.UnattendedStop},
		).Draw(t, "unattended"),
		Priority:    rapid.IntRange(-grid.MaxPriority, grid.MaxPriority).Draw(t, "priority"),
		Project:     drawText(t),
		Reservation: drawReservation(t), Overrun: rapid.SampledFrom(
			[]grid.Overrun{grid.OverrunSuspend, grid.OverrunStop},
		).Draw(t, "overrun"), Checkpoint: drawSaving(t, kind),
		Signature: drawSignature(t),
	}
}

func drawReservation(t *rapid.T) grid.JobID {
	if rapid.Bool().Draw(t, "reserved") {
		return drawJob(t)
	}
	return ""
}

func drawOffer(t *rapid.T) grid.Offer {
	offer := grid.Offer{
		ID: rapid.Uint64Min(1).Draw(t, "id"),
		Parts: grid.Parts{
			X: drawFloat(t, 0, 2), Y: drawFloat(t, 0, 1e9), Z: drawFloat(t, 0, 1),
			Distance: drawFloat(t, 0, 1e300),
			Wait:     drawDur(t, 0, 1<<62), StageIn: drawDur(t, 0, 1<<62), Run: drawDur(t, 0, 1<<62),
			Further: drawFurther(t), PotentialUnknown: rapid.Bool().Draw(t, "potential unknown"),
		},
		LatestStart: drawDur(t, 0, 1<<62),
		Finish:      drawDur(t, 0, 1<<62), Firm: rapid.Bool().Draw(t, "firm"),
		Validity:   drawDur(t, 1, grid.MaxRuntime),
		TasksNow:   rapid.Uint32Range(1, grid.MaxTasks).Draw(t, "now"),
		CoreMFLOPS: rapid.Int64Range(0, 1<<43).Draw(t, "core"),
		Decrypts:   rapid.Bool().Draw(t, "decrypts"),
	}
	if rapid.Bool().Draw(t, "has site") {
		offer.Site = drawSite(t)
	}
	return offer
}

func drawRefusal(t *rapid.T) grid.Refusal {
	return grid.Refusal{
		Reason: grid.Reason(rapid.Uint16Range(1, uint16(grid.ReasonBandwidth)).Draw(t, "reason")),
		Never:  rapid.Bool().Draw(t, "never"), Want: drawNat(t), Have: drawNat(t),
	}
}

func drawAttempt(t *rapid.T) grid.AttemptID {
	return grid.AttemptID{
		Task:  grid.TaskID{Job: drawJob(t), Index: rapid.Uint32().Draw(t, "index")},
		Token: grid.Token(rapid.Uint64Min(1).Draw(t, "token")),
	}
}

func drawProduced(t *rapid.T) grid.Produced {
	return grid.Produced{
		Path: drawPath(t), CID: drawCID(t), Bytes: drawNat(t), Dir: rapid.Bool().Draw(t, "dir"),
	}
}

func drawExit(t *rapid.T) grid.Exit {
	return grid.Exit{
		Cause: grid.ExitCause(rapid.Uint8Range(1, uint8(grid.CauseNoOutput)).Draw(t, "cause")),
		Code:  int(rapid.Int32().Draw(t, "code")), Text: drawText(t),
		Outputs: drawList(t, 2, drawProduced),
		Stdout:  drawProduced(t), Wall: drawDur(t, 0, 1<<62),
	}
}

func drawSeq(t *rapid.T) uint32 { return rapid.Uint32Min(1).Draw(t, "seq") }

func drawTTL(t *rapid.T) time.Duration { return drawDur(t, grid.MinTTL, grid.MaxTTL) }

func drawAnnounce(t *rapid.T) Announce {
	return Announce{
		Job: drawJob(t), Seq: drawSeq(t), Submitter: drawSite(t), Addrs: drawList(t, 3, drawText),
		Req:   drawRequirement(t),
		Count: rapid.Uint32Range(1, grid.MaxTasks).Draw(t, "count"), TTL: drawTTL(t),
		Sample: drawFloat(t, 1e-9, 1), Theta: drawFloat(t, 0, 1e9),
		Explain: rapid.Bool().Draw(t, "explain"), Clock: drawWindow(t).Deadline,
		Nearer: drawFloat(t, 0, 1e9), Part: drawFloat(t, 0, 1),
		Probe: rapid.Bool().Draw(t, "probe"),
	}
}

func drawReannounce(t *rapid.T) Reannounce {
	return Reannounce{
		Job: drawJob(t), Seq: drawSeq(t), Submitter: drawSite(t), Digest: DigestOf(drawRequirement(t)),
		Count: rapid.Uint32Range(1, grid.MaxTasks).Draw(t, "count"), TTL: drawTTL(t),
		Explain: rapid.Bool().Draw(t, "explain"), Clock: drawWindow(t).Deadline,
	}
}

func drawHello(t *rapid.T) Hello {
	return Hello{
		MinVersion: 1, MaxVersion: rapid.Uint32Min(1).Draw(t, "max"), Domain: "lab-1", Name: drawText(t),
		Incarnation: rapid.Uint64Min(1).Draw(t, "incarnation"), WallMS: drawNat(t),
		Capability: grid.Capability{
			Total: drawResources(t), CoreMFLOPS: 7, DownBps: drawNat(t),
			UpBps: drawNat(t), DiskBps: drawNat(t),
			OS: "linux", Arch: drawText(t), Kinds: drawList(t, 2, drawKind),
			Saves: rapid.Bool().Draw(t, "saves"),
		},
		Refusal: grid.Reason(rapid.Uint16().Draw(t, "refusal")),
		Peers:   drawList(t, 3, func(t *rapid.T) string { return "/ip4/10.0.0.1/tcp/1" + drawPath(t) }),
		Roster:  Digest{rapid.Uint8().Draw(t, "roster")},
		Newer:   drawRun(t),
		Owner:   drawText(t),
	}
}

func drawRun(t *rapid.T) Run {
	run := Run{Number: rapid.Uint64().Draw(t, "run")}
	if run.Number == 0 {
		return run // it does not travel
	}
	run.Nonce, run.Line = rapid.Uint64().Draw(t, "nonce"), rapid.Uint64().Draw(t, "line")
	run.SinceMS = drawNat(t)
	run.Signature = rapid.SliceOfN(rapid.Byte(), 1, 128).Draw(t, "signature")
	return run
}

func drawAward(t *rapid.T) Award {
	award := Award{
		Job: drawJob(t), OfferID: rapid.Uint64Min(1).Draw(t, "offer"), Spec: drawSpec(t),
		Quoted: drawFloat(t, 0, 10), RunnerUp: drawFloat(t, 0, 10), HasNext: rapid.Bool().Draw(t, "next"),
		AskFirst: rapid.Bool().Draw(t, "ask first"), Clock: drawWindow(t).Deadline,
	}
	if award.Spec.Signature.IsZero() && rapid.Bool().Draw(t, "encrypted") {
		award.Spec.Encrypted = true
		award.Key = drawBytes(t, rapid.IntRange(1, grid.MaxWrappedKey).Draw(t, "key bytes"))
	}
	for i := range rapid.Uint32Range(1, 4).Draw(t, "tasks") {
		award.Tasks = append(award.Tasks, AwardedTask{
			Index: i * 7, Token: grid.Token(rapid.Uint64Min(1).Draw(t, "token")),
			Item: grid.Item{
				Value: drawText(t), Inputs: drawList(t, 2, drawInput), Proof: drawText(t),
			},
			Saved: drawSaved(t), CopyOf: rapid.Uint32Range(0, i*7).Draw(t, "copy of"),
		})
	}
	return award
}

func drawDeclined(t *rapid.T) Declined {
	m := Declined{Attempts: drawSome(t, drawAttempt), Refusal: drawRefusal(t)}
	if rapid.Bool().Draw(t, "has quote") {
		quote := drawOffer(t)
		m.Quote = &quote
	}
	return m
}

func drawBytes(t *rapid.T, n int) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
}

func drawMember(t *rapid.T) MemberRecord {
	return MemberRecord{
		Domain: "lab-1", Site: drawSite(t), Kind: MemberKind(rapid.Uint8Range(1, 2).Draw(t, "kind")),
		Name:     drawText(t),
		SerialMS: rapid.Int64Range(1, 1<<41).Draw(t, "serial"),
		Note:     drawText(t), Signature: drawBytes(t, SignatureBytes),
		Successions: rapid.Uint32Range(0, MaxSuccessions).Draw(t, "after"),
	}
}

// drawSuccessions follow one another; nobody has signed them.
func drawSuccessions(t *rapid.T) []Succession {
	var all []Succession
	for n := range rapid.IntRange(0, 3).Draw(t, "successions") {
		all = append(all, Succession{
			Domain: "lab-1", Number: uint32(n) + 1,
			Former: numberedKey(n), Successor: numberedKey(n + 1),
			MadeMS:    rapid.Int64Range(1, 1<<41).Draw(t, "made"),
			Records:   rapid.Uint32Range(0, MaxRosterSites).Draw(t, "records"),
			HighestMS: rapid.Int64Range(0, 1<<41).Draw(t, "highest"),
			ByFormer:  drawBytes(t, SignatureBytes), BySuccessor: drawBytes(t, SignatureBytes),
		})
	}
	return all
}

func drawJoinAnswer(t *rapid.T) JoinAnswer {
	m := JoinAnswer{
		Refusal: JoinRefusal(rapid.Uint8Range(0, uint8(JoinRefusals)).Draw(t, "refusal")),
		Text:    drawText(t),
		Listed:  drawList(t, 3, drawSite),
		Addrs:   drawList(t, 3, func(t *rapid.T) string { return "/ip4/10.0.0.1" + drawPath(t) }),
	}
	if m.Refusal == JoinAdmitted {
		record := drawMember(t)
		m.Admit = &record
	}
	return m
}

// messages has a generator for every message type, by name.
func messages() map[string]func(*rapid.T) Message {
	number := func(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "number") }
	return map[string]func(*rapid.T) Message{
		"hello":      func(t *rapid.T) Message { return drawHello(t) },
		"announce":   func(t *rapid.T) Message { return drawAnnounce(t) },
		"reannounce": func(t *rapid.T) Message { return drawReannounce(t) },
		"need": func(t *rapid.T) Message {
			return NeedRequirements{Job: drawJob(t), Seq: drawSeq(t)}
		},
		"require": func(t *rapid.T) Message { return Requirements{Announce: drawAnnounce(t)} },
		"bid": func(t *rapid.T) Message {
			return Bid{Job: drawJob(t), Seq: drawSeq(t), Offer: drawOffer(t)}
		},
		"refuse": func(t *rapid.T) Message {
			r := Refuse{Job: drawJob(t), Seq: drawSeq(t), Refusal: drawRefusal(t)}
			if rapid.Bool().Draw(t, "free") {
				free := drawResources(t)
				r.Free = &free
			}
			return r
		},
		"vacancy": func(t *rapid.T) Message { return Vacancy{Jobs: drawSome(t, drawJob)} },
		"award":   func(t *rapid.T) Message { return drawAward(t) },
		"accepted": func(t *rapid.T) Message {
			return Accepted{Attempts: drawSome(t, drawAttempt), Renewal: number(t)}
		},
		"declined": func(t *rapid.T) Message { return drawDeclined(t) },
		"clear": func(t *rapid.T) Message {
			kind := ClearKind(rapid.Uint8Range(1, uint8(ClearWithdrawn)).Draw(t, "kind"))
			return Clear{Job: drawJob(t), Submitter: drawSite(t), Kind: kind}
		},
		"renew": func(t *rapid.T) Message {
			m := Renew{Attempts: drawSome(t, drawAttempt), Renewal: number(t)}
			if rapid.Bool().Draw(t, "says what is left") {
				for range m.Attempts {
					m.Left = append(m.Left, drawDur(t, 0, maxLease))
				}
			}
			if rapid.Bool().Draw(t, "lists") {
				m.List = &Listing{Also: drawList(t, 3, drawAttempt)}
				if rapid.Bool().Draw(t, "has ends") {
					m.List.After, m.List.UpTo = drawAttempt(t), drawAttempt(t)
				}
			}
			return m
		},
		"lease": func(t *rapid.T) Message {
			return Lease{
				Attempts: drawSome(t, drawAttempt), Renewal: number(t), Duration: drawDur(t, 1, maxLease),
			}
		},
		"hold": func(t *rapid.T) Message {
			return HoldOffer{
				Job: drawJob(t), Seq: drawSeq(t), OfferID: number(t) | 1,
				Tasks: rapid.Uint32Range(1, grid.MaxTasks).Draw(t, "tasks"), At: drawWindow(t).At,
				Clock: drawWindow(t).Deadline,
			}
		},
		"maystart": func(t *rapid.T) Message {
			return MayStart{Attempts: drawSome(t, drawAttempt), Renewal: number(t)}
		},
		"fence":  func(t *rapid.T) Message { return Fence{Below: drawSome(t, drawAttempt)} },
		"cancel": func(t *rapid.T) Message { return Cancel{Job: drawJob(t)} },
		"progress": func(t *rapid.T) Message {
			phase := grid.Phase(
				rapid.Uint8Range(uint8(grid.PhaseStaging), uint8(grid.PhaseFrozen)).Draw(t, "phase"),
			)
			return Progress{
				Attempt: drawAttempt(t), Phase: phase, Done: drawNat(t), Total: drawNat(t),
				Reason: grid.Reason(rapid.Uint16().Draw(t, "reason")), StartsIn: drawDur(t, 0, grid.MaxRuntime),
				StartedAgo: drawDur(t, 0, maxAgo),
			}
		},
		"exited": func(t *rapid.T) Message {
			return Exited{
				Attempt: drawAttempt(t), Exit: drawExit(t), StartedAgo: drawDur(t, 0, maxAgo),
				EndedAgo: drawDur(t, 0, maxAgo),
			}
		},
		"roster": func(t *rapid.T) Message {
			return Roster{
				Records: drawList(t, 3, drawMember), Digest: Digest{rapid.Uint8().Draw(t, "digest")},
				Answer:      rapid.Bool().Draw(t, "answer"),
				Successions: drawSuccessions(t),
			}
		},
		"join": func(t *rapid.T) Message {
			return JoinRequest{
				Secret: drawBytes(t, SecretBytes), Name: drawText(t),
				Knows: JoinRefusal(rapid.Uint8().Draw(t, "knows")),
			}
		},
		"joinanswer": func(t *rapid.T) Message { return drawJoinAnswer(t) },
		"check":      func(t *rapid.T) Message { return Check{Number: number(t)} },
		"checked": func(t *rapid.T) Message {
			return Checked{
				Number: number(t), Arrived: rapid.Bool().Draw(t, "arrived"), Distance: drawFloat(t, 0, 10),
				Took: drawDur(t, 0, time.Minute), Text: drawText(t),
			}
		},
		"checkpointed": func(t *rapid.T) Message {
			return Checkpointed{Attempt: drawAttempt(t), Checkpoint: drawCheckpoint(t)}
		},
		"held": func(t *rapid.T) Message {
			m := Held{Attempt: drawAttempt(t), Number: number(t) | 1}
			if rapid.Bool().Draw(t, "refused") {
				m.Reason = grid.ReasonSavedOld
			}
			return m
		},
		"move": func(t *rapid.T) Message {
			return Move{Attempt: drawAttempt(t), Stop: rapid.Bool().Draw(t, "stop")}
		},
		"movable": func(t *rapid.T) Message {
			return Movable{
				Attempt: drawAttempt(t), Saves: rapid.Bool().Draw(t, "saves"), Next: number(t),
				Begun: rapid.Bool().Draw(t, "begun"),
				Reason: rapid.SampledFrom([]grid.Reason{
					grid.ReasonNone, grid.ReasonPaused, grid.ReasonOwnerBusy,
				}).Draw(t, "reason"),
			}
		},
		"exitack": func(t *rapid.T) Message { return ExitAck{Attempts: drawSome(t, drawAttempt)} },

		"behalf": drawOnBehalf, "bygateway": drawByGateway, "neighbours": drawNeighbours,
		"handover": drawHandover,
		"group":    drawGroup, "keep": drawKeep,
		"standbyask": func(t *rapid.T) Message {
			return StandbyAsk{Epoch: number(t) | 1, Facts: drawNat(t)}
		},
		"standbyanswer": func(t *rapid.T) Message { return drawStandbyAnswer(t) },
		"groupask": func(t *rapid.T) Message {
			return GroupAsk{drawSite(t), StandbyAsk{Epoch: number(t) | 1, Facts: drawNat(t)}}
		},
		"groupanswer": func(t *rapid.T) Message {
			return GroupAnswer{drawSite(t), drawStandbyAnswer(t)}
		},
		"standbynews": func(t *rapid.T) Message {
			m := StandbyNews{Certificate: drawBytes(t, 40), Term: number(t)}
			if m.Term > 0 && rapid.Bool().Draw(t, "knows who acts") {
				m.Acting = drawSite(t)
			}
			return m
		},
		"rejoin": func(t *rapid.T) Message { return Rejoin{Certificate: drawBytes(t, 40)} },
		"kept": func(t *rapid.T) Message {
			return Kept{Owner: drawSite(t), Number: number(t) | 1, Problem: drawText(t)}
		},
		"testimony": func(t *rapid.T) Message { return drawTestimony(t) },
		"bookings":  drawBookings, "remap": drawRemap,
		"booked": func(t *rapid.T) Message {
			return Booked{
				Term: number(t) | 1, Number: number(t) | 1, Again: rapid.Bool().Draw(t, "again"),
			}
		},
		"borderquery": func(t *rapid.T) Message {
			return BorderQuery{
				Passage: drawPassage(t), Job: drawJob(t), Seq: drawSeq(t), Req: drawRequirement(t),
				Count: rapid.Uint32Range(1, grid.MaxTasks).Draw(t, "count"), TTL: drawTTL(t),
			}
		},
		"borderanswer": drawBorderAnswer,
		"borderorder": func(t *rapid.T) Message {
			return BorderOrder{
				Passage: drawPassage(t), Attempt: drawAttempt(t), Spec: drawSpec(t),
				Here: rapid.Bool().Draw(t, "here"),
			}
		},
		"borderdeclined": func(t *rapid.T) Message {
			return BorderDeclined{Attempts: drawSome(t, drawAttempt), Refusal: drawRefusal(t)}
		},
		"borderrenew": func(t *rapid.T) Message {
			return BorderRenew{Number: number(t) | 1, Attempts: drawSome(t, drawAttempt)}
		},
		"borderlease": func(t *rapid.T) Message {
			return BorderLease{
				Number: number(t) | 1, Attempts: drawSome(t, drawAttempt),
				Duration: drawDur(t, 1, maxLease),
			}
		},
		"borderstate": func(t *rapid.T) Message {
			return BorderState{
				Attempt: drawAttempt(t), Done: drawNat(t), Total: drawNat(t),
				Phase: rapid.SampledFrom([]grid.Phase{
					grid.PhaseStaging, grid.PhaseRunning, grid.PhaseFrozen,
				}).Draw(t, "phase"),
				Reason: grid.ReasonOwnerBusy, StartedAgo: drawDur(t, 0, maxAgo),
			}
		},
		"borderend": func(t *rapid.T) Message {
			return BorderEnd{
				Attempt: drawAttempt(t), Exit: drawExit(t), StartedAgo: drawDur(t, 0, maxAgo),
				EndedAgo: drawDur(t, 0, maxAgo), UsedCoreMS: drawNat(t),
			}
		},
		"borderfence": func(t *rapid.T) Message {
			return BorderFence{Below: drawSome(t, drawAttempt)}
		},
		"borderreceipt": func(t *rapid.T) Message {
			return BorderReceipt{
				Attempt: drawAttempt(t), Giver: drawSite(t), Taker: drawSite(t),
				UsedCoreMS: drawNat(t), Signature: drawBytes(t, SignatureBytes),
				Mandate: drawMandate(t),
			}
		},
		"favours": func(t *rapid.T) Message {
			return Favours{Term: number(t) | 1, Accounts: drawAccounts(t)}
		},
		"favoursnoted": func(t *rapid.T) Message {
			return FavoursNoted{
				Term: number(t) | 1, Own: drawAccounts(t), Others: drawAccounts(t),
			}
		},
		"remapped": func(t *rapid.T) Message {
			return Remapped{
				Term: number(t) | 1, Number: number(t) | 1, Elsewhere: drawSome(t, drawTask),
			}
		},
	}
}

func drawAccounts(t *rapid.T) (all []Account) {
	amount := rapid.Int64Range(0, MaxFavour)
	for i := range rapid.IntRange(0, 3).Draw(t, "accounts") {
		all = append(all, Account{
			Domain:      grid.SiteID(fmt.Sprintf("domain-%d", i)),
			GivenCoreMS: amount.Draw(t, "given"), TakenCoreMS: amount.Draw(t, "taken"),
		})
	}
	return all
}

func drawStandbyAnswer(t *rapid.T) StandbyAnswer {
	m := StandbyAnswer{
		Epoch: rapid.Uint64().Draw(t, "epoch"), Accept: rapid.Bool().Draw(t, "accepts"),
	}
	if m.Accept {
		m.Member = drawMemberID(t)
	} else {
		m.Reason = "no" + drawText(t)
	}
	return m
}

func drawPassage(t *rapid.T) Passage {
	p := Passage{Request: rapid.Uint64Min(1).Draw(t, "request")}
	for i := range rapid.IntRange(1, MaxHops).Draw(t, "domains") {
		p.Path = append(p.Path, grid.SiteID(string(rune('a'+i))+string(drawSite(t))))
	}
	p.Hops = rapid.Uint32Range(0, uint32(MaxHops-len(p.Path))).Draw(t, "hops")
	return p
}

func drawBorderAnswer(t *rapid.T) Message {
	m := BorderAnswer{Job: drawJob(t), Seq: drawSeq(t)}
	if rapid.Bool().Draw(t, "offers") {
		offer := drawOffer(t)
		m.Offer = &offer
	} else {
		m.Refusal = drawRefusal(t)
	}
	return m
}

func drawTask(t *rapid.T) grid.TaskID { return drawAttempt(t).Task }

func drawBookings(t *rapid.T) Message {
	m := Bookings{
		Term: rapid.Uint64Min(1).Draw(t, "term"), Number: rapid.Uint64Min(1).Draw(t, "number"),
		Whole: rapid.Bool().Draw(t, "whole"), More: rapid.Bool().Draw(t, "more"),
		Capacity: drawResources(t), Gone: drawSome(t, drawAttempt),
	}
	if rapid.Bool().Draw(t, "works") {
		m.Works = m.Capacity
	}
	if m.Priced = rapid.Bool().Draw(t, "priced"); m.Priced {
		m.Price = rapid.Float64Range(0, MaxPrice).Draw(t, "price")
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "bookings") {
		at := drawAttempt(t)
		at.Task.Job = grid.JobID(rune('a'+i)) + at.Task.Job[1:]
		m.Held = append(m.Held, Booking{
			Attempt: at, Submitter: drawSite(t), StartsIn: drawDur(t, 0, grid.MaxRuntime),
			Lasts: drawDur(t, 1, grid.MaxRuntime), Need: drawResources(t),
			BookedAgo: drawDur(t, 0, maxAgo), Scales: rapid.Bool().Draw(t, "scales"),
			DataBytes: drawNat(t),
		})
	}
	return m
}

func drawRemap(t *rapid.T) Message {
	m := Remap{
		Term: rapid.Uint64Min(1).Draw(t, "term"), Number: rapid.Uint64Min(1).Draw(t, "number"),
		Site: drawSite(t), Before: drawDur(t, 1, grid.MaxRuntime),
		Partly: rapid.Bool().Draw(t, "partly"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "moves") {
		v := RemapMove{Task: drawTask(t)}
		if rapid.Bool().Draw(t, "somewhere") {
			v.To = drawSite(t)
		}
		m.Moves = append(m.Moves, v)
	}
	return m
}

func drawTestimony(t *rapid.T) Testimony {
	m := Testimony{
		Author: drawSite(t), Sequence: rapid.Uint64Min(1).Draw(t, "sequence"),
		IssuedMS:  rapid.Int64Range(0, 4e12).Draw(t, "issued"),
		Signature: drawBytes(t, SignatureBytes),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "statements") {
		m.Said = append(m.Said, Statement{
			About: grid.SiteID(string(rune('a'+i)) + string(drawSite(t))),
			Index: drawFloat(t, 0, MaxFaultIndex), Tried: rapid.Uint64().Draw(t, "tried"),
			Over: drawDur(t, 0, maxAgo), Causes: drawSome(t, drawCount),
		})
	}
	return m
}

func drawCount(t *rapid.T) uint32 { return rapid.Uint32().Draw(t, "count") }
