package eval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Blocks of seeds that have none in common agree as well as their intervals say: were draws of
// neighbouring seeds related, intervals would be too short or too long, and were they the same,
// means would not vary. Of measures whose laws are as skew as these chance leaves a little more
// than 95 %.
func TestDisjointBlocksAgree(t *testing.T) {
	const size, blocks = 12, 24
	c := Compare{
		Name: "small", Experiment: mustParse(t, smallOne), Seeds: size,
		Only: []string{"BACKFILL"},
	}
	means, near := agreement(t, c, blocks)
	if part := float64(near) / float64(means); part < .92 || part > .99 {
		t.Errorf("%d of %d means agree: %.3f, where chance leaves .95", near, means, part)
	}
}

// agreement compares so many blocks of seeds with each other, and counts means and those of them
// that are as close as their intervals say.
func agreement(t *testing.T, c Compare, blocks int) (means, near int) {
	t.Helper()
	var results []CompareResult
	for k := range blocks {
		c.First = uint64(1 + k*c.Seeds)
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	for k := range results {
		for _, other := range results[:k] {
			b := compareBlocks(results[k], other)
			if b.Means < 8 || b.Close+len(b.Apart) != b.Means {
				t.Fatalf("%+v", b)
			}
			means, near = means+b.Means, near+b.Close
		}
	}
	return means, near
}

// The second block begins where the first one ends, whatever the number of workers, and changes
// nothing of the first one.
func TestRunBlocks(t *testing.T) {
	short := strings.Replace(smallOne, "for=30m", "for=8m", 1)
	c := Compare{Name: "small", Experiment: mustParse(t, short), First: 5, Seeds: 3, Workers: 1}
	var texts []string
	for _, workers := range []int{1, 3} {
		c.Workers = workers
		r, err := c.RunBlocks(t.Context())
		text, wrong := json.Marshal(r)
		if all := errors.Join(err, wrong); all != nil {
			t.Fatal(all)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
	one, err := c.Run(t.Context())
	c.First = 8
	other, wrong := c.Run(t.Context())
	if all := errors.Join(err, wrong); all != nil {
		t.Fatal(all)
	}
	want := compareBlocks(one, other)
	one.Blocks = &want
	text, wrong := json.Marshal(one)
	if wrong != nil || string(text) != texts[0] || want.First != 8 {
		t.Errorf("%v, both alone %s\ntogether %s", wrong, text, texts[0])
	}
	c.Seeds = 1
	if _, err := c.RunBlocks(t.Context()); !errors.Is(err, ErrUsage) {
		t.Errorf("of one seed: %v", err)
	}
}

// Of two results each measure counts that varies and that both have; what is apart is named, the
// farthest first.
func TestCompareBlocks(t *testing.T) {
	result := func(first uint64, wait, slow float64) CompareResult {
		of := map[string]metrics.Interval{
			"wait": {Mean: wait, CI95: 1}, "slowdown": {Mean: slow, CI95: .1},
			"done": {Mean: 7}, "makespan": {Mean: 9, CI95: 1},
		}
		return CompareResult{
			First: first, Seeds: 30, Strategies: map[string]map[string]metrics.Interval{"A": of},
		}
	}
	one, other := result(1, 10, 2), result(31, 13, 2.9)
	delete(other.Strategies["A"], "makespan")
	got := compareBlocks(one, other)
	if got.Means != 2 || got.Close != 0 || got.First != 31 || len(got.Apart) != 2 ||
		got.Apart[0].Measure != "slowdown" || got.Apart[1].Measure != "wait" ||
		got.Apart[1].One.Mean != 10 || got.Apart[1].Other.Mean != 13 {
		t.Errorf("%+v", got)
	}
	same := compareBlocks(one, result(31, 10.5, 2.05))
	if diff := cmp.Diff(Blocks{First: 31, Means: 3, Close: 3}, same); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
