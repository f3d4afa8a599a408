package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// ErrBadInput says that bytes are no encoded input of this build.
var ErrBadInput = errors.New("not an input of this build")

type encodedInput struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body"`
}

type encodedReceipt struct {
	From    grid.SiteID
	To      grid.SiteID `json:",omitempty"`
	Message []byte      // as protocol.Encode writes it
}

// inputTypes reads the body of each input by the name of its type.
var inputTypes = map[string]func([]byte) (Input, error){ //nolint:gochecknoglobals // constant
	"Boot":                readInput[Boot],
	"MessageReceived":     readReceipt,
	"TimerFired":          readInput[TimerFired],
	"PeerSeen":            readInput[PeerSeen],
	"PeerGone":            readInput[PeerGone],
	"AttemptsDied":        readInput[AttemptsDied],
	"BandwidthMeasured":   readInput[BandwidthMeasured],
	"ClockStepped":        readInput[ClockStepped],
	"AttemptStarted":      readInput[AttemptStarted],
	"AttemptFrozen":       readInput[AttemptFrozen],
	"AttemptResumed":      readInput[AttemptResumed],
	"AttemptExited":       readInput[AttemptExited],
	"StageProgress":       readInput[StageProgress],
	"Staged":              readInput[Staged],
	"CanSave":             readInput[CanSave],
	"Saved":               readInput[Saved],
	"Pulled":              readInput[Pulled],
	"Verified":            readInput[Verified],
	"PlanningChanged":     readInput[PlanningChanged],
	"TermsChanged":        readInput[TermsChanged],
	"Collected":           readInput[Collected],
	"SpaceChanged":        readInput[SpaceChanged],
	"ShareChanged":        readInput[ShareChanged],
	"HeldChanged":         readInput[HeldChanged],
	"CapacityChanged":     readInput[CapacityChanged],
	"Pause":               readInput[Pause],
	"Resume":              readInput[Resume],
	"Drain":               readInput[Drain],
	"OwnerBusy":           readInput[OwnerBusy],
	"OwnerAway":           readInput[OwnerAway],
	"OwnerReturns":        readInput[OwnerReturns],
	"BansChanged":         readInput[BansChanged],
	"Submit":              readInput[Submit],
	"Probe":               readInput[Probe],
	"CancelJob":           readInput[CancelJob],
	"HoldJob":             readInput[HoldJob],
	"MoveTasks":           readInput[MoveTasks],
	"ForgetJob":           readInput[ForgetJob],
	"Archived":            readInput[Archived],
	"AvailabilityLearned": readInput[AvailabilityLearned],
	"Controller":          readInput[Controller],
	"NeighbourSeen":       readInput[NeighbourSeen],
	"NeighbourGone":       readInput[NeighbourGone],
	"BorderReceived":      readBorderReceipt,
	"LinksChanged":        readInput[LinksChanged],
	"Replied":             readInput[Replied],
	"OrderNews":           readInput[OrderNews],
	"Ceiling":             readInput[Ceiling],
	"Signed":              readInput[Signed],
}

func readInput[T Input](body []byte) (Input, error) {
	var in T
	err := json.Unmarshal(body, &in)
	return in, err
}

func readReceipt(body []byte) (Input, error) {
	var receipt encodedReceipt
	if err := json.Unmarshal(body, &receipt); err != nil {
		return nil, err
	}
	m, err := protocol.Decode(receipt.Message)
	return MessageReceived{From: receipt.From, To: receipt.To, Message: m}, err
}

func readBorderReceipt(body []byte) (Input, error) {
	var receipt encodedReceipt
	if err := json.Unmarshal(body, &receipt); err != nil {
		return nil, err
	}
	m, err := protocol.DecodeBorder(receipt.Message)
	return BorderReceived{Domain: receipt.From, Message: m}, err
}

// received writes an input that brings a message; nil: it brings none.
func received(in Input) (*encodedReceipt, error) {
	var receipt encodedReceipt
	var msg protocol.Message
	switch in := in.(type) {
	case MessageReceived:
		receipt.From, receipt.To, msg = in.From, in.To, in.Message
	case BorderReceived:
		receipt.From, msg = in.Domain, in.Message
	default:
		return nil, nil //nolint:nilnil // what is no receipt is written as it is
	}
	raw, err := protocol.Encode(msg)
	if err != nil {
		return nil, fmt.Errorf("encode input from %s: %w", receipt.From, err)
	}
	receipt.Message = raw
	return &receipt, nil
}

// EncodeInput writes an input for a journal: one JSON object with the name of
// its type. It is read by DecodeInput of the same build. A message that
// protocol.Encode refuses is an error.
func EncodeInput(in Input) ([]byte, error) {
	name := typeName(in)
	if _, known := inputTypes[name]; !known {
		return nil, fmt.Errorf("encode input: %w: %T", ErrBadInput, in)
	}
	var value any = in
	receipt, err := received(in)
	if err != nil {
		return nil, err
	}
	if receipt != nil {
		value = receipt
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode input %s: %w", name, err)
	}
	// As json.Marshal of an encodedInput would, but without reading the body again.
	text := make([]byte, 0, len(`{"type":"","body":}`)+len(name)+len(body))
	text = append(append(text, `{"type":"`...), name...)
	text = append(append(text, `","body":`...), body...)
	return append(text, '}'), nil
}

// DecodeInput reads what EncodeInput wrote. The error is ErrBadInput, wrapped
// with its cause.
func DecodeInput(raw []byte) (Input, error) {
	var outer encodedInput
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	read, known := inputTypes[outer.Type]
	if !known {
		return nil, fmt.Errorf("%w: type %q", ErrBadInput, outer.Type)
	}
	in, err := read(outer.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadInput, outer.Type, err)
	}
	return in, nil
}

// typeName is the name of v's type without its package, "nil" for nil.
func typeName(v any) string {
	if v == nil {
		return "nil"
	}
	return reflect.TypeOf(v).Name()
}
