package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// errMoreThanBound ends fetches of which more has come than may.
var errMoreThanBound = errors.New("more than the task may leave")

// bound ends fetches when together they bring more than so many bytes. A site says how large its
// outputs are, and may send more. One goroutine uses it.
type bound struct {
	stop   context.CancelFunc // ends the fetches
	most   int64              // 0 = any number
	before int64              // bytes of the fetches that have ended
	now    int64              // bytes of the one that goes on
}

// newBound gives a bound, and the context of the fetches that it ends.
func newBound(ctx context.Context, mostBytes int64) (context.Context, *bound) {
	ctx, stop := context.WithCancel(ctx)
	return ctx, &bound{stop: stop, most: mostBytes}
}

// progress watches one more fetch.
func (b *bound) progress() data.Progress {
	b.before, b.now = b.before+b.now, 0
	return func(done, _ int64) {
		if b.now = done; b.over() {
			b.stop()
		}
	}
}

func (b *bound) over() bool { return b.most > 0 && b.before+b.now > b.most }

// verdict is why a fetch that ended so has failed: what it brought last may have been too much.
func (b *bound) verdict(err error) error {
	if b.over() {
		most := grid.FormatBytes(b.most)
		return fmt.Errorf("%w: its site sends more than %s", errMoreThanBound, most)
	}
	return err
}
