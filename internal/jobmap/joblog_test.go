package jobmap_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/jobmap"
)

func TestLogOfTasks(t *testing.T) {
	t.Parallel()
	first := jobmap.LogEntry{
		Number: 1, Host: "attic", Start: time.UnixMilli(1_767_323_045_250),
		Run: 1500 * time.Millisecond, Send: 10, Receive: 20, Code: 137, Signal: 9,
		Command: "a\tb\nc",
	}
	want := "1\tattic\t1767323045.250\t     1.500\t10\t20\t137\t9\ta\\tb\\nc\n"
	if got := first.Line(); got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	second := jobmap.LogEntry{Number: 12, Code: -1, Command: "never started"}
	text := jobmap.LogHeader + first.Line() + second.Line()
	for _, cut := range []string{"", "13", "13\tattic\t1"} {
		seen, whole, err := jobmap.ReadLog(strings.NewReader(text + cut))
		numbers := slices.Sorted(maps.Keys(seen))
		if err != nil || whole != int64(len(text)) || !slices.Equal(numbers, []int{1, 12}) {
			t.Errorf("with %q at the end: %v, %d bytes, %v", cut, numbers, whole, err)
		}
	}
	if seen, _, err := jobmap.ReadLog(strings.NewReader("")); err != nil || len(seen) > 0 {
		t.Errorf("an empty log: %v, %v", seen, err)
	}
	if _, _, err := jobmap.ReadLog(strings.NewReader("root:x:0\n")); err == nil {
		t.Error("another file is taken for a log")
	}
}

// FuzzReadLog reads any text.
func FuzzReadLog(f *testing.F) {
	f.Add("")
	f.Add(jobmap.LogHeader + "1\tx\n2\ty")
	f.Fuzz(func(t *testing.T, text string) {
		seen, whole, err := jobmap.ReadLog(strings.NewReader(text))
		if err == nil && (len(seen) > strings.Count(text, "\n") || whole > int64(len(text))) {
			t.Errorf("%q has %d tasks", text, len(seen))
		}
	})
}
