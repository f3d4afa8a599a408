package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEveryMessageComesBackAsItWas(t *testing.T) {
	for name, draw := range messages() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { roundTrip(t, draw(t)) })
		})
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func roundTrip(t fataler, m Message) []byte {
	t.Helper()
	raw, err := Encode(m)
	if err != nil {
		t.Fatalf("Encode(%+v): %v", m, err)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatalf("Decode(Encode(%+v)): %v", m, err)
	}
	if diff := cmp.Diff(m, back); diff != "" {
		t.Fatalf("Decode(Encode(m)) differs (-want +got):\n%s", diff)
	}
	again, err := Encode(back)
	if err != nil || !bytes.Equal(raw, again) {
		t.Fatalf("second encoding differs: %x and %x, %v", raw, again, err)
	}
	return raw
}

func TestEveryBodyOfTheWireHasAMessage(t *testing.T) {
	bodies := (&wirepb.Wire{}).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
	// What is said on behalf of an owner, or by way of a gateway, has the body of what is said.
	if got, want := len(messages())-2, bodies.Len(); got != want {
		t.Errorf("%d messages are tested, the wire has %d bodies", got, want)
	}
}

// The golden files hold one message of each type. When this test fails, sites
// of two builds no longer understand each other: a new protocol version is
// needed, not a new golden file.
func TestTheWireFormatDoesNotChange(t *testing.T) {
	for name, m := range goldenMessages() {
		t.Run(name, func(t *testing.T) {
			raw := roundTrip(t, m)
			path := filepath.Join("testdata", "golden", name+".hex")
			if *update {
				writeHex(t, path, raw)
			}
			if want := readHex(t, path); !bytes.Equal(raw, want) {
				t.Errorf("encoding changed\n got %x\nwant %x", raw, want)
			}
		})
	}
}

func writeHex(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range slices.Chunk(raw, 32) {
		text.WriteString(hex.EncodeToString(line) + "\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readHex(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return raw
}

// goldenMessages sets every field of every message to something else than its
// zero value.
func goldenMessages() map[string]Message {
	at := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 7}, Token: 3}
	res := grid.Resources{
		MilliCPUs: 1500, MemoryBytes: 1 << 30, DiskBytes: 1 << 31, MFLOPS: 4000, NetBps: 20e6,
	}
	window := grid.Window{
		NotBefore: time.UnixMilli(1_900_000_000_123).UTC(),
		Deadline:  time.UnixMilli(1_900_000_600_456).UTC(),
	}
	in := grid.Input{Path: "/in/a", CID: "bafkinput", Bytes: 12, Dir: true}
	out := grid.Produced{Path: "/out/b", CID: "bafkoutput", Bytes: 34, Dir: true}
	weights := grid.Weights{C: 1, M: .5, F: .25, P: 2}
	axes := []grid.Axis{
		{Dimension: grid.Computation, Weight: .5}, {Dimension: grid.Latency, Weight: 2},
	}
	announce := Announce{
		Job: at.Task.Job, Seq: 2, Submitter: "12D3KooWsubmitter",
		Addrs: []string{"/ip4/127.0.0.1/tcp/4001"},
		Req: grid.Requirement{
			Kind: grid.KindWasm, OS: "linux", Arch: "amd64", Need: res, Runtime: 10 * time.Minute,
			Sources: []grid.DataSource{{
				Digest: grid.CID("bafkdata").Digest("home"), Bytes: 99,
				Holders:   []grid.SiteID{"12D3KooWsubmitter", "12D3KooWother"},
				UploadBps: 1e6, PotentialBps: 2e6,
			}},
			Window: window, Map: grid.MapSeconds, Weights: weights, Axes: axes, Project: "p",
		},
		Count: 40, TTL: time.Second, Sample: .5, Theta: .125, Explain: true,
		Nearer: 2.5, Part: .25,
	}
	offer := grid.Offer{
		ID: 9, Site: "12D3KooWsite",
		Parts: grid.Parts{
			X: .5, Y: 1.5, Z: .25, Distance: 1.6, Wait: time.Second,
			StageIn: 2 * time.Second, Run: 3 * time.Second,
			Further:          []grid.Coordinate{{Dimension: grid.Price, Value: .75, Known: true}},
			PotentialUnknown: true,
		},
		LatestStart: 4 * time.Second, Finish: 5 * time.Second, Firm: true, Validity: 6 * time.Second,
		TasksNow:   8,
		CoreMFLOPS: 2500,
	}
	spec := grid.Spec{
		Name: "pi", Kind: grid.KindWasm, Module: in, Args: []string{"--digits", ""},
		Env: []grid.EnvVar{{Name: "SEED", Value: "42"}}, Inputs: []grid.Input{in},
		Outputs: []grid.Output{{Path: "/out/b", To: "b"}}, Need: res, OS: "linux", Arch: "amd64",
		Runtime: 10 * time.Minute, TimeLimit: time.Hour, Window: window,
		Map: grid.MapSeconds, Weights: weights,
		Axes: axes, Unattended: grid.UnattendedFinish, Priority: -3, Project: "p",
		Reservation: "aaaaaaaaaaaaaaaa", Overrun: grid.OverrunStop,
	}
	refusal := grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: 4, Have: 2}
	exit := grid.Exit{
		Cause: grid.CauseSignal, Code: -9, Text: "killed", Outputs: []grid.Produced{out}, Stdout: out,
		Stderr: out,
		Wall:   7 * time.Second,
	}
	attempts := []grid.AttemptID{at, {Task: at.Task, Token: 4}}
	left := []time.Duration{2 * time.Second, 0}
	member := MemberRecord{
		Domain: "lab", Site: "12D3KooWsite", Kind: MemberBan, Name: "x1", SerialMS: 1_900_000_000_000,
		Note:      "left",
		Signature: bytes.Repeat([]byte{7}, SignatureBytes),
	}
	carried := member
	carried.Successions = 1
	saved := grid.Checkpoint{
		Number: 4, CID: "bafysaved", Bytes: 1 << 20, Worked: 90 * time.Second, Percent: 41,
	}
	savedSpec := spec
	savedSpec.Checkpoint = grid.Saving{Every: 5 * time.Minute}
	wholeSpec := spec
	wholeSpec.Kind, wholeSpec.Module = grid.KindCommand, grid.Input{}
	wholeSpec.Checkpoint = grid.Saving{Every: 5 * time.Minute, Whole: true}
	announceWhole := announce
	announceWhole.Req.Saves = true
	announceProbe := announce
	announceProbe.Probe = true
	certificate := goldenCertificate().Encode()
	mandated := Mandate{
		Site: "12D3KooWdeputy", Key: bytes.Repeat([]byte{4}, ed25519.PublicKeySize),
		UntilMS: 1_900_000_600_000, Signature: bytes.Repeat([]byte{8}, SignatureBytes),
	}
	return map[string]Message{
		"behalflease": OnBehalf{
			Behalf:  Behalf{Owner: "12D3KooWowner", Term: 4, Certificate: certificate},
			Message: Lease{Renewal: 12, Attempts: attempts, Duration: 3 * time.Second},
		},
		"behalfrenew": OnBehalf{
			Behalf: Behalf{Owner: "12D3KooWowner"}, Message: Renew{Renewal: 12, Attempts: attempts},
		},
		"neighbours": Neighbours{
			Gateway: "12D3KooWgateway", MadeMS: 1_900_000_000_123,
			All:       []Neighbour{{Domain: "12D3KooWneighbour", Name: "physics"}},
			Signature: bytes.Repeat([]byte{7}, SignatureBytes),
		},
		"deputyneighbours": Neighbours{
			Gateway: "12D3KooWdeputy", MadeMS: 1_900_000_000_123, Mandate: &mandated,
			All:       []Neighbour{{Domain: "12D3KooWneighbour", Name: "physics"}},
			Signature: bytes.Repeat([]byte{7}, SignatureBytes),
		},
		"handover": Handover{
			Gateway: "12D3KooWgateway", MadeMS: 1_900_000_000_123, Mandate: mandated,
			Deputies: []grid.SiteID{"12D3KooWdeputy", "12D3KooWnext"}, Links: []byte("{}"),
			Signature: bytes.Repeat([]byte{9}, SignatureBytes),
		},
		"bygateway": ByGateway{
			Domain: "12D3KooWneighbour", Message: Renew{Renewal: 12, Attempts: attempts},
		},
		"behalfbygateway": ByGateway{Domain: "12D3KooWneighbour", Message: OnBehalf{
			Behalf: Behalf{Owner: "12D3KooWowner"}, Message: Renew{Renewal: 12, Attempts: attempts},
		}},
		"group": Group{
			Owner: "12D3KooWowner", From: 7, To: 8, Message: 3, Part: 1, Parts: 2,
			Data: []byte("raft"),
		},
		"standbyask":    StandbyAsk{Epoch: 3, Facts: 1 << 20},
		"standbyaccept": StandbyAnswer{Accept: true, Member: 8, Epoch: 3},
		"standbyrefuse": StandbyAnswer{Reason: "its owner stands by for nobody", Epoch: 3},
		"groupask":      GroupAsk{"12D3KooWdomain", StandbyAsk{Epoch: 3, Facts: 1 << 20}},
		"groupanswer": GroupAnswer{
			"12D3KooWdomain", StandbyAnswer{Accept: true, Member: 8, Epoch: 3},
		},
		"standbynews": StandbyNews{Certificate: certificate, Term: 4, Acting: "12D3KooWother"},
		"rejoin":      Rejoin{Certificate: certificate},
		"keep": Keep{
			Owner: "12D3KooWowner", Job: at.Task.Job, Number: 5,
			CIDs: []grid.CID{"bafkinput", "bafkoutput"},
		},
		"keeprelease": Keep{
			Owner: "12D3KooWowner", Job: at.Task.Job, Release: true, Number: 6,
		},
		"keepdropped": Keep{
			Owner: "12D3KooWowner", Job: at.Task.Job, Number: 7, Awarded: []grid.SiteID{"12D3KooWsite"},
			Dropped: []grid.CID{"bafkold", "bafkolder"},
		},
		"kept": Kept{Owner: "12D3KooWowner", Number: 5, Problem: "the disk is full"},
		"hello": Hello{
			MinVersion: 1, MaxVersion: 2, Domain: "lab", Name: "x1", Incarnation: 5,
			WallMS: 1_900_000_000_000,
			Capability: grid.Capability{
				Total: res, CoreMFLOPS: 2500, DownBps: 1, UpBps: 2, DiskBps: 3, OS: "linux", Arch: "arm64",
				Kinds: []grid.WorkKind{grid.KindWasm, grid.KindCommand},
			},
			Refusal: grid.ReasonDomain, Peers: []string{"/ip4/127.0.0.1/tcp/4001/p2p/12D3KooWpeer"},
		},
		"hellorun": Hello{
			MinVersion: 1, MaxVersion: 1, Domain: "lab", Incarnation: 5, Refusal: grid.ReasonOlderRun,
			Run:   Run{Number: 5, Nonce: 7, Line: 9, SinceMS: 1_900_000_000_000, Signature: []byte{1}},
			Newer: Run{Number: 6, Nonce: 8, Line: 10, SinceMS: 1_900_000_000_001, Signature: []byte{2}},
		},
		"announce": announce,
		"reannounce": Reannounce{
			Job: at.Task.Job, Seq: 3, Submitter: "12D3KooWsubmitter",
			Digest: DigestOf(announce.Req), Count: 4,
			TTL: time.Second, Explain: true,
		},
		"need":     NeedRequirements{Job: at.Task.Job, Seq: 3},
		"require":  Requirements{Announce: announce},
		"bid":      Bid{Job: at.Task.Job, Seq: 3, Offer: offer},
		"refuse":   Refuse{Job: at.Task.Job, Seq: 3, Refusal: refusal},
		"vacancy":  Vacancy{Jobs: []grid.JobID{at.Task.Job, "aaaaaaaaaaaaaaaa"}},
		"accepted": Accepted{Attempts: attempts, Renewal: 11},
		"declined": Declined{Attempts: attempts, Refusal: refusal, Quote: &offer},
		"award": Award{
			Job: at.Task.Job, OfferID: 9, Spec: spec,
			Tasks: []AwardedTask{
				{Index: 7, Token: 3, Item: grid.Item{Value: "v", Inputs: []grid.Input{in}}},
			},
			Quoted: 1.6, RunnerUp: 1.7, HasNext: true, AskFirst: true,
		},
		"clear": Clear{Job: at.Task.Job, Submitter: "12D3KooWsubmitter", Kind: ClearEnded},
		"hold": HoldOffer{
			Job: at.Task.Job, Seq: 3, OfferID: 9, Tasks: 2, At: time.UnixMilli(1_900_000_000_000).UTC(),
		},
		"maystart": MayStart{Renewal: 12, Attempts: attempts},
		"renew":    Renew{Renewal: 12, Attempts: attempts},
		"renewlist": Renew{
			Renewal: 12, Attempts: attempts, Left: left,
			List: &Listing{
				Also:  []grid.AttemptID{{Task: at.Task, Token: 9}},
				After: grid.AttemptID{Task: grid.TaskID{Job: at.Task.Job, Index: 1}, Token: 1},
				UpTo:  grid.AttemptID{Task: grid.TaskID{Job: at.Task.Job, Index: 99}, Token: 2},
			},
		},
		"lease":  Lease{Renewal: 12, Attempts: attempts, Duration: 3 * time.Second},
		"fence":  Fence{Below: attempts},
		"cancel": Cancel{Job: at.Task.Job},
		"progress": Progress{
			Attempt: at, Phase: grid.PhaseStaging, Done: 5, Total: 10, Reason: grid.ReasonOwnerBusy,
			StartsIn: time.Minute,
		},
		"progressran": Progress{
			Attempt: at, Phase: grid.PhaseRunning, StartedAgo: 1500 * time.Millisecond,
		},
		"exited": Exited{Attempt: at, Exit: exit},
		"exitedago": Exited{
			Attempt: at, Exit: exit, StartedAgo: time.Minute, EndedAgo: 3 * time.Second,
		},
		"exitack": ExitAck{Attempts: attempts},
		"awardsaved": Award{
			Job: at.Task.Job, OfferID: 9, Spec: savedSpec, Quoted: 1.6, RunnerUp: 1.6,
			Tasks: []AwardedTask{{Index: 7, Token: 3, Saved: []grid.Checkpoint{saved, {
				Number: 3, CID: "bafybefore", Bytes: 1,
			}}}},
		},
		"announcewhole": announceWhole,
		"announceprobe": announceProbe,
		"refusewhole": Refuse{
			Job: at.Task.Job, Seq: 3, Refusal: grid.Refusal{Reason: grid.ReasonWhole, Never: true},
		},
		"refuseprobe": Refuse{
			Job: at.Task.Job, Seq: 3, Refusal: refusal, Free: &grid.Resources{MemoryBytes: 1 << 30},
		},
		"hellosaves": Hello{
			MinVersion: 1, MaxVersion: 1, Domain: "lab", Incarnation: 5,
			Capability: grid.Capability{Kinds: []grid.WorkKind{grid.KindCommand}, Saves: true},
		},
		"awardwhole": Award{
			Job: at.Task.Job, OfferID: 9, Spec: wholeSpec, Quoted: 1.6, RunnerUp: 1.6,
			Tasks: []AwardedTask{{Index: 7, Token: 3}},
		},
		"checkpointed": Checkpointed{Attempt: at, Checkpoint: saved},
		"held":         Held{Attempt: at, Number: 4},
		"heldnot":      Held{Attempt: at, Number: 4, Reason: grid.ReasonSavedForeign},
		"move":         Move{Attempt: at},
		"movestop":     Move{Attempt: at, Stop: true},
		"movable": Movable{
			Attempt: at, Reason: grid.ReasonOwnerHours, Saves: true, Next: 5, Begun: true,
		},
		"testimony": Testimony{
			Author: "12D3KooWauthor", Sequence: 1<<32 | 3, IssuedMS: 1_772_000_000_000,
			Said: []Statement{
				{
					About: "12D3KooWbad", Index: 2.5, Tried: 7, Over: 3 * time.Hour,
					Causes: []uint32{0, 2, 1},
				},
				{About: "12D3KooWgood", Tried: 40},
			},
			Signature: bytes.Repeat([]byte{5}, SignatureBytes),
		},
		"bookings": Bookings{
			Term: 3, Number: 1<<32 | 5, More: true,
			Capacity: grid.Resources{MilliCPUs: 8000, MemoryBytes: 1 << 30},
			Works:    grid.Resources{MilliCPUs: 6000, MemoryBytes: 1 << 29},
			Held: []Booking{
				{
					Attempt: at, Submitter: "12D3KooWsite", StartsIn: time.Hour, Lasts: time.Minute,
					Need: grid.Resources{MilliCPUs: 2000}, BookedAgo: time.Second, Scales: true,
					DataBytes: 4096,
				},
			},
			Gone: []grid.AttemptID{{Task: grid.TaskID{Job: at.Task.Job, Index: 8}, Token: 1}},
		},
		"bookingswhole": Bookings{Term: 1, Number: 1, Whole: true},
		"bookingsprice": Bookings{Term: 1, Number: 2, Priced: true, Price: .25},
		"booked":        Booked{Term: 3, Number: 1<<32 | 5, Again: true},
		"remap": Remap{
			Term: 3, Number: 9, Site: "12D3KooWdead", Before: 20 * time.Minute,
			Moves: []RemapMove{
				{Task: at.Task, To: "12D3KooWgood"}, {Task: grid.TaskID{Job: at.Task.Job}},
			},
		},
		"remappartly": Remap{
			Term: 3, Number: 9, Site: "12D3KooWshort", Before: time.Minute, Partly: true,
		},
		"remapped": Remapped{Term: 3, Number: 9, Elsewhere: []grid.TaskID{at.Task}},
		"favours": Favours{Term: 3, Accounts: []Account{
			{Domain: "12D3KooWa", GivenCoreMS: 1 << 40, TakenCoreMS: 7}, {Domain: "12D3KooWb"},
		}},
		"favoursnoted": FavoursNoted{
			Term: 3, Own: []Account{{Domain: "12D3KooWa", GivenCoreMS: 5}},
			Others: []Account{{Domain: "12D3KooWb", TakenCoreMS: 1 << 40}},
		},
		"borderquery": BorderQuery{
			Passage: Passage{Request: 9, Path: []grid.SiteID{"12D3KooWa", "12D3KooWb"}, Hops: 1},
			Job:     at.Task.Job, Seq: 3, Count: 2, TTL: time.Second,
			Req: grid.Requirement{
				Kind: grid.KindCommand, Need: grid.Resources{MilliCPUs: 1000}, Runtime: time.Minute,
			},
		},
		"borderanswer": BorderAnswer{
			Job: at.Task.Job, Seq: 3,
			Offer: &grid.Offer{
				ID: 4, Parts: grid.Parts{X: .5, Distance: .5}, Finish: time.Hour,
				Validity: time.Minute, TasksNow: 7, CoreMFLOPS: 3,
			},
		},
		"borderrefusal": BorderAnswer{
			Job: at.Task.Job, Seq: 3, Refusal: grid.Refusal{Reason: grid.ReasonCPUs, Never: true},
		},
		"borderorder": BorderOrder{
			Passage: Passage{Request: 10, Path: []grid.SiteID{"12D3KooWa"}}, Attempt: at,
			Here: true,
			Spec: grid.Spec{
				Name: "n", Kind: grid.KindCommand, Args: []string{"true"}, Runtime: time.Minute,
				Need: grid.Resources{MilliCPUs: 1000},
			},
		},
		"borderdeclined": BorderDeclined{
			Attempts: []grid.AttemptID{at}, Refusal: grid.Refusal{Reason: grid.ReasonQuota},
		},
		"borderrenew": BorderRenew{Number: 5, Attempts: []grid.AttemptID{at}},
		"borderlease": BorderLease{
			Number: 5, Attempts: []grid.AttemptID{at}, Duration: time.Minute,
		},
		"borderstate": BorderState{
			Attempt: at, Phase: grid.PhaseFrozen, Done: 1, Total: 2, Reason: grid.ReasonOwnerBusy,
			StartedAgo: time.Second,
		},
		"borderend": BorderEnd{
			Attempt: at, Exit: grid.Exit{Cause: grid.CauseExited, Code: 3, Wall: time.Second},
			StartedAgo: time.Minute, EndedAgo: time.Second, UsedCoreMS: 2_000,
		},
		"borderfence": BorderFence{Below: []grid.AttemptID{at}},
		"borderreceipt": BorderReceipt{
			Attempt: at, Giver: "12D3KooWb", Taker: "12D3KooWa", UsedCoreMS: 2_000,
			Signature: bytes.Repeat([]byte{6}, SignatureBytes),
		},
		"deputyreceipt": BorderReceipt{
			Attempt: at, Giver: "12D3KooWb", Taker: "12D3KooWa", UsedCoreMS: 2_000,
			Signature: bytes.Repeat([]byte{6}, SignatureBytes), Mandate: &mandated,
		},
		"roster": Roster{Records: []MemberRecord{member}, Digest: Digest{1, 2}, Answer: true},
		"successions": Roster{
			Records: []MemberRecord{carried}, Digest: Digest{1, 2},
			Successions: goldenSuccessions(),
		},
		"join": JoinRequest{Secret: []byte("0123456789abcdef"), Name: "x1"},
		"joinknows": JoinRequest{
			Secret: []byte("0123456789abcdef"), Name: "x1", Knows: JoinRevoked,
		},
		"joinanswer": JoinAnswer{
			Admit: &member, Listed: []grid.SiteID{"12D3KooWsite"},
			Addrs: []string{"/ip4/10.0.0.1/tcp/4801/p2p/12D3KooWpeer"},
		},
		"joinrefusal": JoinAnswer{Refusal: JoinUsed, Text: "used"},
		"joinrevoked": JoinAnswer{Refusal: JoinRevoked, Text: "revoked"},
		"check":       Check{Number: 7},
		"checked":     Checked{Number: 7, Arrived: true, Distance: .5, Took: time.Second, Text: "t"},
	}
}

func TestDecodeTellsWhatIsWrong(t *testing.T) {
	valid := goldenMessages()
	encode := func(change func(*wirepb.Wire)) []byte {
		wire := &wirepb.Wire{Version: Version}
		change(wire)
		raw, err := proto.Marshal(wire)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	announceWith := func(change func(*wirepb.Announce)) []byte {
		return encode(func(w *wirepb.Wire) {
			setCall(w, valid["announce"])
			change(w.GetAnnounce())
		})
	}
	year10000 := int64(253402300800000)
	tests := []struct {
		name string
		raw  []byte
		want error
	}{
		{"nothing", nil, ErrMalformed},
		{"noise", []byte("GET / HTTP/1.1\r\n"), ErrMalformed},
		{"no body", encode(func(*wirepb.Wire) {}), ErrMalformed},
		{"no version", encode(func(w *wirepb.Wire) {
			w.Version = 0
			setAttempt(w, valid["cancel"])
		}), ErrMalformed},
		{"next version", encode(func(w *wirepb.Wire) {
			w.Version = 2
			setAttempt(w, valid["cancel"])
		}), ErrUnknownMessage},
		{"next version's hello", encode(func(w *wirepb.Wire) {
			w.Version = 2
			setCall(w, valid["hello"])
		}), nil},
		{"unknown body", append(encode(func(*wirepb.Wire) {}), 0xfa, 0x01, 0x00), ErrUnknownMessage},
		{"unknown field", append(encode(func(w *wirepb.Wire) {
			setAttempt(w, valid["cancel"])
		}), 0xfa, 0x06, 0x00), nil},
		{"empty announce", encode(func(w *wirepb.Wire) {
			w.Body = &wirepb.Wire_Announce{}
		}), grid.ErrInvalid},
		{"not a number", announceWith(func(a *wirepb.Announce) {
			a.Theta = math.NaN()
		}), grid.ErrInvalid},
		{"unknown axis", announceWith(func(a *wirepb.Announce) {
			a.Req.Axes[0].Dimension = 77
		}), grid.ErrInvalid},
		{"axis twice", announceWith(func(a *wirepb.Announce) {
			a.Req.Axes[1].Dimension = a.Req.Axes[0].Dimension
		}), grid.ErrInvalid},
		{"axis of no weight", announceWith(func(a *wirepb.Announce) {
			a.Req.Axes[1].Weight = math.NaN()
		}), grid.ErrInvalid},
		{"infinite weight", announceWith(func(a *wirepb.Announce) {
			a.Req.Weights.C = math.Inf(1)
		}), grid.ErrInvalid},
		{"negative amount", announceWith(func(a *wirepb.Announce) {
			a.Req.Need.MemoryBytes = -1
		}), grid.ErrInvalid},
		{"kind 257", announceWith(func(a *wirepb.Announce) { a.Req.Kind = 257 }), grid.ErrInvalid},
		{"map 256", announceWith(func(a *wirepb.Announce) { a.Req.Map = 256 }), grid.ErrInvalid},
		{"year 10000", announceWith(func(a *wirepb.Announce) {
			a.Req.Window.DeadlineMs = &year10000
		}), grid.ErrInvalid},
		{"long announce", announceWith(func(a *wirepb.Announce) {
			a.Req.Os = strings.Repeat("x", maxAnnounceBytes)
		}), ErrTooLarge},
		{"too long for anything", make([]byte, MaxMessageBytes+1), ErrTooLarge},
		{"short digest", encode(func(w *wirepb.Wire) {
			setCall(w, valid["reannounce"])
			w.GetReannounce().Digest = []byte{1}
		}), ErrMalformed},
		{"reason 65537", encode(func(w *wirepb.Wire) {
			setCall(w, valid["refuse"])
			w.GetRefuse().GetRefusal().Reason = 65537
		}), grid.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.raw); !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEncodeRefusesWhatNobodyWouldAccept(t *testing.T) {
	long := goldenMessages()["announce"].(Announce)
	source := long.Req.Sources[0]
	source.Holders = slices.Repeat([]grid.SiteID{grid.SiteID(strings.Repeat("x", 128))},
		grid.MaxHolders)
	long.Req.Sources = slices.Repeat([]grid.DataSource{source}, 64)
	text := goldenMessages()["award"].(Award)
	text.Spec.Args = []string{"\xff"}
	tests := []struct {
		name string
		m    Message
		want error
	}{
		{"nil", nil, ErrUnknownMessage},
		{"pointer", &Cancel{Job: "mfrggzdfmztwq2lk"}, ErrUnknownMessage},
		{"invalid", Cancel{Job: "x"}, grid.ErrInvalid},
		{"too long", long, ErrTooLarge},
		{"not UTF-8", text, grid.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if raw, err := Encode(tt.m); !errors.Is(err, tt.want) || raw != nil {
				t.Errorf("Encode = %d bytes, %v, want %v", len(raw), err, tt.want)
			}
		})
	}
}

func TestWhatAProgramPrintedCannotHideItsEnd(t *testing.T) {
	m := goldenMessages()["exited"].(Exited)
	m.Exit.Text = "caf\xe9\xff!"
	raw, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.(Exited).Exit.Text, "caf?!"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestDigestTellsRequirementsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRequirement(t), drawRequirement(t)
		if got, want := DigestOf(a) == DigestOf(b), cmp.Equal(a, b); got != want {
			t.Fatalf("equal digests: %t, equal requirements: %t\n%+v\n%+v", got, want, a, b)
		}
		if DigestOf(a) == (Digest{}) {
			t.Fatalf("no digest of %+v", a)
		}
	})
	if DigestOf(grid.Requirement{OS: "\xff"}) != (Digest{}) {
		t.Error("a requirement that cannot be encoded has a digest")
	}
}

func TestFramesComeApartWhereverTheStreamIsCut(t *testing.T) {
	generators := messages()
	names := slices.Sorted(maps.Keys(generators))
	rapid.Check(t, func(t *rapid.T) {
		var want []Message
		var stream []byte
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := generators[rapid.SampledFrom(names).Draw(t, "type")](t)
			var err error
			if stream, err = AppendFrame(stream, m); err != nil {
				t.Fatalf("AppendFrame: %v", err)
			}
			want = append(want, m)
		}
		var got []Message
		var buf []byte
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			buf, stream = append(buf, stream[:n]...), stream[n:]
			got, buf = splitAll(t, got, buf)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(buf) > 0 {
			t.Fatalf("%d bytes left, messages differ (-want +got):\n%s", len(buf), diff)
		}
	})
}

func TestAppendFrameOfAnInvalidMessageLeavesTheBuffer(t *testing.T) {
	before := []byte("before")
	if buf, err := AppendFrame(before, Cancel{}); err == nil || !bytes.Equal(buf, before) {
		t.Errorf("AppendFrame of an invalid message = %q, %v", buf, err)
	}
}

// splitAll decodes the frames that are complete and returns what is left.
func splitAll(t *rapid.T, got []Message, buf []byte) ([]Message, []byte) {
	for len(buf) >= FrameHeaderBytes {
		end := FrameHeaderBytes + int(binary.BigEndian.Uint32(buf))
		if len(buf) < end {
			break
		}
		m, err := Decode(buf[FrameHeaderBytes:end])
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		got, buf = append(got, m), buf[end:]
	}
	return got, buf
}

// What a stranger leaves out of a message, a part or a part of a part, is refused or read as
// something that can be said again; it ends no agent.
func TestMissingParts(t *testing.T) {
	for name, m := range goldenMessages() {
		raw, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		var w wirepb.Wire
		if err := proto.Unmarshal(raw, &w); err != nil {
			t.Fatal(err)
		}
		eachPart(w.ProtoReflect(), func(part protoreflect.FullName) {
			left, err := proto.Marshal(&w)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if wrong := recover(); wrong != nil {
					t.Errorf("%v without %s: %v", name, part, wrong)
				}
			}()
			if err := saidAgain(left); err != nil {
				t.Errorf("%v without %s: %v", name, part, err)
			}
		})
	}
}

// eachPart takes each field out of a message and puts it back, one at a time.
func eachPart(m protoreflect.Message, look func(protoreflect.FullName)) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		m.Clear(f)
		look(f.FullName())
		m.Set(f, v)
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				eachPart(v.List().Get(i).Message(), look)
			}
		default:
			eachPart(v.Message(), look)
		}
		return true
	})
}

// saidAgain is an error unless raw is refused for a reason, or read as a message that comes back
// as it was when it is sent.
func saidAgain(raw []byte) error {
	m, err := Decode(raw)
	if err != nil {
		for _, reason := range []error{ErrMalformed, ErrTooLarge, ErrUnknownMessage, grid.ErrInvalid} {
			if errors.Is(err, reason) {
				return nil
			}
		}
		return fmt.Errorf("untyped error: %w", err)
	}
	out, err := Encode(m)
	if errors.Is(err, ErrTooLarge) {
		return nil // it was packed more tightly than Encode does
	} else if err != nil {
		return fmt.Errorf("Encode(%+v): %w", m, err)
	}
	back, err := Decode(out)
	if err != nil {
		return fmt.Errorf("re-encoded: %w", err)
	} else if !cmp.Equal(m, back) {
		return fmt.Errorf("re-encoded:\n%s", cmp.Diff(m, back))
	}
	return nil
}

func FuzzDecode(f *testing.F) {
	for _, m := range goldenMessages() {
		raw, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := saidAgain(raw); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkDecodeAnnounce(b *testing.B) {
	raw, err := Encode(goldenMessages()["announce"])
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
