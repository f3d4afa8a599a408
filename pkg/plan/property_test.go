package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// model drives a planner at random and knows what was promised.
type model struct {
	p        *Planner
	now      int
	attempts int
	shrunk   bool
}

func (m *model) ask(t *rapid.T) Ask {
	g := rapid.Int64Range(0, 8).Draw(t, "mflops")
	runtime := rapid.IntRange(1, 20).Draw(t, "runtime")
	a := Ask{
		Class:     ClassVarTime,
		Submitter: grid.SiteID(rapid.StringMatching(`[a-c]`).Draw(t, "submitter")),
		Job:       grid.JobID(rapid.StringMatching(`[j-m]`).Draw(t, "job")),
		Need: grid.Resources{
			MilliCPUs: rapid.Int64Range(0, 3).Draw(t, "cpus"), MFLOPS: g,
			NetBps: rapid.Int64Range(0, 3).Draw(t, "bandwidth"),
		},
		StageIn: secs(rapid.IntRange(0, 5).Draw(t, "stage-in")),
		NowOnly: rapid.Bool().Draw(t, "now only"),
		Count:   uint32(rapid.IntRange(0, 4).Draw(t, "count")),
		Rate: func(free grid.Resources) (int64, time.Duration) {
			if g == 0 {
				return 0, secs(runtime)
			}
			f := min(free.MFLOPS, g)
			return f, secs(runtime) * time.Duration(g) / time.Duration(f)
		},
	}
	if rapid.Bool().Draw(t, "deadline") {
		a.Window.Deadline = at(m.now + rapid.IntRange(1, 60).Draw(t, "within"))
	}
	if rapid.Bool().Draw(t, "not before") {
		a.Window.NotBefore = at(m.now + rapid.IntRange(-5, 20).Draw(t, "from"))
	}
	return a
}

// promise quotes, and then opens an offer or commits.
func (m *model) promise(t *rapid.T) {
	a := m.ask(t)
	q, reason := m.p.Quote(at(m.now), a)
	if reason != grid.ReasonNone {
		return
	}
	m.checkQuote(t, a, q)
	if rapid.Bool().Draw(t, "open") {
		firm := rapid.Bool().Draw(t, "firm")
		if _, err := m.p.Open(at(m.now), a, q, firm,
			secs(rapid.IntRange(1, 30).Draw(t, "validity"))); err != nil && firm {
			return // the quota; a quote made now always holds
		}
		return
	}
	m.attempts++
	c := Commitment{
		Class: ClassVarTime, Attempt: attempt(m.attempts), Give: q.Give, Start: q.Start, End: q.End,
		NotBefore: a.Window.NotBefore,
	}
	if err := m.p.Commit(at(m.now), c, 0); err != nil {
		t.Fatalf("what was quoted cannot be committed: %v", err)
	}
}

func (m *model) checkQuote(t *rapid.T, a Ask, q Quote) {
	staging, ahead := a.StageIn, time.Duration(0)
	if !a.NowOnly {
		staging, ahead = 0, a.StageIn
	}
	ok := !q.Start.Before(at(m.now).Add(ahead)) && q.Start.Add(staging+q.Run).Equal(q.End) &&
		q.Tasks >= 1 && q.Tasks <= max(a.Count, 1)
	if d := a.Window.Deadline; !d.IsZero() && q.End.After(d) || q.Start.Before(a.Window.NotBefore) ||
		a.NowOnly && !q.Start.Equal(at(m.now)) {
		ok = false
	}
	if !ok || !larger(q.Free, grid.Resources{}).Fits(times(q.Give, q.Tasks)) || !a.Need.Fits(q.Give) {
		t.Fatalf("quote %+v does not answer %+v", q, a)
	}
}

func (m *model) award(t *rapid.T) {
	offers := m.p.Offers()
	if len(offers) == 0 {
		return
	}
	o := rapid.SampledFrom(offers).Draw(t, "offer")
	m.attempts++
	c := Commitment{
		Class: ClassVarTime, Attempt: attempt(m.attempts), Give: o.Quote.Give, Start: o.Quote.Start,
		End: o.Quote.End,
	}
	err := m.p.Commit(at(m.now), c, o.Number)
	if kept, open := m.p.Offer(o.Number); open && kept.Holds < o.Holds && err != nil {
		t.Fatalf("a failed award took a share of the hold: %v", err)
	}
	if o.Holds > 0 && err != nil && o.Quote.End.After(at(m.now)) && o.Expires.After(at(m.now)) {
		if _, open := m.p.Offer(o.Number); open {
			t.Fatalf("a firm offer was not kept: %v", err)
		}
	}
}

func (m *model) release(t *rapid.T) {
	if all := m.p.Commitments(); len(all) > 0 {
		m.p.Release(rapid.SampledFrom(all).Draw(t, "commitment").Attempt)
	}
}

func (m *model) pass(t *rapid.T) {
	before := m.p.Commitments()
	m.now += rapid.IntRange(0, 15).Draw(t, "seconds")
	changes := m.p.Advance(at(m.now))
	for _, c := range append(changes.Started, changes.Moved...) {
		if c.Start.Before(c.NotBefore) {
			t.Fatalf("%+v starts too early", c)
		}
	}
	if next, some := m.p.Next(); some && !next.After(at(m.now)) {
		t.Fatalf("Advance has left something to do at %v", next)
	}
	for _, c := range before {
		if kept, ok := m.p.Commitment(c.Attempt); !ok ||
			c.Running && (!kept.Running || !kept.End.After(at(m.now))) {
			t.Fatalf("%+v became %+v, %v", c, kept, ok)
		}
	}
}

// neverTooMuch adds up what is taken at every instant at which it can change.
func (m *model) neverTooMuch(t *rapid.T) {
	type taken struct {
		need       grid.Resources
		start, end time.Time
	}
	var all []taken
	for _, c := range m.p.Commitments() {
		for _, s := range c.spans() { // a suspended one takes nothing until it goes on
			all = append(all, taken(s))
		}
	}
	for _, o := range m.p.Offers() {
		all = append(all, taken{times(o.Quote.Give, o.Holds), o.Quote.Start, o.Quote.End})
	}
	for _, instant := range all {
		when := later(instant.start, at(m.now))
		var sum grid.Resources
		for _, x := range all {
			if !when.Before(x.start) && when.Before(x.end) {
				sum = sum.Add(x.need)
			}
		}
		if !m.p.total().Fits(sum) && !m.shrunk {
			t.Fatalf("at %v %+v is taken of %+v", when.Sub(start), sum, m.p.total())
		}
	}
}

func TestPlannerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := grid.Resources{MilliCPUs: 4, MFLOPS: 10, NetBps: 5}
		config := Config{Total: total, HoldAll: rapid.Bool().Draw(t, "hold all"), MaxOffers: 16}
		m := &model{p: New(config)}
		mayShrink := rapid.Bool().Draw(t, "ceilings change")
		t.Repeat(map[string]func(*rapid.T){
			"promise": m.promise,
			"award":   m.award,
			"release": m.release,
			"pass":    m.pass,
			"snapshot": func(t *rapid.T) {
				before := m.p.State()
				p, err := fromState(before)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, p.State()); diff != "" || !p.site.line.Equal(m.p.site.line) {
					t.Fatalf("-old +new:\n%s", diff)
				}
				m.p = p
			},
			"withdraw": func(t *rapid.T) {
				m.p.WithdrawJob(grid.JobID(rapid.StringMatching(`[j-m]`).Draw(t, "job")))
			},
			"ceilings": func(t *rapid.T) {
				if mayShrink {
					m.shrunk = true
					m.p.SetCapacity(grid.Resources{
						MilliCPUs: rapid.Int64Range(0, 6).Draw(t, "cpus"),
						MFLOPS:    rapid.Int64Range(0, 12).Draw(t, "mflops"),
						NetBps:    rapid.Int64Range(0, 6).Draw(t, "bandwidth"),
					})
				}
			},
			"crash": func(*rapid.T) {
				if !mayShrink {
					return
				}
				config.Total, config.FirstOffer = m.p.total(), m.p.nextOffer()
				m.p = Restore(config, at(m.now), m.p.Commitments())
			},
			"": func(t *rapid.T) {
				if err := m.p.Check(); err != nil {
					t.Fatal(err)
				}
				m.neverTooMuch(t)
			},
		})
	})
}

// Without commitments or offers in between, restoring gives the same plan.
func TestRestoreIsFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{Total: grid.Resources{MilliCPUs: 4, MFLOPS: 10, NetBps: 5}}
		m := &model{p: New(config)}
		for range rapid.IntRange(0, 10).Draw(t, "promises") {
			a := m.ask(t)
			if q, reason := m.p.Quote(at(0), a); reason == grid.ReasonNone {
				m.attempts++
				c := Commitment{
					Class: ClassVarTime, Attempt: attempt(m.attempts), Give: q.Give, Start: q.Start, End: q.End,
					NotBefore: a.Window.NotBefore,
				}
				if err := m.p.Commit(at(0), c, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.p.Advance(at(0))
		r := Restore(config, at(0), m.p.Commitments())
		m.p.dirty = true
		m.p.Advance(at(0))
		if diff := cmp.Diff(m.p.Commitments(), r.Commitments()); diff != "" ||
			!r.site.line.Equal(m.p.site.line) {
			t.Errorf("-old +restored:\n%s", diff)
		}
	})
}
