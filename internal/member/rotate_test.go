package member

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// holder is the site with a domain's key, and the links.
type holder struct {
	*office
	links *Links
	dir   string
}

func openHolder(t *testing.T, dir string) *holder {
	t.Helper()
	h := &holder{office: open(t, dir, ""), dir: dir}
	var err error
	if h.links, err = OpenLinks(h.Registry); err != nil {
		t.Fatal(err)
	}
	return h
}

// founded is a domain with the members a and b, and with c, who is banned.
func founded(t *testing.T) *holder {
	t.Helper()
	h := openHolder(t, t.TempDir())
	if err := h.links.NeedKey(); err != nil {
		t.Fatal(err)
	}
	for _, site := range []grid.SiteID{"a", "b", "c"} {
		if _, err := h.Admit(site, string(site), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Ban("c", "", ""); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *holder) rotate(t *testing.T) Rotation {
	t.Helper()
	done, err := h.links.Rotate("")
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// knows tells one registry all that another one would, and returns what was wrong with it.
func (o *office) knows(from *office) error {
	_, err := o.Follow(from.Roster().Successions())
	_, problem := o.Merge(from.Roster().Records())
	return errors.Join(err, problem)
}

// standings are those of the sites of founded.
func (o *office) standings() string {
	var text strings.Builder
	for _, site := range []grid.SiteID{"self", "a", "b", "c", "d"} {
		text.WriteByte("?AaBb"[o.Standing(site)])
	}
	return text.String()
}

// The roster stays what it was, under a key that alone says more from now on.
func TestARotatedKeyKeepsTheMembers(t *testing.T) {
	h := founded(t)
	member := open(t, t.TempDir(), h.Key())
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	old, before := h.Key(), h.Roster().Digest()
	thief := h.key
	h.invite(t, time.Hour, 1)
	done := h.rotate(t)
	if h.Key() == old || !h.Holds() || len(done.Revoked) != 1 || len(h.Invites()) != 0 ||
		h.Roster().Digest() == before || done.Succession.Records != 4 {
		t.Fatalf("rotated from %s to %s: %+v", old, h.Key(), done)
	}
	if _, err := h.Admit("d", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	if got := member.standings(); got != "AAABA" || member.Key() != h.Key() ||
		member.Roster().Digest() != h.Roster().Digest() || len(member.Roster().former) != 0 {
		t.Errorf("a member knows %s, key %s", got, member.Key())
	}
	for _, kind := range []protocol.MemberKind{protocol.MemberAdmit, protocol.MemberBan} {
		_, err := member.Merge([]protocol.MemberRecord{
			signed(thief, "a", kind, h.now.UnixMilli()+1_000_000),
		})
		if !errors.Is(err, ErrFormer) {
			t.Errorf("a thief's %s: %v", kind, err)
		}
	}
	again := open(t, member.cfg.Dir, old)
	if again.standings() != "AAABA" || again.Key() != h.Key() || len(again.Problems()) != 0 {
		t.Errorf("after a restart %s, %q", again.standings(), again.Problems())
	}
	reopened := openHolder(t, h.dir)
	if !reopened.Holds() || reopened.Roster().Digest() != h.Roster().Digest() {
		t.Errorf("after a restart the holder holds: %t", reopened.Holds())
	}
}

// A member knows whom it knew until it has all that the new key took over, and then nobody else:
// not whom the thief of the old one has admitted to it alone.
func TestFormerRecordsHoldUntilTheNewOnesAreHere(t *testing.T) {
	h := founded(t)
	member := open(t, t.TempDir(), h.Key())
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	early := h.Roster().Records()[0].SerialMS // not later than what the holder has signed
	for site, serial := range map[grid.SiteID]int64{"d": early, "e": early + 1_000_000} {
		record := signed(h.key, site, protocol.MemberAdmit, serial)
		if _, err := member.Merge([]protocol.MemberRecord{record}); err != nil {
			t.Fatal(err)
		}
	}
	h.rotate(t)
	if _, err := member.Follow(h.Roster().Successions()); err != nil {
		t.Fatal(err)
	}
	if got := member.standings(); got != "AAABA" || member.Standing("e") != Unknown {
		t.Errorf("with the succession alone %s, e %d", got, member.Standing("e"))
	}
	if n := len(member.Roster().Records()); n != 0 {
		t.Errorf("it would tell others %d records of the former key", n)
	}
	member = open(t, member.cfg.Dir, member.cfg.Key)
	if got := member.standings(); got != "AAABA" || member.Standing("e") != Unknown {
		t.Errorf("and after a restart %s, e %d", got, member.Standing("e"))
	}
	records := h.Roster().Records()
	if _, err := member.Merge(records[:3]); err != nil {
		t.Fatal(err)
	}
	if got := member.standings(); got != "AAABA" {
		t.Errorf("with three of four %s", got)
	}
	if _, err := member.Merge(records); err != nil {
		t.Fatal(err)
	}
	if got := member.standings(); got != "AAAB?" {
		t.Errorf("with all of them %s", got)
	}
}

// A site that is first spoken of after the succession is none of those that were taken over.
func TestALaterAdmissionIsNotTakenOver(t *testing.T) {
	h := founded(t)
	member := open(t, t.TempDir(), h.Key())
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	h.rotate(t)
	later, err := h.Admit("d", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := member.Follow(h.Roster().Successions()); err != nil {
		t.Fatal(err)
	}
	records := h.Roster().Records()
	if _, err := member.Merge(append(records[:3:3], *later)); err != nil {
		t.Fatal(err)
	}
	if later.Successions != 1 || len(member.Roster().former) == 0 || member.standings() != "AAABA" {
		t.Errorf("four records with one of a later site: %d of before, %s",
			len(member.Roster().former), member.standings())
	}
}

// A member that was away for several rotations catches up with one message.
func TestTwoRotationsAreCaughtUpWith(t *testing.T) {
	h := founded(t)
	first := h.Key()
	member := open(t, t.TempDir(), first)
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	h.rotate(t)
	joined := open(t, t.TempDir(), h.Key()) // with a token of the second key
	h.rotate(t)
	for name, o := range map[string]*office{"away": member, "joined in between": joined} {
		if err := o.knows(h.office); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if o.Key() != h.Key() || o.standings() != "AAAB?" || o.Roster().Digest() !=
			h.Roster().Digest() || len(o.Roster().Successions()) != 2 {
			t.Errorf("%s: key %s, %s", name, o.Key(), o.standings())
		}
		if !IsKey(o.cfg.Dir, first, h.Key()) || IsKey(o.cfg.Dir, first, testKey('x').Public()) {
			t.Errorf("%s: which keys are of one domain is not known", name)
		}
	}
	newcomer := open(t, t.TempDir(), h.Key()) // with one of the third
	if err := newcomer.knows(h.office); err != nil || newcomer.standings() != "AAAB?" ||
		len(newcomer.Roster().Successions()) != 2 {
		t.Errorf("a newcomer: %v, %s", err, newcomer.standings())
	}
}

// errHalt stands for the end of the process.
var errHalt = errors.New("halt")

// A rotation that is cut short before any of the things that it writes is gone on with: by the
// command again, in the same run or after a restart, and a key never has two successors.
func TestARotationCutShortIsGoneOnWith(t *testing.T) {
	for _, stop := range []string{"invites", "successor", "succession", "key", "records"} {
		for _, restart := range []bool{false, true} {
			h := founded(t)
			h.invite(t, time.Hour, 1)
			old, told := h.Key(), ""
			h.halt = func(step string) error {
				if told += step + " "; step == stop {
					return errHalt
				}
				return nil
			}
			if _, err := h.links.Rotate(old); !errors.Is(err, errHalt) ||
				!strings.HasSuffix(told, stop+" ") {
				t.Fatalf("%s: %v after %s", stop, err, told)
			}
			wrote := "" // the successor that may be known already
			if text, err := os.ReadFile(filepath.Join(h.dir, chainFile)); err == nil {
				chain, err := decodeChain(text)
				if err != nil {
					t.Fatal(err)
				}
				wrote = string(chain[0].Successor)
			}
			if committed := wrote != ""; committed != (h.Key() != old) {
				t.Errorf("%s: written down %t, acted on %t", stop, committed, !committed)
			}
			if h.halt = nil; restart {
				h = openHolder(t, h.dir)
			}
			done, err := h.links.Rotate(old)
			if err != nil || wrote != "" && string(done.Succession.Successor) != wrote {
				t.Fatalf("%s, restart %t: %v, %s after %s", stop, restart, err,
					done.Succession.Successor, wrote)
			}
			if got := h.standings(); got != "AAAB?" && got != "AAAb?" || !h.Holds() ||
				len(h.Roster().Successions()) != 1 || len(h.Roster().Records()) != 4 ||
				len(h.Invites()) != 0 || h.Key() == old {
				t.Errorf("%s, restart %t: %s, %d records", stop, restart, got, h.Roster().Len())
			}
			if _, err := os.Stat(filepath.Join(h.dir, nextKeyFile)); err == nil {
				t.Errorf("%s: the successor is not in its place", stop)
			}
			again := openHolder(t, h.dir)
			if !again.Holds() || again.Roster().Digest() != h.Roster().Digest() {
				t.Errorf("%s: another roster after a restart", stop)
			}
		}
	}
}

// Of two successors of a key the first that is known stays, and the other one can be seen.
func TestOfTwoSuccessorsTheFirstStays(t *testing.T) {
	h := founded(t)
	member, fooled := open(t, t.TempDir(), h.Key()), open(t, t.TempDir(), h.Key())
	for _, o := range []*office{member, fooled} {
		if err := o.knows(h.office); err != nil {
			t.Fatal(err)
		}
	}
	thief := founded(t) // of another directory, with the same key
	thief.key, thief.roster = h.key, h.roster
	thief.rotate(t)
	if err := h.knows(thief.office); !errors.Is(err, ErrContested) || len(h.Contests()) != 1 ||
		h.Contests()[0].Followed != "" || !h.Holds() {
		t.Errorf("who has the key itself: %v, %+v", err, h.Contests())
	}
	if err := fooled.knows(thief.office); err != nil || fooled.Key() != thief.Key() {
		t.Fatalf("who hears of the thief first: %v", err)
	}
	h.rotate(t)
	if err := member.knows(h.office); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := member.Follow(thief.Roster().Successions()); !errors.Is(err, ErrContested) {
			t.Errorf("a second successor: %v", err)
		}
	}
	contests := member.Contests()
	if len(contests) != 1 || contests[0].Followed != h.Key() || member.Key() != h.Key() ||
		contests[0].Succession.Successor != thief.Key() {
		t.Errorf("%+v", contests)
	}
	if err := fooled.knows(h.office); !errors.Is(err, ErrContested) || fooled.Key() != thief.Key() {
		t.Errorf("who follows the thief: %v, %s", err, fooled.Key())
	}
	// Its owner says which key is the domain's.
	back := open(t, fooled.cfg.Dir, h.Key())
	if len(back.Problems()) == 0 || back.Key() != h.Key() {
		t.Errorf("key %s, %q", back.Key(), back.Problems())
	}
	if err := back.knows(h.office); err != nil || back.standings() != "AAAB?" {
		t.Errorf("with the owner's word: %v, %s", err, back.standings())
	}
}

// Nobody is led to follow what the keys have not signed.
func TestForgedSuccessionsAreNotFollowed(t *testing.T) {
	h := founded(t)
	old := h.key
	h.rotate(t)
	good := h.Roster().Successions()[0]
	other := testKey('o')
	sign := func(s protocol.Succession, former, successor Key) protocol.Succession {
		text := s.SignedBytes()
		s.ByFormer = ed25519.Sign(former.private, text)
		s.BySuccessor = ed25519.Sign(successor.private, text)
		return s
	}
	to := good
	to.Successor = other.Public()
	elsewhere := good
	elsewhere.Domain = "campus"
	strange := good
	strange.Former = testKey('p').Public()
	for name, s := range map[string]protocol.Succession{
		"not by the former key":    sign(to, other, other),
		"not by the successor":     sign(good, old, other),
		"of another domain":        sign(elsewhere, old, h.key),
		"of another key":           sign(strange, testKey('p'), h.key),
		"to a key that is trusted": sign(strange, testKey('q'), h.key),
	} {
		member := open(t, t.TempDir(), old.Public())
		if name == "to a key that is trusted" { // with a history that nobody has signed
			member = open(t, t.TempDir(), h.Key())
		}
		key := member.Key()
		if _, err := member.Follow([]protocol.Succession{s}); !errors.Is(err, errForged) ||
			member.Key() != key || len(member.Contests()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Why a key is not rotated, and what can be done.
func TestARotationThatIsRefused(t *testing.T) {
	h := founded(t)
	h.invite(t, time.Hour, 1)
	var err error
	if _, _, err = h.links.Invite("", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err = h.links.Rotate(testKey('x').Public()); !errors.Is(err, ErrNotKey) ||
		len(h.Invites()) != 1 || len(h.links.Invites()) != 1 {
		t.Errorf("from another key: %v", err)
	}
	member := &holder{office: open(t, t.TempDir(), h.Key())}
	if member.links, err = OpenLinks(member.Registry); err != nil {
		t.Fatal(err)
	}
	if _, err = member.links.Rotate(""); !errors.Is(err, ErrNoKey) {
		t.Errorf("without the key: %v", err)
	}
	fresh := openHolder(t, t.TempDir())
	if _, err = fresh.links.Rotate(""); !errors.Is(err, ErrKeyless) {
		t.Errorf("before there is one: %v", err)
	}
	for range protocol.MaxSuccessions {
		h.rotate(t)
	}
	if _, err = h.links.Rotate(""); !errors.Is(err, ErrTooMany) {
		t.Errorf("too often: %v", err)
	}
	if err = member.knows(h.office); err != nil || member.standings() != "AAAB?" {
		t.Errorf("after %d: %v, %s", protocol.MaxSuccessions, err, member.standings())
	}
	member.knows(h.office)

	lab := newSeat(t, t.TempDir(), "lab", "12D3KooWlab")
	campus := newSeat(t, t.TempDir(), "campus", "12D3KooWcampus")
	if _, err = campus.join(lab, lab.token(t, "", time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err = lab.Rotate(""); !errors.Is(err, ErrLinked) ||
		!strings.Contains(err.Error(), "campus; end the links with siteagent domain unlink") {
		t.Errorf("a linked domain: %v", err)
	}
	if _, err = lab.Unlink("campus"); err != nil {
		t.Fatal(err)
	}
	open := lab.token(t, "", time.Hour)
	done, err := lab.Rotate("")
	if err != nil || len(done.Withdrawn) != 1 || len(lab.Invites()) != 0 {
		t.Errorf("after that: %v, %+v", err, done.Withdrawn)
	}
	if lab.Key() == open.Key {
		t.Error("links are still made with the former key")
	}
}

// The copy of a former key is of no use to its site, and the owner hears why.
func TestAFormerKeyIsNotUsed(t *testing.T) {
	h := founded(t)
	copied, err := os.ReadFile(filepath.Join(h.dir, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	h.rotate(t)
	if err := os.WriteFile(filepath.Join(h.dir, KeyFile), copied, 0o600); err != nil {
		t.Fatal(err)
	}
	back := openHolder(t, h.dir)
	if back.Holds() || back.Key() != h.Key() || len(back.Problems()) != 1 ||
		!strings.Contains(back.Problems()[0], "a former key of the domain, which "+
			string(h.Key())+" has succeeded") {
		t.Errorf("holds %t, key %s, %q", back.Holds(), back.Key(), back.Problems())
	}
	if _, _, err := back.Invite(Terms{Span: time.Hour, Uses: 1}); !errors.Is(err, ErrNoKey) {
		t.Errorf("it invites: %v", err)
	}
}

// A serial of the distant future, which the thief of a key may have chosen so that nothing can be
// said after it, comes back to the time of the succession.
func TestARotationHealsSerials(t *testing.T) {
	h := founded(t)
	const last = int64(^uint64(0)>>1) / int64(time.Millisecond)
	poison := signed(h.key, "a", protocol.MemberBan, last)
	if _, err := h.Merge([]protocol.MemberRecord{poison}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admit("a", "", ""); err == nil {
		t.Fatal("the poison does nothing")
	}
	done := h.rotate(t)
	if _, err := h.Admit("a", "", ""); err != nil || h.Standing("a") != Admitted {
		t.Errorf("after %+v: %v, %d", done, err, h.Standing("a"))
	}
	member := open(t, t.TempDir(), done.Succession.Former)
	if err := member.knows(h.office); err != nil || member.Standing("a") != Admitted {
		t.Errorf("a member: %v, %d", err, member.Standing("a"))
	}
}

// Members that hear all there is, in any order and any parts, agree about the key and the roster.
func TestMembersConvergeOverRotations(t *testing.T) {
	h := founded(t)
	type news struct {
		chain   []protocol.Succession
		records []protocol.MemberRecord
	}
	var all []news
	first := h.Key()
	for _, site := range []grid.SiteID{"d", "a", "e"} {
		if _, err := h.Admit(site, "", ""); err != nil {
			t.Fatal(err)
		}
		all = append(all, news{h.Roster().Successions(), h.Roster().Records()})
		h.rotate(t)
	}
	all = append(all, news{h.Roster().Successions(), h.Roster().Records()})
	rapid.Check(t, func(t *rapid.T) {
		r, err := newRoster("lab", first)
		if err != nil {
			t.Fatal(err)
		}
		hear := func(n news) {
			if next, _, err := r.follow(n.chain); err == nil {
				r = next
			}
			r, _, _ = r.Merge(n.records)
		}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, len(all)-1)).Draw(t, "heard") {
			n := all[i]
			from := rapid.IntRange(0, len(n.records)).Draw(t, "from")
			hear(news{n.chain, n.records[from:]})
		}
		hear(all[len(all)-1])
		if r.Digest() != h.Roster().Digest() || len(r.former) != 0 {
			t.Fatalf("%d records, %d of former keys", len(r.records), len(r.former))
		}
	})
}

// FuzzChainFile takes any text for a file of successions.
func FuzzChainFile(f *testing.F) {
	old, next := testKey('o'), testKey('n')
	s := protocol.Succession{
		Domain: "lab", Number: 1, Former: old.Public(), Successor: next.Public(), MadeMS: 1,
	}
	text := s.SignedBytes()
	s.ByFormer, s.BySuccessor = ed25519.Sign(old.private, text), ed25519.Sign(next.private, text)
	seed, err := json.Marshal(chainText{
		Version: 1, Successions: []successionText{successionText(s)},
	})
	if err != nil {
		f.Fatal(err)
	}
	if chain, err := decodeChain(seed); err != nil || len(chain) != 1 {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":2,"successions":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		chain, err := decodeChain(text)
		if err == nil && protocol.ValidSuccessions(chain) != nil {
			t.Errorf("%q gives successions that are none", text)
		}
		for _, s := range chain {
			if !s.IsSigned() {
				t.Errorf("%q gives one that nobody has signed", text)
			}
		}
	})
}

// A damaged file of successions keeps a site from starting: it would believe a former key.
func TestADamagedChainIsAnError(t *testing.T) {
	h := founded(t)
	h.rotate(t)
	file := filepath.Join(h.dir, chainFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string]string{
		"cut": string(text[:len(text)/2]), "empty": "",
		"not signed": strings.Replace(string(text), `"records": 4`, `"records": 3`, 1),
	} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Config{Dir: h.dir, Domain: "lab", Self: "self"})
		if !errors.Is(err, errFollow) || !strings.Contains(err.Error(), "under domain-key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
