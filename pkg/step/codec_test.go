package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// generated draws any value of T whose text is UTF-8, whose times have a JSON
// form and whose numbers are finite.
func generated[T Input](t *rapid.T) Input {
	return rapid.MakeCustom[T](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[time.Time](): rapid.Custom(func(t *rapid.T) any {
				if rapid.Bool().Draw(t, "zero") {
					return time.Time{}
				}
				return time.Unix(0, rapid.Int64Range(0, 4e18).Draw(t, "ns")).UTC()
			}),
		},
		Kinds: map[reflect.Kind]*rapid.Generator[any]{
			reflect.Float64: rapid.Float64Range(-1e300, 1e300).AsAny(),
		},
	}).Draw(t, "input")
}

func receipt(t *rapid.T) Input {
	at := grid.AttemptID{
		Task:  grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: rapid.Uint32().Draw(t, "index")},
		Token: grid.Token(rapid.Uint64Min(1).Draw(t, "token")),
	}
	to := rapid.SampledFrom([]grid.SiteID{"", "12D3KooWneighbour"}).Draw(t, "to")
	return MessageReceived{From: "12D3KooWx", To: to, Message: rapid.SampledFrom([]protocol.Message{
		protocol.NeedRequirements{Job: at.Task.Job, Seq: 3},
		protocol.Renew{Renewal: uint64(at.Token), Attempts: []grid.AttemptID{at}},
		protocol.Lease{Renewal: 4, Attempts: []grid.AttemptID{at}, Duration: time.Second + 1},
		protocol.Declined{
			Attempts: []grid.AttemptID{at}, Refusal: grid.Refusal{Reason: grid.ReasonWorse},
			Quote: &grid.Offer{ID: 1, Site: "s", Validity: 1, TasksNow: 1, Parts: grid.Parts{Y: math.Pi}},
		},
	}).Draw(t, "message")}
}

func borderReceipt(t *rapid.T) Input {
	at := grid.AttemptID{
		Task:  grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: rapid.Uint32().Draw(t, "index")},
		Token: grid.Token(rapid.Uint64Min(1).Draw(t, "token")),
	}
	msg := rapid.SampledFrom([]protocol.Message{
		protocol.BorderRenew{Number: uint64(at.Token), Attempts: []grid.AttemptID{at}},
		protocol.BorderFence{Below: []grid.AttemptID{at}},
		protocol.BorderEnd{Attempt: at, Exit: grid.Exit{Cause: grid.CauseExited}, UsedCoreMS: 5},
	}).Draw(t, "message")
	return BorderReceived{Domain: "12D3KooWneighbour", Message: msg}
}

func inputs() []func(*rapid.T) Input {
	return []func(*rapid.T) Input{
		generated[Boot], receipt, generated[TimerFired], generated[PeerSeen], generated[PeerGone],
		generated[BandwidthMeasured], generated[ClockStepped], generated[AttemptStarted],
		generated[AttemptFrozen], generated[AttemptResumed], generated[AttemptExited],
		generated[StageProgress], generated[Staged], generated[Verified], generated[PlanningChanged],
		generated[TermsChanged], generated[Collected], generated[HeldChanged], generated[CapacityChanged],
		learned, generated[Pause], generated[Resume], generated[Drain], generated[OwnerBusy],
		generated[OwnerAway], generated[Submit], generated[Probe], generated[CancelJob],
		generated[ForgetJob], generated[Archived], generated[BansChanged], generated[SpaceChanged],
		generated[ShareChanged],
		generated[AttemptsDied], generated[CanSave], generated[Saved], generated[Pulled],
		generated[OwnerReturns], generated[MoveTasks], generated[HoldJob],
		generated[Controller],
		borderReceipt, generated[NeighbourSeen], generated[NeighbourGone], generated[LinksChanged],
		generated[Replied], generated[OrderNews], generated[Ceiling], generated[Signed],
	}
}

// learned draws an input with a model as Fit makes it.
func learned(t *rapid.T) Input {
	span := rapid.Custom(func(t *rapid.T) avail.Span {
		return avail.Span{
			Week:    rapid.Float64Range(-1, 600_000).Draw(t, "week"),
			Seconds: rapid.Float64Range(0, 1e6).Draw(t, "seconds"),
			End:     avail.Ending(rapid.Uint8Max(2).Draw(t, "end")),
		}
	})
	model, err := avail.Fit(avail.History{
		Spans: rapid.SliceOfN(span, 0, 20).Draw(t, "spans"),
	}, avail.DefaultPriors(), nil, 3600)
	if err != nil {
		t.Fatal(err)
	}
	return AvailabilityLearned{
		Model: model, Up: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "up"), 0).UTC(),
	}
}

func TestEveryInputComesBackAsItWas(t *testing.T) {
	seen := map[string]bool{}
	for i, draw := range inputs() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := draw(t)
				seen[typeName(in)] = true
				raw, err := EncodeInput(in)
				if err != nil {
					t.Fatal(err)
				}
				back, err := DecodeInput(raw)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(in, back); diff != "" {
					t.Fatalf("%T differs (-want +got):\n%s", in, diff)
				}
			})
		})
	}
	for _, name := range append(declared(t, "input.go", "input"),
		declared(t, "border.go", "input")...) {
		if !seen[name] || inputTypes[name] == nil {
			t.Errorf("input %s is not tested or not in the table", name)
		}
	}
}

// declared lists the types of a file that have the method.
func declared(t *testing.T, file, method string) []string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == method && f.Recv != nil {
			names = append(names, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s declares nothing with %s", file, method)
	}
	return names
}

type strangeInput struct{}

func (strangeInput) input() {}

func TestInputsThatCannotBeWrittenOrRead(t *testing.T) {
	for _, in := range []Input{nil, strangeInput{}, &Boot{}} {
		if raw, err := EncodeInput(in); !errors.Is(err, ErrBadInput) {
			t.Errorf("EncodeInput(%T) = %q, %v, want %v", in, raw, err, ErrBadInput)
		}
	}
	cancel := MessageReceived{Message: protocol.Cancel{}}
	if _, err := EncodeInput(cancel); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("an invalid message: %v, want %v", err, grid.ErrInvalid)
	}
	if raw, err := EncodeInput(TermsChanged{Price: math.NaN()}); err == nil || raw != nil {
		t.Errorf("a price that is no number is %q, %v", raw, err)
	}
	for _, raw := range []string{
		"", "{}", `{"type":"Nap","body":{}}`, `{"type":"Boot"}`,
		`{"type":"Boot","body":{"Incarnation":-1}}`, `{"type":"MessageReceived","body":{}}`,
		`{"type":"MessageReceived","body":{"Message":"AAAA"}}`,
	} {
		if in, err := DecodeInput([]byte(raw)); !errors.Is(err, ErrBadInput) || in != nil {
			t.Errorf("DecodeInput(%s) = %v, %v, want %v", raw, in, err, ErrBadInput)
		}
	}
}

// A message from nobody that can be named is none, whatever it says.
func TestAReceiptNamesItsSender(t *testing.T) {
	raw, err := EncodeInput(MessageReceived{From: "s", Message: protocol.Check{Number: 1}})
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(raw, []byte(`"From":"s"`), []byte(`"From":7`), 1)
	if in, err := DecodeInput(wrong); !errors.Is(err, ErrBadInput) || in != nil {
		t.Errorf("DecodeInput(%s) = %v, %v", wrong, in, err)
	}
}

// The cause stands in the error.
func TestDecodeInputNamesTheCause(t *testing.T) {
	var syntax *json.SyntaxError
	if _, err := DecodeInput([]byte("{")); !errors.As(err, &syntax) {
		t.Errorf("half an object: %v", err)
	}
	var kind *json.UnmarshalTypeError
	if _, err := DecodeInput([]byte(`{"type":7}`)); !errors.As(err, &kind) {
		t.Errorf("a type that is no name: %v", err)
	}
}

func effects() []Effect {
	at := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 7}, Token: 3}
	when := time.Unix(1_900_000_000, 5).In(time.FixedZone("east", 3600))
	return []Effect{
		Broadcast{Message: protocol.Clear{Job: at.Task.Job, Submitter: "s", Kind: protocol.ClearPlaced}},
		Send{To: "s", Message: protocol.Declined{Quote: &grid.Offer{ID: 5}}},
		SetTimer{Key: TimerKey{Name: "ttl", ID: "x"}, At: when},
		StopTimer{Key: TimerKey{Name: "ttl"}},
		Persist{Fact: NewFact("job/1", "k", map[string]int{"b": 1, "a": 2})},
		Persist{Fact: Fact{Kind: "job/1", Key: "k"}},
		Stage{Attempt: at, From: "s", Inputs: []grid.Input{{Path: "/a"}}},
		StartAttempt{Attempt: at, LeaseUntil: when},
		ExtendLease{Attempt: at, LeaseUntil: when},
		StopAttempt{Attempt: at},
		Discard{Attempt: at, Outputs: []grid.CID{"c"}},
		Collect{Attempt: at, From: "s"},
		Hold{Job: at.Task.Job, Release: true},
		Report{Event: "offer_made", Value: math.Inf(1), Attempt: at, Reason: grid.ReasonMemory},
		Reply{Command: 4, Job: at.Task.Job, Err: fmt.Errorf("forget: %w", ErrNotEnded)},
		SuspendAttempt{Attempt: at},
		ContinueAttempt{Attempt: at},
		Verify{Attempt: at, Start: when, End: when},
		Archive{Jobs: []ArchivedJob{{Job: at.Task.Job, Ended: when, Record: []byte("{}")}}},
		Save{Attempt: at, Number: 4},
		Pull{Attempt: at, From: "s", Work: "w", Checkpoint: grid.Checkpoint{Number: 4, CID: "c"}},
		LetGo{Attempt: at, CIDs: []grid.CID{"c"}},
		Order{Command: 5, Input: Ceiling{Job: at.Task.Job, Until: time.Unix(1_900_000_000, 0)}},
		SendBorder{Domain: "b", Message: protocol.BorderFence{Below: []grid.AttemptID{at}}},
		SendAs{As: "b", To: "s", Message: protocol.Cancel{Job: at.Task.Job}},
		TellBorder{News: OrderNews{Job: at.Task.Job, Phase: grid.PhaseRunning}},
		Sign{ID: at.String(), Text: []byte("text")},
	}
}

func TestEffectsReadLikeThis(t *testing.T) {
	want := []string{
		`{"type":"Broadcast","message":"Clear",` +
			`"body":{"Job":"mfrggzdfmztwq2lk","Submitter":"s","Kind":1}}`,
		"",
		`{"type":"SetTimer",` +
			`"body":{"Key":{"Name":"ttl","ID":"x"},"At":"2030-03-17T17:46:40.000000005Z"}}`,
		"",
		`{"type":"Persist","body":{"kind":"job/1","key":"k","value":{"a":2,"b":1}}}`,
		`{"type":"Persist","body":{"kind":"job/1","key":"k","value":null}}`,
		"", "", "", "", "", "", "",
		`{"type":"Report","body":{"Event":"offer_made","Level":0,` +
			`"Attempt":"mfrggzdfmztwq2lk.7#3","Site":"",` +
			`"Reason":"too little memory","Value":"+Inf","Text":""}}`,
		`{"type":"Reply","body":{"Command":4,"Job":"mfrggzdfmztwq2lk",` +
			`"Err":"forget: the job has not ended; cancel it first"}}`,
		"", "", "", "",
		`{"type":"Save","body":{"Attempt":{"Task":{"Job":"mfrggzdfmztwq2lk","Index":7},` +
			`"Token":3},"Number":4}}`, "", "",
		`{"type":"Order","message":"Ceiling","body":{"Command":5,"Input":` +
			`{"Job":"mfrggzdfmztwq2lk","Until":"2030-03-17T17:46:40Z"}}}`,
		`{"type":"SendBorder","message":"BorderFence","body":{"Domain":"b","Message":{"Below":` +
			`[{"Task":{"Job":"mfrggzdfmztwq2lk","Index":7},"Token":3}]}}}`,
		`{"type":"SendAs","message":"Cancel","body":{"As":"b","To":"s","Message":` +
			`{"Job":"mfrggzdfmztwq2lk"}}}`,
		"", "",
	}
	var seen []string
	for i, e := range effects() {
		seen = append(seen, typeName(e))
		if got := EncodeEffect(e); want[i] != "" && got != want[i] {
			t.Errorf("EncodeEffect(%T)\n got %s\nwant %s", e, got, want[i])
		}
	}
	for _, name := range append(declared(t, "effect.go", "effect"),
		declared(t, "border.go", "effect")...) {
		if !slices.Contains(seen, name) {
			t.Errorf("effect %s is not tested", name)
		}
	}
	for _, e := range []Effect{
		nil,
		Persist{Fact: Fact{Value: []byte("{")}},
		Send{Message: protocol.Declined{Quote: &grid.Offer{Parts: grid.Parts{X: math.NaN()}}}},
	} {
		if a, b := EncodeEffect(e), EncodeEffect(e); a != b || a == "" {
			t.Errorf("EncodeEffect of what has no JSON form: %q, then %q", a, b)
		}
	}
}

func TestHashTellsEffectsApart(t *testing.T) {
	all := effects()
	hashes := map[uint64]string{}
	note := func(what string, list []Effect) {
		t.Helper()
		h := HashEffects(0, list)
		if other, taken := hashes[h]; taken {
			t.Errorf("%s and %s have the same hash", what, other)
		}
		hashes[h] = what
	}
	note("none", nil)
	for i, e := range all {
		note(fmt.Sprintf("effect %d", i), []Effect{e})
	}
	note("all", all)
	slices.Reverse(all)
	note("all reversed", all)
	if HashEffects(1, nil) == HashEffects(2, nil) {
		t.Error("the seed does not count")
	}
	// The value is fixed: another process, and the next build, must find it too.
	if got, want := HashEffects(7, effects()), uint64(goldenHash); got != want {
		t.Errorf("hash = %#x, want %#x", got, want)
	}
	local, utc := time.Unix(1, 0).In(time.FixedZone("west", -3600)), time.Unix(1, 0).UTC()
	if HashEffects(0, []Effect{SetTimer{At: local}}) != HashEffects(0, []Effect{SetTimer{At: utc}}) {
		t.Error("the zone of a time counts")
	}
}

const goldenHash = 0x87f91619d7e88490

func FuzzDecodeInput(f *testing.F) {
	for _, in := range []Input{
		Boot{Incarnation: 1},
		Pause{},
		Submit{},
		TimerFired{},
		MessageReceived{From: "x", Message: protocol.Cancel{Job: "mfrggzdfmztwq2lk"}},
	} {
		raw, err := EncodeInput(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := DecodeInput(raw)
		if err != nil {
			return
		}
		out, err := EncodeInput(in)
		if err != nil { // packed more tightly than Encode does
			if !errors.Is(err, protocol.ErrTooLarge) {
				t.Fatalf("EncodeInput(%+v): %v", in, err)
			}
			return
		}
		if back, err := DecodeInput(out); err != nil || !cmp.Equal(in, back) {
			t.Errorf("re-encoded: %v\n%s", err, cmp.Diff(in, back))
		}
	})
}

// A line of an effect is for people: it names the message, and its times are in UTC, wherever
// the site is.
func TestLinesOfEffects(t *testing.T) {
	east := time.Unix(1_900_000_000, 0).In(time.FixedZone("east", 3600))
	for _, e := range []Effect{
		SetTimer{At: east}, StartAttempt{LeaseUntil: east}, ExtendLease{LeaseUntil: east},
	} {
		if got := EncodeEffect(e); !strings.Contains(got, `"2030-03-17T17:46:40Z"`) {
			t.Errorf("%T: %s", e, got)
		}
	}
	for _, e := range []Effect{
		Broadcast{Message: protocol.Check{}}, Send{Message: protocol.Check{}},
	} {
		if got := EncodeEffect(e); !strings.Contains(got, `"message":"Check"`) {
			t.Errorf("%T: %s", e, got)
		}
	}
}
