package eval

import (
	"context"
	"runtime"
	"sync"
)

// runAll plays several comparisons, whose runs the workers share: no processor waits for the
// last run of one of them.
func runAll(
	ctx context.Context, all []*Compare, workers int, progress func(done int),
) ([]CompareResult, error) {
	type piece struct{ of, number int }
	var pieces []piece
	measures := make([][]map[string]float64, len(all))
	for of, c := range all {
		if err := c.prepare(); err != nil {
			return nil, err
		}
		measures[of] = make([]map[string]float64, c.Runs())
		for number := range measures[of] {
			pieces = append(pieces, piece{of, number})
		}
	}
	err := share(ctx, len(pieces), workers, progress, func(ctx context.Context, i int) (err error) {
		p := pieces[i]
		measures[p.of][p.number], err = all[p.of].play(ctx, p.number)
		return err
	})
	if err != nil {
		return nil, err
	}
	results := make([]CompareResult, len(all))
	for of, c := range all {
		results[of] = c.result(measures[of])
	}
	return results, nil
}

// share has workers do so many pieces of work; 0 workers: one for each processor. The first
// error ends all. Progress is told how many are done, by one worker at a time.
func share(
	ctx context.Context, pieces, workers int, progress func(done int),
	do func(context.Context, int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var running sync.WaitGroup
	var mu sync.Mutex
	done := 0 // guarded by mu
	for range max(1, min(workers, pieces)) {
		running.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
					continue
				}
				mu.Lock()
				if done++; progress != nil {
					progress(done)
				}
				mu.Unlock()
			}
		})
	}
	for i := 0; i < pieces && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	running.Wait()
	return context.Cause(ctx)
}
