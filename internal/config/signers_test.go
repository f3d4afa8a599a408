package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A public key of minisign, from its manual.
const someKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"

func TestSignersAreReadAndWritten(t *testing.T) {
	t.Parallel()
	codec := asSigners()
	for text, want := range map[string]int{
		"": 0, " , ": 0, someKey: 1, "ada=" + someKey + " wasm command": 1,
	} {
		got, err := codec.parse(text)
		if err != nil || len(got) != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if shown := codec.show(got); want > 0 && shown != text {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
	var many []string
	for range 1000 {
		many = append(many, someKey)
	}
	for text, want := range map[string]string{
		strings.Join(many, ","): "at most 256 signers",
		"ada":                   "56 characters", "ada=" + someKey + " gpu": "no kind of work",
	} {
		if _, err := codec.parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func TestSignersThatAreRefused(t *testing.T) {
	t.Parallel()
	env := func(string) (string, bool) { return "", false }
	for want, list := range map[string][]grid.Signer{
		"there twice": {{Key: someKey}, {Name: "b", Key: someKey}},
		"command of ada, but kinds is wasm; add it there or leave it out here": {
			{Name: "ada", Key: someKey, Kinds: []grid.WorkKind{grid.KindCommand}},
		},
		"56 characters": {{Key: "x"}},
	} {
		c := Default(PresetTest, env)
		c.Signers = list
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "signers: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := Default(PresetTest, env)
	c.Signers = []grid.Signer{{Key: someKey}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// A list is edited in a file as any other setting is.
func TestSignersInAFile(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf("ada=%s wasm", someKey)
	after, err := Edit([]byte("name: attic\n"), []Value{{Name: "signers", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	said, err := Says(after)
	if err != nil || said["signers"] != text {
		t.Errorf("the file says %q, %v:\n%s", said["signers"], err, after)
	}
	said, err = Says(
		[]byte("advanced:\n  signers:\n    - " + text + "\n    - bob=" + someKey + "\n"),
	)
	if err != nil || said["signers"] != text+",bob="+someKey {
		t.Errorf("a list says %q, %v", said["signers"], err)
	}
}
