package member

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// seat is a domain whose clock stands where a test sets it.
type seat struct {
	*Links
	dir  string
	self grid.SiteID
	name grid.DomainID
	now  time.Time
}

func newSeat(tb testing.TB, dir string, name grid.DomainID, self grid.SiteID) *seat {
	tb.Helper()
	s := &seat{dir: dir, self: self, name: name, now: time.UnixMilli(1_800_000_000_000)}
	s.open(tb)
	if err := s.NeedKey(); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *seat) open(tb testing.TB) {
	tb.Helper()
	reg, err := Open(Config{
		Dir: s.dir, Domain: s.name, Self: s.self, Name: string(s.name),
		Now: func() time.Time { return s.now },
	})
	if err != nil {
		tb.Fatal(err)
	}
	if s.Links, err = OpenLinks(reg); err != nil {
		tb.Fatal(err)
	}
}

// side is the domain with its one gateway.
func (s *seat) side() LinkSide {
	addr := "/ip4/10.0.0.1/tcp/1/p2p/" + string(s.self)
	return s.Side([]Gateway{{Site: s.self, Addrs: []string{addr}}})
}

// token invites a domain of that name, or any.
func (s *seat) token(tb testing.TB, name grid.DomainID, span time.Duration) Token {
	tb.Helper()
	secret, made, err := s.Invite(name, span)
	if err != nil {
		tb.Fatal(err)
	}
	return Token{
		Link: true, Domain: s.name, Key: s.Key(), Inviter: s.self, Secret: secret,
		Expires: made.Expires, Addrs: []string{"/ip4/10.0.0.1/tcp/1"},
	}
}

// join does by the token all that is said between two gateways, without a network.
func (s *seat) join(inviter *seat, token Token) (LinkRecord, error) {
	said, err := s.Ask(token, s.side())
	if err != nil {
		return LinkRecord{}, err
	}
	record, err := inviter.Propose(said, s.self, inviter.side())
	if err != nil {
		return record, err
	}
	if record, err = s.Agree(token, record, s.side()); err != nil {
		return record, err
	}
	if _, err = inviter.Seal(record); err != nil {
		return record, err
	}
	_, err = s.Join(record)
	return record, err
}

func pair(tb testing.TB) (lab, campus *seat) {
	tb.Helper()
	return newSeat(tb, tb.TempDir(), "lab", "site-a"), newSeat(tb, tb.TempDir(), "campus", "site-b")
}

// A link is on disk at both sides, with the same record, and an answer that was lost can be asked
// for again.
func TestLinksAreKept(t *testing.T) {
	lab, campus := pair(t)
	token := lab.token(t, "", time.Hour)
	record, err := campus.join(lab, token)
	if err != nil {
		t.Fatal(err)
	}
	change := PolicyChange{Give: new(35), Kinds: []string{"wasm", "command"}}
	if _, err = campus.Change("lab", change); err != nil {
		t.Fatal(err)
	}
	want := campus.List()
	campus.open(t)
	if got := campus.List(); !reflect.DeepEqual(got, want) || got[0].Policy.Give != 35 {
		t.Errorf("after a restart %+v, want %+v", got, want)
	}
	lab.open(t)
	if got := lab.List(); len(got) != 1 || got[0].Name != "campus" ||
		string(got[0].Record.Text) != string(record.Text) {
		t.Errorf("the inviter has %+v", got)
	}
	// The joiner loses what it has, as if the last word had been lost.
	if err = os.Remove(filepath.Join(campus.dir, linksFile)); err != nil {
		t.Fatal(err)
	}
	campus.open(t)
	again, err := campus.join(lab, token)
	if err != nil || string(again.Text) != string(record.Text) {
		t.Errorf("the same token again: %v", err)
	}
}

// Everything that a token can be but good is refused with its own reason, and changes nothing.
func TestInvitationsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(lab, campus *seat, token *Token)
		want  error
	}{
		"expired": {func(lab, _ *seat, _ *Token) {
			lab.now = lab.now.Add(time.Hour)
		}, LinkExpired},
		"withdrawn": {func(lab, _ *seat, _ *Token) {
			_ = lab.Withdraw(lab.Invites()[0].ID)
		}, LinkWithdrawn},
		"a guess": {func(_, _ *seat, token *Token) { token.Secret[0]++ }, LinkUnknown},
		"another key": {func(_, _ *seat, token *Token) {
			token.Key = testKey(9).Public()
		}, LinkForged},
		"its own":    {func(_, campus *seat, token *Token) { token.Key = campus.Key() }, LinkSame},
		"other name": {func(_, campus *seat, _ *Token) { campus.domain = "elsewhere" }, LinkOther},
	} {
		t.Run(name, func(t *testing.T) {
			lab, campus := pair(t)
			token := lab.token(t, "campus", time.Hour)
			c.spoil(lab, campus, &token)
			if _, err := campus.join(lab, token); !errors.Is(err, c.want) {
				t.Errorf("refused with %v, want %v", err, c.want)
			}
			if len(lab.List())+len(campus.List()) != 0 {
				t.Error("they are linked")
			}
		})
	}
}

// A token that was used is of no use to another domain, nor is a link made twice.
func TestATokenIsGoodOnce(t *testing.T) {
	lab, campus := pair(t)
	third := newSeat(t, t.TempDir(), "third", "site-c")
	token := lab.token(t, "", time.Hour)
	if _, err := campus.join(lab, token); err != nil {
		t.Fatal(err)
	}
	if _, err := third.join(lab, token); !errors.Is(err, LinkUsed) {
		t.Errorf("a second domain: %v", err)
	}
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); !errors.Is(err, LinkAlready) {
		t.Errorf("a second link: %v", err)
	}
	campus.state = linksState{} // it knows nothing of the link
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); !errors.Is(err, LinkAlready) {
		t.Errorf("a second link, refused by the inviter: %v", err)
	}
	// Two proposals for one invitation, and both agree: the second one comes too late.
	one := lab.token(t, "", time.Hour)
	other := newSeat(t, t.TempDir(), "other", "site-d")
	var records []LinkRecord
	for _, s := range []*seat{third, other} {
		said, _ := s.Ask(one, s.side())
		record, err := lab.Propose(said, s.self, lab.side())
		if err == nil {
			record, err = s.Agree(one, record, s.side())
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	_, first := lab.Seal(records[0])
	_, second := lab.Seal(records[1])
	if first != nil || !errors.Is(second, LinkUsed) {
		t.Errorf("sealed with %v and %v", first, second)
	}
}

// What is said is bound to who says it, to whom, and by which key.
func TestWhatIsForgedMakesNoLink(t *testing.T) {
	lab, campus := pair(t)
	token := lab.token(t, "", time.Hour)
	said, err := campus.Ask(token, campus.side())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = lab.Propose(said, "site-x", lab.side()); !errors.Is(err, LinkForged) {
		t.Errorf("an ask by another site: %v", err)
	}
	bent := Statement{Text: append([]byte(nil), said.Text...), Signature: said.Signature}
	bent.Text[len(bent.Text)-2] ^= 1
	if _, err = lab.Propose(bent, campus.self, lab.side()); !errors.Is(err, LinkForged) {
		t.Errorf("an ask that was changed: %v", err)
	}
	record, err := lab.Propose(said, campus.self, lab.side())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = lab.Seal(record); !errors.Is(err, LinkForged) {
		t.Errorf("a record that the joiner has not signed: %v", err)
	}
	if _, err = campus.Join(record); !errors.Is(err, LinkForged) {
		t.Errorf("the same at the joiner: %v", err)
	}
	other := newSeat(t, t.TempDir(), "other", "site-d")
	if _, err := other.Agree(token, record, other.side()); !errors.Is(err, LinkForged) {
		t.Errorf("a record about another domain: %v", err)
	}
	record.Text = append([]byte(nil), record.Text...)
	record.Text[len(record.Text)-2] ^= 1
	if _, err := campus.Agree(token, record, campus.side()); !errors.Is(err, LinkForged) {
		t.Errorf("a record that was changed: %v", err)
	}
}

// A file that is damaged in any way is refused: each link in it is verified anew.
func TestDamagedLinksAreRefused(t *testing.T) {
	lab, campus := pair(t)
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(lab.dir, linksFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*linksText){
		"version":   func(l *linksText) { l.Version++ },
		"name":      func(l *linksText) { l.Links[0].Name = "No" },
		"policy":    func(l *linksText) { l.Links[0].Policy.Give = 101 },
		"record":    func(l *linksText) { l.Links[0].Record.Text = []byte(`{}`) },
		"unsigned":  func(l *linksText) { l.Links[0].Record.Joiner = nil },
		"signature": func(l *linksText) { l.Links[0].Record.Inviter[0] ^= 1 },
		"gateways":  func(l *linksText) { l.Links[0].Gateways = nil },
		"twice":     func(l *linksText) { l.Links = append(l.Links, l.Links[0]) },
		"invite":    func(l *linksText) { l.Invites[0].Hash = "x" },
		"ended":     func(l *linksText) { l.Ended = append(l.Ended, endedRow{}) },
		"too many":  func(l *linksText) { l.Links = make([]linkRow, maxLinks+1) },
	} {
		var text linksText
		if err := json.Unmarshal(good, &text); err != nil {
			t.Fatal(err)
		}
		spoil(&text)
		bad, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenLinks(lab.members); err == nil || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), "restore the file from a backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A link that has ended is remembered for its gateways, until the domains are linked anew.
func TestLinksThatHaveEnded(t *testing.T) {
	lab, campus := pair(t)
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Unlink("elsewhere"); !errors.Is(err, ErrNoLink) ||
		!strings.Contains(err.Error(), "there are campus") {
		t.Errorf("a name that nobody has: %v", err)
	}
	if _, err := lab.Unlink("campus"); err != nil {
		t.Fatal(err)
	}
	if err := campus.EndedByThem(lab.Key()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   *seat
		by   bool
		site grid.SiteID
		key  grid.DomainKey
	}{{lab, false, campus.self, campus.Key()}, {campus, true, lab.self, lab.Key()}} {
		c.at.open(t)
		e := c.at.Ended()
		_, ended, found := c.at.Gateway(c.site)
		if len(e) != 1 || e[0].ByThem != c.by || !ended || !found || !c.at.HasEnded(c.key) {
			t.Errorf("%s: %+v, %t, %t", c.at.name, e, ended, found)
		}
		if err := c.at.Met(c.key, c.at.side().Gateways); !errors.Is(err, LinkUnlinked) {
			t.Errorf("%s meets a domain that is not linked: %v", c.at.name, err)
		}
	}
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(lab.Ended())+len(campus.Ended()) != 0 || lab.HasEnded(campus.Key()) {
		t.Error("what has ended is not forgotten when it begins again")
	}
	lab.now = lab.now.Add(endedKept + time.Hour)
	_, _ = lab.Unlink("campus")
	lab.now = lab.now.Add(endedKept + time.Hour)
	lab.token(t, "", time.Hour) // anything that is written
	if n := len(lab.Ended()); n != 0 {
		t.Errorf("%d ended links after %s", n, endedKept)
	}
}

// Domains of one name have different names here, which are valid and stay.
func TestNamesOfDomainsAreTheirOwn(t *testing.T) {
	lab := newSeat(t, t.TempDir(), "lab", "site-a")
	seen := map[grid.DomainID]bool{"lab": true}
	for i := range 6 {
		name := grid.DomainID("lab")
		if i%2 == 0 {
			name = grid.DomainID(strings.Repeat("x", 63))
		}
		s := newSeat(t, t.TempDir(), name, grid.SiteID("site-"+string(rune('b'+i))))
		if _, err := s.join(lab, lab.token(t, "", time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range lab.List() {
		if seen[l.Name] || l.Name.Validate() != nil {
			t.Errorf("%s: twice, or invalid", l.Name)
		}
		seen[l.Name] = true
	}
}

// Tables are bounded, and what is beyond is refused.
func TestLinksAreBounded(t *testing.T) {
	lab := newSeat(t, "", "lab", "site-a")
	campus := newSeat(t, "", "campus", "site-b")
	for range maxInvites {
		lab.token(t, "", time.Minute)
	}
	if _, _, err := lab.Invite("", time.Minute); !errors.Is(err, ErrTooMany) {
		t.Errorf("invitation %d: %v", maxInvites+1, err)
	}
	lab.now = lab.now.Add(time.Hour)
	token := lab.token(t, "", time.Minute)
	full := linksState{invites: lab.state.invites}
	for i := range maxLinks {
		side := LinkSide{Key: testKey(byte(i)).Public()}
		full.links = append(full.links, Link{Name: "x", Side: side})
	}
	lab.state = full
	if _, err := campus.join(lab, token); !errors.Is(err, LinkFull) {
		t.Errorf("link %d: %v", maxLinks+1, err)
	}
	campus.state.links = full.links
	if _, err := campus.Ask(token, campus.side()); !errors.Is(err, LinkFull) {
		t.Errorf("the same at the joiner: %v", err)
	}
	for _, span := range []time.Duration{0, MaxInvite + time.Second} {
		if _, _, err := lab.Invite("", span); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("for %s: %v", span, err)
		}
	}
}

// A policy that was changed is valid, or nothing was changed.
func TestPoliciesAreValid(t *testing.T) {
	lab, campus := pair(t)
	if _, err := campus.join(lab, lab.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		before := lab.List()[0].Policy
		number := rapid.Ptr(rapid.IntRange(-1, maxPolicyTasks+1), true)
		kind := rapid.SampledFrom([]string{"wasm", "command", "jazz"})
		change := PolicyChange{
			Give: number.Draw(t, "give"), Take: number.Draw(t, "take"),
			Onward: rapid.Ptr(rapid.IntRange(-1, protocol.MaxHops), true).Draw(t, "onward"),
			Beside: rapid.Ptr(rapid.Bool(), true).Draw(t, "beside"),
			Tasks:  number.Draw(t, "tasks"), Kinds: rapid.SliceOfN(kind, 0, 4).Draw(t, "kinds"),
		}
		link, err := lab.Change("campus", change)
		after := lab.List()[0].Policy
		switch {
		case err != nil && !reflect.DeepEqual(before, after):
			t.Fatalf("refused (%v), and changed to %+v", err, after)
		case err == nil && (after.Validate() != nil || !reflect.DeepEqual(after, link.Policy)):
			t.Fatalf("taken, and is %+v", after)
		case err == nil && change.Give != nil && after.Give != *change.Give:
			t.Fatalf("gives %d, want %d", after.Give, *change.Give)
		}
	})
}

// Only the site that has the domain's key links it; another one names that site.
func TestLinksNeedTheKey(t *testing.T) {
	lab := newSeat(t, t.TempDir(), "lab", "site-a")
	reg, err := Open(Config{Domain: "lab", Self: "site-z", Key: lab.Key()})
	if err == nil {
		_, err = reg.Merge(lab.members.Roster().Records())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenLinks(reg)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Invite("", time.Hour); !errors.Is(err, ErrNoKey) ||
		!strings.Contains(err.Error(), "run this at lab (site-a)") {
		t.Errorf("invite: %v", err)
	}
	if _, err := l.Ask(Token{Key: testKey(3).Public()}, LinkSide{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("join: %v", err)
	}
}

// Each refusal says what to do, and comes back from its word.
func TestRefusalsTeach(t *testing.T) {
	for _, r := range []LinkRefusal{
		LinkUnknown, LinkExpired, LinkUsed, LinkWithdrawn, LinkOther, LinkSame, LinkAlready,
		LinkFull, LinkForged, LinkUnlinked, LinkNoKey, LinkReplayed, LinkLapsed, LinkBroken,
	} {
		if !strings.Contains(r.Error(), ";") || RefusalOf(r) != r {
			t.Errorf("%s: %q, and back %s", string(r), r.Error(), string(RefusalOf(r)))
		}
	}
	if got := RefusalOf(LinkRefusal("of another version")); got != LinkBroken {
		t.Errorf("a word that is not known: %s", string(got))
	}
}

// A text that anybody may send is read or refused.
func FuzzLinkRecords(f *testing.F) {
	lab, campus := newSeat(f, "", "lab", "site-a"), newSeat(f, "", "campus", "site-b")
	token := lab.token(f, "", time.Hour)
	said, err := campus.Ask(token, campus.side())
	if err != nil {
		f.Fatal(err)
	}
	record, err := lab.Propose(said, campus.self, lab.side())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(said.Text, said.Signature)
	f.Add(record.Text, record.Inviter)
	f.Fuzz(func(t *testing.T, text, signature []byte) {
		if r, err := lab.Propose(Statement{text, signature}, campus.self, lab.side()); err == nil {
			if _, err := r.read(); err != nil {
				t.Errorf("a proposal that cannot be read: %v", err)
			}
		}
		made := LinkRecord{Text: text, Inviter: signature, Joiner: signature}
		if _, err := campus.Join(made); err == nil {
			t.Error("a link that nobody has made")
		}
	})
}

// A file of links is read or refused, and what was read is written the same way.
func FuzzLinksFile(f *testing.F) {
	lab, campus := pair(f)
	if _, err := campus.join(lab, lab.token(f, "", time.Hour)); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(lab.dir, linksFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decodeLinks(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(linksTextOf(s))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeLinks(again); err != nil || len(back.links) != len(s.links) {
			t.Errorf("written again: %v", err)
		}
	})
}
