package jobmap_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestWhereArgumentsBegin(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]jobmap.Line{
		"gzip -9 {} ::: a b": {
			Words: []string{"gzip", "-9", "{}"}, Arguments: []string{"a", "b"}, Given: true,
		},
		"wc :::: list": {Words: []string{"wc"}, File: "list"},
		"wc {}":        {Words: []string{"wc", "{}"}},
	} {
		got, err := jobmap.Split(strings.Fields(line))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", line, err, diff)
		}
	}
	for line, want := range map[string]string{
		"a ::: b ::: c": "several", "a ::: b :::+ c": "several", "a :::+ b": "several",
		"a :::: b ::: c": "several", "a :::": "nothing", "a :::: b c": "one file",
		"a ::::": "one file",
	} {
		_, err := jobmap.Split(strings.Fields(line))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", line, err, want)
		}
	}
}

func TestListsOfArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4096)
	for text, want := range map[string]int{
		"a\nb\n": 2, "a\n\nb": 3, "\n": 1, long + "\n": 1,
		strings.Repeat("x\n", grid.MaxTasks): grid.MaxTasks,
	} {
		got, err := jobmap.ReadArguments(strings.NewReader(text))
		if err != nil || len(got) != want {
			t.Errorf("%.10q: %d arguments, %v, want %d", text, len(got), err, want)
		}
	}
	for text, want := range map[string]string{
		"": "empty", "a\n" + long + "x": "line 2 is longer",
		strings.Repeat("x", 1<<20):             "line 1 is longer",
		strings.Repeat("x\n", grid.MaxTasks+1): "more than 100000",
	} {
		if _, err := jobmap.ReadArguments(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, want an error with %q", text, err, want)
		}
	}
}
