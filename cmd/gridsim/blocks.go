package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

// mostApart bounds the means that are named: chance leaves some of many.
const mostApart = 10

// checkBlocks refuses numbers of blocks of seeds that make no sense.
func (r *runner) checkBlocks() error {
	switch {
	case r.blocks != 1 && r.blocks != 2:
		return usageError("--blocks: want 1 or 2, have %d", r.blocks)
	case r.blocks == 2 && r.output.name == formCSV:
		return usageError("--blocks 2: want -o table or json: rows have no place for it")
	}
	return nil
}

// play plays one block of seeds, or two.
func (r *runner) play(ctx context.Context, c *eval.Compare) (eval.CompareResult, error) {
	if r.blocks == 2 {
		return c.RunBlocks(ctx)
	}
	return c.Run(ctx)
}

// printBlocks says how well a second block of seeds agrees with the first.
func printBlocks(out io.Writer, r eval.CompareResult) error {
	b := r.Blocks
	if b == nil {
		return nil
	}
	last := func(first uint64) uint64 { return first + uint64(r.Seeds) - 1 }
	fmt.Fprintf(out, "\nseeds %d to %d beside %d to %d: ", b.First, last(b.First), r.First,
		last(r.First))
	fmt.Fprintf(out, "%d of %d means are as close as their intervals say; chance leaves %.0f\n",
		b.Close, b.Means, .95*float64(b.Means))
	if len(b.Apart) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "farthest apart\t\tfirst\tsecond")
	for _, a := range b.Apart[:min(len(b.Apart), mostApart)] {
		fmt.Fprintf(w, "%s\t%s\t%s ±%s\t%s ±%s\n", a.Strategy, a.Measure, short(a.One.Mean),
			short(a.One.CI95), short(a.Other.Mean), short(a.Other.CI95))
	}
	return w.Flush()
}
