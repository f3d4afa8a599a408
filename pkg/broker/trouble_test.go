package broker

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// keeper plays a site that holds what it is asked to hold.
type keeper struct {
	id     grid.SiteID
	number uint64
	quotes map[grid.JobID]uint64 // the last soft offer
	holds  map[grid.JobID]hold
	tokens map[grid.TaskID]grid.Token   // the highest awarded
	runs   map[grid.AttemptID]bool      // accepted; true: under a lease
	told   map[grid.AttemptID]time.Time // when its end was last told
}

type hold struct {
	of, number uint64 // the soft offer that was made firm, and the firm one
	seq        uint32
	until      time.Time
}

func newKeeper(id grid.SiteID) *keeper {
	return &keeper{
		id: id, quotes: make(map[grid.JobID]uint64), holds: make(map[grid.JobID]hold),
		tokens: make(map[grid.TaskID]grid.Token), runs: make(map[grid.AttemptID]bool),
		told: make(map[grid.AttemptID]time.Time),
	}
}

const heldFor = 30 * time.Second

// hear returns the site's answers to a message. Moody sites refuse now and then.
func (k *keeper) hear(now time.Time, msg protocol.Message, moody bool) []protocol.Message {
	switch msg := msg.(type) {
	case protocol.Announce:
		return k.quote(msg.Job, msg.Seq, moody)
	case protocol.Reannounce:
		return k.quote(msg.Job, msg.Seq, moody)
	case protocol.HoldOffer:
		return k.hold(now, msg, moody)
	case protocol.Award:
		return k.take(now, msg, moody)
	case protocol.Clear:
		delete(k.holds, msg.Job)
		delete(k.quotes, msg.Job)
	case protocol.Lease:
		for _, a := range msg.Attempts {
			if _, mine := k.runs[a]; mine {
				k.runs[a] = true
			}
		}
	case protocol.Fence:
		maps.DeleteFunc(k.runs, func(a grid.AttemptID, _ bool) bool {
			return slices.ContainsFunc(msg.Below, func(b grid.AttemptID) bool {
				return a.Task == b.Task && a.Token < b.Token
			})
		})
	case protocol.ExitAck:
		for _, a := range msg.Attempts {
			delete(k.runs, a)
		}
	}
	return nil
}

func (k *keeper) quote(id grid.JobID, seq uint32, moody bool) []protocol.Message {
	delete(k.holds, id)
	if moody {
		return []protocol.Message{
			protocol.Refuse{Job: id, Seq: seq, Refusal: grid.Refusal{Reason: grid.ReasonWindow}},
		}
	}
	k.number++
	k.quotes[id] = k.number
	return []protocol.Message{
		protocol.Bid{Job: id, Seq: seq, Offer: offer(k.number, float64(len(k.id)), 1)},
	}
}

func (k *keeper) hold(now time.Time, msg protocol.HoldOffer, moody bool) []protocol.Message {
	if h, has := k.holds[msg.Job]; has && h.of == msg.OfferID { // asked twice
		return []protocol.Message{k.firm(msg.Job, h)}
	}
	if moody || k.quotes[msg.Job] != msg.OfferID {
		return []protocol.Message{
			protocol.Refuse{
				Job: msg.Job, Seq: msg.Seq, Refusal: grid.Refusal{Reason: grid.ReasonUnknownOffer},
			},
		}
	}
	k.number++
	h := hold{of: msg.OfferID, number: k.number, seq: msg.Seq, until: now.Add(heldFor)}
	k.holds[msg.Job] = h
	delete(k.quotes, msg.Job)
	return []protocol.Message{k.firm(msg.Job, h)}
}

func (k *keeper) firm(id grid.JobID, h hold) protocol.Message {
	o := offer(h.number, float64(len(k.id)), 1)
	o.Firm, o.Validity = true, heldFor
	return protocol.Bid{Job: id, Seq: h.seq, Offer: o}
}

func (k *keeper) take(now time.Time, msg protocol.Award, moody bool) []protocol.Message {
	var said []protocol.Message
	for _, t := range msg.Tasks {
		a := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
		h, held := k.holds[msg.Job]
		_, again := k.runs[a]
		switch {
		case again:
			said = append(said, protocol.Accepted{Attempts: []grid.AttemptID{a}})
		case t.Token <= k.tokens[a.Task] || moody || !held || h.number != msg.OfferID ||
			!h.until.After(now):
			said = append(said, protocol.Declined{
				Attempts: []grid.AttemptID{a}, Refusal: grid.Refusal{Reason: grid.ReasonUnknownOffer},
			})
		default:
			delete(k.holds, msg.Job)
			k.runs[a] = false
			said = append(said, protocol.Accepted{Attempts: []grid.AttemptID{a}})
		}
		k.tokens[a.Task] = max(k.tokens[a.Task], t.Token)
	}
	return said
}

// troubled is a broker and its sites, and a network that may drop, double and reorder
// what they say.
type troubled struct {
	*rig
	keepers map[grid.SiteID]*keeper
	toSite  []step.Send
	toUs    []step.MessageReceived
	awards  int
	holds   int
}

func newTroubled(t *rapid.T, names ...grid.SiteID) *troubled {
	w := &troubled{rig: newRig(t, nil), keepers: make(map[grid.SiteID]*keeper)}
	for _, s := range append(names, self) {
		w.keepers[s] = newKeeper(s)
		if s != self {
			w.do(step.PeerSeen{Site: s})
		}
	}
	return w
}

// give hands an input to the broker and keeps what it says.
func (w *troubled) give(in step.Input) {
	for _, e := range w.do(in) {
		switch e := e.(type) {
		case step.Send:
			w.checkSend(e)
			w.toSite = append(w.toSite, e)
		case step.Broadcast:
			for _, s := range sortedSites(w.keepers) {
				w.toSite = append(w.toSite, step.Send{To: s, Message: e.Message})
			}
		}
	}
}

// checkSend: a promised job is awarded to firm offers alone, and never when it is too late.
func (w *troubled) checkSend(e step.Send) {
	switch msg := e.Message.(type) {
	case protocol.HoldOffer:
		w.holds++
	case protocol.Award:
		w.awards++
		h := w.keepers[e.To].number
		window := msg.Spec.Window
		last := window.Deadline
		if !window.At.IsZero() {
			last = window.At
		}
		switch {
		case msg.OfferID > h || msg.HasNext:
			w.t.Fatalf("awarded to %s by number %d of %d, with a runner-up: %v",
				e.To, msg.OfferID, h, msg.HasNext)
		case !w.now.Before(last):
			w.t.Fatalf("awarded at %s what is over at %s", w.now, last)
		}
	}
}

// deliver hands over one message of those on their way.
func (w *troubled) deliver(at int, moody bool) {
	if at < len(w.toSite) {
		e := w.toSite[at]
		w.toSite = slices.Delete(w.toSite, at, at+1)
		for _, msg := range w.keepers[e.To].hear(w.now, e.Message, moody) {
			w.toUs = append(w.toUs, step.MessageReceived{From: e.To, Message: msg})
		}
		return
	}
	at -= len(w.toSite)
	in := w.toUs[at]
	w.toUs = slices.Delete(w.toUs, at, at+1)
	if exited, is := in.Message.(protocol.Exited); is {
		w.released(exited.Attempt, in.From)
	}
	w.give(in)
}

func (w *troubled) onTheWay() int { return len(w.toSite) + len(w.toUs) }

// trouble lets anything happen: to what is on its way, or to those who talk.
func (w *troubled) trouble(t *rapid.T) {
	n := func(limit int) int { return rapid.IntRange(0, limit-1).Draw(t, "n") }
	if w.onTheWay() > 0 && n(6) > 0 {
		w.mistreat(n(w.onTheWay()), n)
		return
	}
	switch n(8) {
	case 0:
		w.start() // holds of the run before expire by themselves
		for _, s := range sortedSites(w.keepers) {
			if s != self {
				w.give(step.PeerSeen{Site: s})
			}
		}
	case 1:
		w.endOne()
	default:
		w.fireNext(w.give)
	}
}

// mistreat delivers one message out of turn, perhaps twice or never.
func (w *troubled) mistreat(at int, n func(int) int) {
	toSite := at < len(w.toSite)
	switch fate := n(12); {
	case fate < 2 && toSite:
		w.toSite = append(w.toSite, w.toSite[at])
	case fate < 2:
		w.toUs = append(w.toUs, w.toUs[at-len(w.toSite)])
	case fate == 2 && toSite:
		w.toSite = slices.Delete(w.toSite, at, at+1)
		return
	}
	w.deliver(at, n(8) == 0)
}

// endOne lets an attempt that has a lease come to its end, or tells that again: not twice at the
// same time, as it may be heard of and have to wait.
func (w *troubled) endOne() {
	for _, s := range sortedSites(w.keepers) {
		k := w.keepers[s]
		attempts := slices.SortedFunc(maps.Keys(k.runs), func(a, b grid.AttemptID) int {
			return int(a.Token) - int(b.Token)
		})
		for _, a := range attempts {
			if k.runs[a] && !k.told[a].Equal(w.now) {
				k.told[a] = w.now
				w.toUs = append(w.toUs, step.MessageReceived{
					From: s, Message: protocol.Exited{Attempt: a, Exit: grid.Exit{Cause: grid.CauseExited}},
				})
				return
			}
		}
	}
}

// well lets all go right until nothing happens any more.
func (w *troubled) well() {
	for range 3000 {
		if w.onTheWay() > 0 {
			w.deliver(0, false)
			continue
		}
		if w.endOne(); w.onTheWay() > 0 {
			continue
		}
		if !w.fireNext(w.give) {
			return
		}
	}
	w.t.Fatalf("no end after 3000 steps")
}

func drawPromised(t *rapid.T, now time.Time) grid.Job {
	j := testJob(uint32(rapid.IntRange(1, 3).Draw(t, "count")))
	ahead := now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "ahead")) * time.Second)
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		j.Spec.Window.At = ahead
	case 1:
		j.Spec.Window.Deadline = ahead
	default:
		j.Spec.Kind, j.Spec.Module, j.Spec.Window.At = grid.KindReservation, grid.Input{}, ahead
	}
	return j
}

// Whatever is lost, doubled, late or overtaken, and however often this site starts
// again between a hold and its award: what is awarded was held, nobody is awarded too
// late, no task has two leases, and every job comes to an end.
func TestPromisesInATroubledNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTroubled(t, "a", "bb", "ccc", "dddd")
		w.give(step.Submit{Command: 1, Job: drawPromised(t, w.now)})
		for range rapid.IntRange(0, 120).Draw(t, "steps") {
			w.trouble(t)
		}
		w.well()
		for _, id := range w.m.jobs.ids() {
			if j := w.m.jobs.all[id]; j.open > 0 {
				t.Fatalf("job %s has not ended: %+v", id, j.tasks)
			}
		}
	})
}

// In a network where nothing goes wrong each task is awarded once, nearest first, and
// nobody is left holding a place.
func TestPromisesWithoutTrouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTroubled(t, "a", "bb", "ccc", "dddd")
		job := drawPromised(t, w.now)
		w.give(step.Submit{Command: 1, Job: job})
		for w.onTheWay() > 0 {
			w.deliver(0, false)
		}
		if w.awards != int(job.Count) || w.holds != 3 {
			t.Errorf("%d awards of %d tasks, %d sites asked to hold, want 3", w.awards, job.Count, w.holds)
		}
		for _, s := range sortedSites(w.keepers) {
			if k := w.keepers[s]; len(k.holds) > 0 {
				t.Errorf("%s is left holding %v", s, k.holds)
			}
		}
	})
}
