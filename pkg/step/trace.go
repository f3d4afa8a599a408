package step

import (
	"encoding/json"
	"fmt"
	"strconv"
)

type encodedEffect struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"` // the type of the message in the body
	Body    any    `json:"body"`
}

// EncodeEffect writes an effect as one line of JSON for people: with the name of
// its type, times in UTC, errors by their text and facts as the JSON that they
// are. It is never read back.
func EncodeEffect(e Effect) string {
	line := encodedEffect{Type: typeName(e), Body: e}
	switch e := e.(type) {
	case Broadcast:
		line.Message, line.Body = typeName(e.Message), e.Message
	case Send:
		line.Message = typeName(e.Message)
	case SendBorder:
		line.Message = typeName(e.Message)
	case SendAs:
		line.Message = typeName(e.Message)
	case Order:
		line.Message = typeName(e.Input)
		if in, is := e.Input.(Ceiling); is {
			in.Until = in.Until.UTC()
			e.Input = in
		}
		line.Body = e
	case SetTimer:
		e.At = e.At.UTC()
		line.Body = e
	case StartAttempt:
		e.LeaseUntil = e.LeaseUntil.UTC()
		line.Body = e
	case ExtendLease:
		e.LeaseUntil = e.LeaseUntil.UTC()
		line.Body = e
	case Persist:
		line.Body = encodedFact{Kind: e.Fact.Kind, Key: e.Fact.Key, Value: e.Fact.Value}
	case Report:
		line.Body = readableReport(e)
	case Reply:
		line.Body = readableReply(e)
	}
	text, err := json.Marshal(line)
	if err != nil { // not a number, a year above 9999, or a fact that is no JSON
		return fmt.Sprintf("%s cannot be written: %v", line.Type, err)
	}
	return string(text)
}

// readableReport writes Value as text, because JSON has no infinity.
func readableReport(r Report) any {
	return struct {
		Event   string
		Level   Level
		Attempt string
		Site    string
		Reason  string
		Value   string
		Text    string
	}{
		r.Event, r.Level, r.Attempt.String(), string(r.Site), r.Reason.String(),
		strconv.FormatFloat(r.Value, 'g', -1, 64), r.Text,
	}
}

func readableReply(r Reply) any {
	text := ""
	if r.Err != nil {
		text = r.Err.Error()
	}
	return struct {
		Command uint64
		Job     string
		Err     string
	}{r.Command, string(r.Job), text}
}
