package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// endurance says for how long a loop holds back what its machine wants, while the disk does
// not take the facts that come first. Then the agent ends: others carry on with the work.
type endurance struct {
	full   time.Duration // with a full disk, which its owner can mend
	broken time.Duration // with one that fails otherwise
}

// retryFacts is the pause between two attempts to write facts.
const retryFacts = 200 * time.Millisecond

// remember makes facts durable, by write. Until they are the machine hears nothing new; of what it
// wants nothing is done: what waits is bounded as the queue is. Questions are answered, so
// that people can ask what is wrong.
func (l *loop) remember(ctx context.Context, write func() error) error {
	var since time.Time
	for {
		err := write()
		if err == nil {
			if !since.IsZero() {
				l.log.Info("facts can be written again", "machine", l.name)
			}
			return nil
		}
		if since.IsZero() {
			since = time.Now()
			l.log.Error("facts cannot be written; all waits for that", "machine", l.name, "error", err)
		}
		limit := l.hold.broken
		if durable.NoRoom(err) {
			l.starved()
			limit = l.hold.full
		}
		if time.Since(since) >= limit || !l.pauseForFacts(ctx) {
			return err
		}
	}
}

// pauseForFacts waits and answers questions; false: the loop is to end.
func (l *loop) pauseForFacts(ctx context.Context) bool {
	again := time.NewTimer(retryFacts)
	defer again.Stop()
	for {
		for _, question := range l.takeQuestions() {
			question()
		}
		select {
		case <-l.wake:
		case <-again.C:
			l.rouse() // what came meanwhile is still in the queue
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// takeQuestions takes what is asked, and leaves the inputs where they are.
func (l *loop) takeQuestions() (questions []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.DeleteFunc(l.queue, func(t task) bool {
		if t.ask != nil {
			questions = append(questions, t.ask)
		}
		return t.ask != nil
	})
	return questions
}
