package scenario

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Whatever can be written is explained, and no list of files is.
func TestWordsExplainAll(t *testing.T) {
	text, err := Words()
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(
		slices.Collect(maps.Keys(words)), slices.Collect(maps.Keys(Troubles())), Lies(), Measures(),
	)
	explained := strings.Fields(text)
	for _, word := range all {
		if !slices.Contains(explained, word) {
			t.Errorf("%q is not explained", word)
		}
	}
	for _, source := range []string{".go", "ackage", "//"} {
		if strings.Contains(text, source) {
			t.Errorf("it is about its source, %q:\n%s", source, text)
		}
	}
	for key := range strings.FieldsSeq(submitKeys) {
		if !strings.Contains(text, key+"=") {
			t.Errorf("the key %q is not shown", key)
		}
	}
}
