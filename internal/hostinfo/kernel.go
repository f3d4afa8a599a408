package hostinfo

import (
	"context"
	"fmt"
	"time"
)

const (
	kernelTotal  = 200 * time.Millisecond // all runs together
	kernelRuns   = 10                     // short runs, of which the fastest counts
	kernelChunk  = 20_000                 // rounds between two looks at the clock, about 0.1 ms
	kernelLanes  = 8                      // independent chains, so that latency does not bound the rate
	flopsPerLane = 2                      // one multiplication and one addition
)

// MeasureCore measures the computation that one core sustains now, in MFLOP/s:
// multiply-add in double precision on eight independent lanes, about 200 ms
// altogether. The machine may be busy with something else, so the fastest of
// several short runs counts. The result is at least 1; when ctx ends first it is
// 0 and the error says so.
func MeasureCore(ctx context.Context) (int64, error) {
	var best float64
	for range kernelRuns {
		rate, err := measureRun(ctx, kernelTotal/kernelRuns)
		if err != nil {
			return 0, err
		}
		best = max(best, rate)
	}
	return max(int64(best/1e6), 1), nil
}

// measureRun is one run of the kernel: FLOP/s.
func measureRun(ctx context.Context, length time.Duration) (float64, error) {
	lanes := [kernelLanes]float64{1, 2, 3, 4, 5, 6, 7, 8}
	rounds := 0
	start := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("measure computation: %w", err)
		}
		lanes = multiplyAdd(lanes, kernelChunk)
		rounds += kernelChunk
		took := time.Since(start)
		if took < length {
			continue
		}
		if lanes[0] != lanes[0] { // keeps the lanes alive; they converge to 1
			return 0, fmt.Errorf("measure computation: the kernel lost its numbers")
		}
		return float64(rounds) * kernelLanes * flopsPerLane / took.Seconds(), nil
	}
}

// multiplyAdd runs a*m + c on every lane. Each lane tends to 1, so nothing
// overflows or becomes denormal, both of which would slow some processors down.
func multiplyAdd(lanes [kernelLanes]float64, rounds int) [kernelLanes]float64 {
	const m, c = 0.999999, 0.000001
	l0, l1, l2, l3 := lanes[0], lanes[1], lanes[2], lanes[3]
	l4, l5, l6, l7 := lanes[4], lanes[5], lanes[6], lanes[7]
	for range rounds {
		l0 = l0*m + c
		l1 = l1*m + c
		l2 = l2*m + c
		l3 = l3*m + c
		l4 = l4*m + c
		l5 = l5*m + c
		l6 = l6*m + c
		l7 = l7*m + c
	}
	return [kernelLanes]float64{l0, l1, l2, l3, l4, l5, l6, l7}
}
