package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What was said is heard, and not a byte more; what is too large is neither said nor read.
func TestFrames(t *testing.T) {
	var wire bytes.Buffer
	said := opening{From: "a", To: "b", Nonce: []byte{1, 2}}
	if err := say(&wire, said); err != nil {
		t.Fatal(err)
	}
	wire.WriteString("rest")
	var heard opening
	if err := listen(&wire, &heard); err != nil || heard.From != "a" || heard.To != "b" ||
		!bytes.Equal(heard.Nonce, said.Nonce) || wire.String() != "rest" {
		t.Errorf("heard %+v, %v, and %q is left", heard, err, wire.String())
	}
	if err := say(&wire, strings.Repeat("x", maxFrame)); !errors.Is(err, protocol.ErrTooLarge) {
		t.Errorf("too much is said: %v", err)
	}
	for name, raw := range map[string]string{
		"nothing": "\x00\x00\x00\x00", "too much": "\x7f\x00\x00\x00{}",
		"half": "\x00\x00\x00\x09{}", "no header": "\x00", "no JSON": "\x00\x00\x00\x02{]",
	} {
		if err := listen(strings.NewReader(raw), &heard); err == nil {
			t.Errorf("%s is heard", name)
		}
	}
}

// Whatever comes is read or refused.
func FuzzFrames(f *testing.F) {
	for _, value := range []any{
		opening{From: "a"}, answer{Refusal: busy}, proof{}, verdict{}, ask{},
	} {
		var raw bytes.Buffer
		if err := say(&raw, value); err != nil {
			f.Fatal(err)
		}
		f.Add(raw.Bytes())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, into := range []any{
			&opening{}, &answer{}, &proof{}, &verdict{},
			&ask{}, &proposal{}, &agreement{}, &closing{},
		} {
			if listen(bytes.NewReader(raw), into) != nil {
				continue
			}
			if _, err := json.Marshal(into); err != nil {
				t.Errorf("%T was heard and cannot be said: %v", into, err)
			}
		}
	})
}
