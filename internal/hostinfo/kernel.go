package hostinfo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// kernelVersion is raised when the code below changes: what an earlier one
// measured says nothing of this one.
const kernelVersion = 2

const (
	kernelMost   = 600 * time.Millisecond // all runs together, warming up included
	kernelWarm   = 50 * time.Millisecond  // after which the processor runs at the speed it keeps
	kernelRun    = 2 * time.Millisecond   // one run: short, so that a busy machine leaves some alone
	kernelEnough = 25                     // undisturbed runs
	kernelChunk  = 10_000                 // rounds to begin the calibration with
	kernelLanes  = 8                      // independent chains: latency does not bound the rate
	flopsPerLane = 2                      // one multiplication and one addition
	undisturbed  = .97                    // of a run's time its thread must have had a processor
	agreement    = .05                    // between the fastest and the median of the undisturbed runs
)

// coreSpeed is the result of the kernel.
type coreSpeed struct {
	MFLOPS    int64 // of one core, 10^6 FLOP/s, at least 1
	Runs      int   // short runs that were made
	Disturbed int   // those of them in which something else had the processor for a while
	// Steady says that enough runs were undisturbed and agreed with each other: the
	// machine was quiet, and another measurement would find the same.
	Steady bool
}

// measureCore measures the computation that one core sustains: multiply-add in
// double precision on eight independent lanes, for at most 600 ms and about 100 ms
// on a quiet machine. Of several short runs those count during which nothing else
// had the processor, other programs or other guests of the host; the fastest of
// them is the result. Where there was none, the fastest by processor time is, and
// the result is not steady. When ctx ends first, the error says so.
func measureCore(ctx context.Context) (coreSpeed, error) {
	runtime.LockOSThread() // threadTime is that of one thread
	defer runtime.UnlockOSThread()
	run := func(rounds int) (kernelTimes, error) { return runKernel(ctx, rounds) }
	rounds, err := calibrate(run, kernelWarm)
	if err != nil {
		return coreSpeed{}, err
	}
	return sample(run, rounds, kernelMost-kernelWarm)
}

// sample makes runs of so many rounds until enough were undisturbed, or the time is over.
func sample(
	run func(rounds int) (kernelTimes, error), rounds int, most time.Duration,
) (coreSpeed, error) {
	var clean, shared []float64
	s := coreSpeed{}
	for began := time.Now(); len(clean) < kernelEnough && time.Since(began) < most; s.Runs++ {
		r, err := run(rounds)
		if err != nil {
			return coreSpeed{}, err
		}
		if r.disturbed() {
			s.Disturbed++
			shared = append(shared, r.rate(r.busy))
		} else {
			clean = append(clean, r.rate(r.wall))
		}
	}
	s.MFLOPS, s.Steady = judge(clean, shared)
	return s, nil
}

// judge makes the result of the rates of undisturbed and disturbed runs, FLOP/s.
func judge(clean, shared []float64) (mflops int64, steady bool) {
	const mega = 1e6
	if len(clean) == 0 {
		if len(shared) == 0 {
			return 1, false
		}
		return max(int64(slices.Max(shared)/mega), 1), false
	}
	slices.Sort(clean)
	best, middle := clean[len(clean)-1], clean[len(clean)/2]
	return max(int64(best/mega), 1), len(clean) >= kernelEnough && best-middle <= agreement*best
}

// calibrate warms the processor up for a time and finds how many rounds make one run.
func calibrate(
	run func(rounds int) (kernelTimes, error), warm time.Duration,
) (rounds int, err error) {
	rounds = kernelChunk
	for began := time.Now(); ; {
		r, err := run(rounds)
		if err != nil {
			return 0, err
		}
		took := r.wall
		if r.busyKnown {
			took = min(took, r.busy)
		}
		switch {
		case took < kernelRun/2:
			rounds *= 2
		case time.Since(began) >= warm:
			return max(int(float64(rounds)*kernelRun.Seconds()/took.Seconds()), 1), nil
		}
	}
}

// kernelTimes is one run of the kernel.
type kernelTimes struct {
	rounds    int
	wall      time.Duration
	busy      time.Duration // that its thread had a processor
	busyKnown bool
}

// disturbed reports whether something else had the processor. Where the system
// does not tell, no run is: the fastest one is as good as it gets.
func (r kernelTimes) disturbed() bool {
	return r.busyKnown && r.busy.Seconds() < undisturbed*r.wall.Seconds()
}

func (r kernelTimes) rate(in time.Duration) float64 {
	return float64(r.rounds) * kernelLanes * flopsPerLane / max(in, 1).Seconds()
}

func runKernel(ctx context.Context, rounds int) (kernelTimes, error) {
	if err := ctx.Err(); err != nil {
		return kernelTimes{}, fmt.Errorf("measure computation: %w", err)
	}
	var lanes [kernelLanes]float64
	for i := range lanes {
		lanes[i] = float64(i) // each its own
	}
	busy, known := threadTime()
	began := time.Now()
	lanes = multiplyAdd(lanes, rounds)
	r := kernelTimes{rounds: rounds, wall: time.Since(began)}
	if after, still := threadTime(); known && still {
		r.busy, r.busyKnown = after-busy, true
	}
	if lanes[0] != lanes[0] { // keeps the lanes alive; they converge to 1
		return r, errors.New("measure computation: the kernel lost its numbers")
	}
	return r, nil
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
