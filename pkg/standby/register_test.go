package standby

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Each site of these tests has a key that follows from its name.
func keyOf(site grid.SiteID) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, site)
	return ed25519.NewKeyFromSeed(seed)
}

func signedBy(site grid.SiteID, text, signature []byte) bool {
	key, _ := keyOf(site).Public().(ed25519.PublicKey)
	return ed25519.Verify(key, text, signature)
}

// certified is an owner's certificate of some members, signed by a site that may be another one.
func certified(owner, by grid.SiteID, epoch uint64, members ...grid.SiteID) []byte {
	c := protocol.Certificate{Owner: owner, Epoch: epoch}
	for i, site := range members {
		c.Members = append(c.Members, protocol.CertMember{ID: uint64(i + 1), Site: site})
	}
	c, err := c.Sign(
		func(text []byte) ([]byte, error) { return ed25519.Sign(keyOf(by), text), nil },
	)
	if err != nil {
		panic(err) // a test's own mistake
	}
	return c.Encode()
}

const fresh = time.Second

func testRegister(owners int, off registerChecks) *Register {
	return NewRegister(RegisterConfig{Owners: owners, Fresh: fresh, Verify: signedBy, off: off})
}

// said is one thing that happens to a register in a random play.
type said struct {
	plain, learn bool
	from, owner  grid.SiteID
	term         uint64
	certificate  int // in certificates()
	later        time.Duration
	saved        bool // the facts become durable
}

// certificates are what may be shown: of two owners, of several epochs, two of one epoch, and
// some that nobody should believe.
func certificates() [][]byte {
	return [][]byte{
		certified("o", "o", 1, "o"),
		certified("o", "o", 2, "o", "a", "b"),
		certified("o", "o", 3, "o", "a", "b", "c"),
		certified("o", "o", 4, "o", "b", "c"),
		certified("o", "o", 4, "o", "a", "b"), // the owner has signed another one
		certified("o", "x", 9, "x", "a"),      // forged
		certified("p", "p", 2, "p", "o", "a"),
		certified("p", "p", 9, "x", "a"), // good, but of another owner
		nil,
		[]byte("noise"),
	}
}

const manyCertificates = 10

func drawSaid(t *rapid.T) said {
	sites := rapid.SampledFrom([]grid.SiteID{"o", "a", "b", "c", "x", "p"})
	return said{
		plain: rapid.IntRange(0, 5).Draw(t, "plain") == 0,
		learn: rapid.IntRange(0, 5).Draw(t, "learn") == 0,
		from:  sites.Draw(t, "from"), owner: rapid.SampledFrom([]grid.SiteID{"o", "p"}).Draw(
			t, "owner",
		),
		term:        rapid.Uint64Range(1, 4).Draw(t, "term"),
		certificate: rapid.IntRange(0, manyCertificates-1).Draw(t, "certificate"),
		later:       time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * time.Millisecond,
		saved:       rapid.Bool().Draw(t, "saved"),
	}
}

// twin remembers all that it was ever shown and heeded, and looks through it each time.
type twin struct {
	all    [][]byte               // certificates()
	shown  []protocol.Certificate // that are genuine, in the order in which they came
	heeded []heeded
	saved  map[grid.SiteID]string
	terms  map[grid.SiteID]uint64 // that were saved
}

type heeded struct {
	owner, from grid.SiteID
	term        uint64
	at          time.Time
}

// newest is the first that was shown of the highest epoch.
func (w *twin) newest(owner grid.SiteID) (best protocol.Certificate, known bool) {
	for _, c := range w.shown {
		if c.Owner == owner && c.Epoch > best.Epoch {
			best, known = c, true
		}
	}
	return best, known
}

// last is the last message of the highest term that was heeded.
func (w *twin) last(owner grid.SiteID) (best heeded) {
	for _, h := range w.heeded {
		if h.owner == owner && h.term >= best.term {
			best = h
		}
	}
	return best
}

func (w *twin) show(owner grid.SiteID, raw []byte) Refusal {
	c, err := protocol.DecodeCertificate(raw)
	if err != nil || c.Owner != owner {
		return RefusedForged
	}
	best, _ := w.newest(owner)
	switch {
	case c.Epoch < best.Epoch || cmp.Equal(c, best):
		return Heeded
	case c.Epoch == best.Epoch:
		return refusedEpoch
	case c.Verify(signedBy) != nil:
		return RefusedForged
	}
	w.shown = append(w.shown, c)
	return Heeded
}

func (w *twin) admit(now time.Time, in said) Refusal {
	if why := w.show(in.owner, w.all[in.certificate]); why != Heeded {
		return why
	}
	best, _ := w.newest(in.owner)
	last := w.last(in.owner)
	switch {
	case !slices.ContainsFunc(best.Members,
		func(m protocol.CertMember) bool { return m.Site == in.from }):
		return refusedMember
	case in.term < last.term:
		return refusedTerm
	case in.term == last.term && last.from != in.from:
		return refusedTwo
	}
	w.heeded = append(w.heeded, heeded{in.owner, in.from, in.term, now})
	return Heeded
}

func (w *twin) plain(owner grid.SiteID) Refusal {
	best, _ := w.newest(owner)
	for _, m := range best.Members {
		if m.Site != owner {
			return refusedPlain
		}
	}
	return Heeded
}

func (w *twin) route(now time.Time, owner grid.SiteID) []grid.SiteID {
	best, known := w.newest(owner)
	if !known {
		return []grid.SiteID{owner}
	}
	last := w.last(owner)
	if last.term > 0 && now.Sub(last.at) < fresh && best.Names(last.from) {
		return []grid.SiteID{last.from}
	}
	var first, rest []grid.SiteID
	for _, m := range best.Members {
		if m.Site == last.from {
			first = []grid.SiteID{m.Site}
		} else {
			rest = append(rest, m.Site)
		}
	}
	return append(first, rest...)
}

// state names all that must be durable of an owner; empty: nothing.
func (w *twin) state(owner grid.SiteID) string {
	best, known := w.newest(owner)
	if !known {
		return ""
	}
	last := w.last(owner)
	return fmt.Sprint(best.Epoch, last.term, last.from)
}

// told tells a register and the twin the same, and returns the first difference.
func told(r *Register, shown [][]byte, all []said) error {
	w := &twin{all: shown, saved: map[grid.SiteID]string{}, terms: map[grid.SiteID]uint64{}}
	now := time.Unix(1_900_000_000, 0)
	for i, in := range all {
		now = now.Add(in.later)
		owner := in.owner
		var v Verdict
		var want Refusal
		switch raw := shown[in.certificate]; {
		case in.plain:
			v, want = r.Plain(owner), w.plain(owner)
		case in.learn:
			if c, err := protocol.DecodeCertificate(raw); err == nil {
				owner = c.Owner
			}
			v, want = r.Learn(raw), w.show(owner, raw)
		default:
			v = r.Admit(
				now, in.from, protocol.Behalf{Owner: owner, Term: in.term, Certificate: raw},
			)
			want = w.admit(now, in)
		}
		state := w.state(owner)
		said := !in.plain && !in.learn
		looked := !in.plain || want != Heeded // a plain message that is heeded says nothing new
		switch {
		case v.Why != want:
			return fmt.Errorf("%d: %+v: %q, want %q", i, in, v.Why, want)
		case v.Began != (said && want == Heeded && w.last(owner).term > w.terms[owner]):
			return fmt.Errorf("%d: %+v: began %t", i, in, v.Began)
		case looked && want != RefusedForged && (len(v.Facts) > 0) != (state != w.saved[owner]):
			return fmt.Errorf(
				"%d: %+v: facts %v, saved %q of %q", i, in, v.Facts, w.saved[owner], state,
			)
		case (v.News != nil) != (want != Heeded && want != RefusedForged):
			return fmt.Errorf("%d: %+v: news %v", i, in, v.News)
		}
		if in.saved && len(v.Facts) > 0 {
			r.Saved(owner)
			w.saved[owner], w.terms[owner] = state, w.last(owner).term
		}
		for _, o := range []grid.SiteID{"o", "p"} {
			if diff := cmp.Diff(w.route(now, o), r.Route(now, o)); diff != "" {
				return fmt.Errorf("%d: %+v: route of %s (-want +got):\n%s", i, in, o, diff)
			}
		}
	}
	return nil
}

func plays() *rapid.Generator[[]said] {
	return rapid.Custom(func(t *rapid.T) []said {
		return rapid.SliceOfN(rapid.Custom(drawSaid), 1, 40).Draw(t, "said")
	})
}

func TestARegisterAgreesWithATwinThatForgetsNothing(t *testing.T) {
	shown := certificates()
	if len(shown) != manyCertificates {
		t.Fatalf("%d certificates", len(shown))
	}
	rapid.Check(t, func(t *rapid.T) {
		r := testRegister(8, registerChecks{})
		if err := told(r, shown, plays().Draw(t, "told")); err != nil {
			t.Fatal(err)
		}
	})
}

// Each check that is taken out is found.
func TestEachCheckOfARegisterCounts(t *testing.T) {
	const seeds = 1000
	shown := certificates()
	for name, off := range map[string]registerChecks{
		"member": {member: true}, "term": {term: true}, "one in a term": {single: true},
		"signature": {signature: true}, "epoch": {epoch: true}, "owner": {owner: true},
		"plain": {plain: true}, "facts until they are saved": {saved: true},
	} {
		found := false
		for seed := 0; seed < seeds && !found; seed++ {
			found = told(testRegister(8, off), shown, plays().Example(seed)) != nil
		}
		if !found {
			t.Errorf("without the check of %s all %d plays go as they should", name, seeds)
		}
	}
}

// What is said to whom is not heeded: who acts, and in which term.
func TestNewsOfWhoActs(t *testing.T) {
	r, now := testRegister(8, registerChecks{}), time.Unix(1, 0)
	old, raw := certified("o", "o", 1, "o", "a"), certified("o", "o", 2, "o", "a", "b")
	acts := protocol.Behalf{Owner: "o", Term: 5, Certificate: raw}
	if v := r.Admit(now, "a", acts); v.Why != Heeded {
		t.Fatal(v.Why)
	}
	want := &protocol.StandbyNews{Certificate: raw, Term: 5, Acting: "a"}
	for name, v := range map[string]Verdict{
		"a lower term":  r.Admit(now, "o", protocol.Behalf{Owner: "o", Term: 4, Certificate: raw}),
		"the same term": r.Admit(now, "b", acts),
		"a stranger":    r.Admit(now, "c", protocol.Behalf{Owner: "o", Term: 9, Certificate: old}),
		"no term":       r.Plain("o"),
	} {
		if diff := cmp.Diff(want, v.News); diff != "" || v.Why == Heeded {
			t.Errorf("%s: %q, news (-want +got):\n%s", name, v.Why, diff)
		}
	}
	if got := r.Acting("o"); got != "a" {
		t.Errorf("who acts: %q", got)
	}
	if v := r.Learn(certified("o", "o", 3, "o", "b")); v.Why != Heeded || r.Acting("o") != "" {
		t.Errorf("who acts, out of the group: %q, %q", r.Acting("o"), v.Why)
	}
}

// A register takes up what was saved, and finds out the rest anew.
func TestARegisterIsRestored(t *testing.T) {
	now := time.Unix(1, 0)
	first := testRegister(8, registerChecks{})
	facts := step.NewFacts()
	for _, owner := range []grid.SiteID{"o", "p"} {
		v := first.Admit(now, "a", protocol.Behalf{
			Owner: owner, Term: 7, Certificate: certified(owner, owner, 2, owner, "a", "b"),
		})
		for _, f := range v.Facts {
			facts.Apply(f)
		}
	}
	again := testRegister(8, registerChecks{})
	if err := again.Restore(facts.All()); err != nil {
		t.Fatal(err)
	}
	low := protocol.Behalf{Owner: "p", Term: 6, Certificate: certified("p", "p", 2, "p", "a", "b")}
	if v := again.Admit(now, "b", low); v.Why != refusedTerm || len(v.Facts) != 0 {
		t.Errorf("a lower term: %q, facts %v", v.Why, v.Facts)
	}
	low.Term = 7
	if v := again.Admit(now, "b", low); v.Why != refusedTwo {
		t.Errorf("another in the same term: %q", v.Why)
	}
	if got, want := again.Route(now, "o"), []grid.SiteID{"a", "o", "b"}; !slices.Equal(got, want) {
		t.Errorf("before anybody is heard: %v, want %v", got, want)
	}
	if v := again.Admit(now, "a", low); v.Why != Heeded || v.Began || len(v.Facts) != 0 {
		t.Errorf("the same again: %+v", v)
	}
	if got := again.Route(now, "p"); !slices.Equal(got, []grid.SiteID{"a"}) {
		t.Errorf("route: %v", got)
	}
}

// Facts that a register has not written are refused, with the row's name.
func TestFactsThatAreNone(t *testing.T) {
	r := testRegister(8, registerChecks{})
	v := r.Admit(time.Unix(1, 0), "a", protocol.Behalf{
		Owner: "o", Term: 7, Certificate: certified("o", "o", 2, "o", "a"),
	})
	good := v.Facts[0]
	value := func(text string) step.Fact { f := good; f.Value = []byte(text); return f }
	forged := (&office{raw: certified("o", "x", 2, "o", "x")}).fact()
	forged.Key = "o"
	for name, f := range map[string]step.Fact{
		"kind": {Kind: "office/2", Key: "o", Value: good.Value}, "owner": {
			Kind: good.Kind, Key: "p", Value: good.Value,
		},
		"text": value("{"), "nothing": value("{}"), "forged": forged,
		"nobody acts": value(fmt.Sprintf(`{"term":7,%s`, string(good.Value[1:len(good.Value)-len(
			`,"term":7,"acting":"a"}`)])+"}")),
	} {
		if err := testRegister(8, registerChecks{}).Restore([]step.Fact{f}); !errors.Is(
			err, errOffice,
		) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := testRegister(8, registerChecks{}).Restore([]step.Fact{good}); err != nil {
		t.Error(err)
	}
}

// So many owners are remembered. The one that was not used for longest makes room, its row with
// it, unless it has attempts here.
func TestOwnersAreFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		busy := map[grid.SiteID]bool{}
		const most = 3
		r := NewRegister(RegisterConfig{
			Owners: most, Fresh: fresh, Verify: signedBy,
			Busy: func() map[grid.SiteID]bool { return busy },
		})
		var order []grid.SiteID // by use, the oldest first
		rows := step.NewFacts()
		for range rapid.IntRange(1, 30).Draw(t, "uses") {
			owner := rapid.SampledFrom([]grid.SiteID{"k", "l", "m", "n", "o", "p"}).Draw(t, "owner")
			busy[owner] = rapid.Bool().Draw(t, "busy")
			v := r.Admit(time.Unix(1, 0), owner, protocol.Behalf{
				Owner: owner, Term: 1, Certificate: certified(owner, owner, 1, owner),
			})
			for _, f := range v.Facts {
				rows.Apply(f)
			}
			r.Saved(owner)
			known := slices.Contains(order, owner)
			idle := slices.IndexFunc(order, func(o grid.SiteID) bool { return !busy[o] })
			switch {
			case known:
				order = slices.DeleteFunc(order, func(o grid.SiteID) bool { return o == owner })
			case len(order) == most && idle < 0:
				if v.Why != refusedCrowded {
					t.Fatalf("one too many: %q", v.Why)
				}
				continue
			case len(order) == most:
				order = slices.Delete(order, idle, idle+1)
			}
			order = append(order, owner)
			var kept []grid.SiteID
			for _, f := range rows.All() {
				kept = append(kept, grid.SiteID(f.Key))
			}
			if want := slices.Sorted(slices.Values(order)); !slices.Equal(kept, want) ||
				v.Why != Heeded {
				t.Fatalf("rows of %v, want %v (%q)", kept, want, v.Why)
			}
		}
	})
}

// Each refusal has a label of its own, and words.
func TestRefusalsOfARegisterHaveLabels(t *testing.T) {
	seen := map[string]bool{}
	for _, why := range []Refusal{
		Heeded, RefusedForged, refusedEpoch, refusedMember, refusedTerm, refusedTwo, refusedPlain,
		refusedCrowded, RefusedStranger,
	} {
		label := why.Label()
		if seen[label] || why != Heeded && (why == "" || label == Heeded.Label()) {
			t.Errorf("%q is counted as %q", why, label)
		}
		seen[label] = true
	}
}

func FuzzRegister(f *testing.F) {
	f.Add([]byte("noise"), "a", uint64(1))
	for _, raw := range certificates() {
		f.Add(raw, "a", uint64(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, from string, term uint64) {
		r := testRegister(1, registerChecks{})
		v := r.Admit(time.Unix(1, 0), grid.SiteID(from), protocol.Behalf{
			Owner: "o", Term: term, Certificate: raw,
		})
		c, err := protocol.DecodeCertificate(raw)
		if v.Why == Heeded && (err != nil || c.Owner != "o" || !c.Names(grid.SiteID(from)) ||
			c.Verify(signedBy) != nil) {
			t.Errorf("%x of %q in term %d is heeded", raw, from, term)
		}
	})
}
