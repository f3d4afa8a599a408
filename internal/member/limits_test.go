package member

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// An invitation is good for a second to the longest time, and for one site to the most.
func TestBoundsOfAnInvitation(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	for _, c := range []struct {
		span time.Duration
		uses int
		want string // what the error says; empty: there is none
	}{
		{time.Second, 1, ""},
		{time.Second - 1, 1, "good for 1s to 90 days, not 999"},
		{MaxInvite, MaxUses, ""},
		{MaxInvite + 1, 1, "good for 1s to 90 days"},
		{time.Hour, 0, "has 1 to 1024 uses, not 0"},
		{time.Hour, MaxUses + 1, "has 1 to 1024 uses, not 1025"},
	} {
		secret, made, err := o.Invite(Terms{Span: c.span, Uses: c.uses})
		if c.want != "" {
			if !errors.Is(err, grid.ErrInvalid) || !strings.Contains(err.Error(), c.want) || secret != nil {
				t.Errorf("%s, %d uses: %v, want %q", c.span, c.uses, err, c.want)
			}
			continue
		}
		if err != nil || len(secret) != protocol.SecretBytes || made.Left != c.uses ||
			!made.Expires.Equal(o.now.Add(c.span)) || !made.Created.Equal(o.now) ||
			made.ID != hashOf(secret)[:idChars] {
			t.Errorf("%s, %d uses: %+v, %v", c.span, c.uses, made, err)
		}
	}
}

// An invitation is open until its last use and to the millisecond of its end; who holds one
// that was closed hears for a moment more why.
func TestWhenAnInvitationIsOpen(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_900_000_000_000)
	ms := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, c := range []struct {
		name       string
		i          invite
		open, told bool
		refusal    protocol.JoinRefusal
	}{
		{"open", invite{Left: 1, ExpiresMS: ms(time.Millisecond)}, true, true, protocol.JoinAdmitted},
		{"just expired", invite{Left: 1, ExpiresMS: ms(0)}, false, true, protocol.JoinExpired},
		{
			"expired long ago",
			invite{Left: 1, ExpiresMS: ms(-closedTold)},
			false, false,
			protocol.JoinExpired,
		},
		{
			"just told",
			invite{Left: 1, ExpiresMS: ms(-closedTold + time.Millisecond)},
			false, true,
			protocol.JoinExpired,
		},
		{
			"used up",
			invite{ExpiresMS: ms(time.Hour), UsedMS: ms(-time.Minute)},
			false, true,
			protocol.JoinUsed,
		},
		{
			"used up long ago",
			invite{ExpiresMS: ms(time.Hour), UsedMS: ms(-closedTold)},
			false, false,
			protocol.JoinUsed,
		},
		{
			"used up before it expired",
			invite{ExpiresMS: ms(-time.Minute), UsedMS: ms(-closedTold)},
			false, false, protocol.JoinUsed,
		},
	} {
		if c.i.open(now) != c.open || c.i.told(now) != c.told || c.i.refusal(now) != c.refusal {
			t.Errorf("%s: open %t, told %t, refused as %v", c.name, c.i.open(now), c.i.told(now),
				c.i.refusal(now))
		}
		o := open(t, "", "")
		o.now, o.invites = now, []invite{c.i}
		o.invites[0].Hash = hashOf(nil)
		if o.Inviting() != (c.open || c.told) || len(o.Invites()) != countOpen(o.invites, now) ||
			(countOpen(o.invites, now) == 1) != c.open {
			t.Errorf("%s: strangers may come: %t, open are %v", c.name, o.Inviting(), o.Invites())
		}
	}
}

// What was closed a week ago goes, and of too many the oldest that are closed.
func TestWhichInvitationsAreKept(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_900_000_000_000)
	at := func(d time.Duration, left int) invite {
		return invite{ExpiresMS: now.Add(d).UnixMilli(), Left: left}
	}
	if got := pruned([]invite{at(-closedKept, 1), at(-closedKept-1e6, 1)}, now); len(got) != 1 {
		t.Errorf("of one closed a week ago and one before that %d are kept", len(got))
	}
	list := []invite{at(time.Hour, 1), at(time.Hour, 0), at(2*time.Hour, 0)}
	for range maxInvitKept - 1 {
		list = append(list, at(3*time.Hour, 1))
	}
	got := pruned(list, now)
	if len(got) != maxInvitKept || got[0].Left != 1 || got[1].Left != 1 {
		t.Errorf("%d are kept, want %d, all of them open", len(got), maxInvitKept)
	}
	if got := pruned(list[:maxInvitKept], now); len(got) != maxInvitKept {
		t.Errorf("%d are kept, want as many as may be", len(got))
	}
}

// Each word of the issuer is later than the one before, by the clock if that goes on.
func TestSerialsGrow(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	o.invite(t, time.Hour, 1)
	for i, c := range []struct {
		step time.Duration
		want int64
	}{{0, 0}, {0, 1}, {time.Second, 1000}, {-time.Hour, 1001}} {
		o.now = o.now.Add(c.step)
		record, err := o.Ban("other", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := record.SerialMS - 1_900_000_000_000; got != c.want {
			t.Errorf("decision %d has the serial %d, want %d", i, got, c.want)
		}
	}
}

// A name that is known stays where a later word names none, and what is told to people is cut
// at a whole character.
func TestNamesAndNotes(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	o.invite(t, time.Hour, 1)
	long := strings.Repeat("n", 63) + "ä"
	for _, name := range []string{long, ""} {
		record, err := o.Admit("other", name, strings.Repeat("x", protocol.MaxNoteBytes+1))
		if err != nil {
			t.Fatal(err)
		}
		if record.Name != long[:63] || len(record.Note) != protocol.MaxNoteBytes {
			t.Errorf("name %q, note of %d bytes", record.Name, len(record.Note))
		}
	}
	if got := refuse(protocol.JoinBroken, strings.Repeat("x", 201)); len(got.Text) != 200 {
		t.Errorf("a refusal says %d bytes", len(got.Text))
	}
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aä", 3, "aä"}, {"aä", 2, "a"}, {"", 0, ""}} {
		if got := cut(c.text, c.limit); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// The roster and the owner's own list are full at a number, which the refusal names.
func TestTheListsAreFull(t *testing.T) {
	t.Parallel()
	o := open(t, "", testKey('a').Public())
	site := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprint("site", i)) }
	for i := range maxRecords - 1 {
		o.local[site(i)] = decision{Site: site(i)}
	}
	if _, err := o.Ban("last", "", ""); err != nil {
		t.Error("the last place:", err)
	}
	if _, err := o.Ban("late", "", ""); !errors.Is(err, ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := o.Ban("last", "", "again"); err != nil {
		t.Error("one that is there:", err)
	}
	if _, err := o.Ban("self", "", ""); !errors.Is(err, errSelf) || !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("oneself: %v", err)
	}
	if _, err := o.Admit("", "", ""); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("nobody: %v", err)
	}
	full := open(t, "", "")
	secret := full.invite(t, time.Hour, 9)
	for i := range maxRecords - 2 {
		full.roster.records[site(i)] = protocol.MemberRecord{Site: site(i)}
	}
	if got := full.redeem("last", secret); got != protocol.JoinAdmitted {
		t.Errorf("the last place: refused as %v", got)
	}
	if got := full.redeem("late", secret); got != protocol.JoinFull {
		t.Errorf("one too many: refused as %v", got)
	}
	if got := full.redeem("last", secret); got != protocol.JoinAdmitted {
		t.Errorf("one that is there: refused as %v", got)
	}
}

// Files of another form, that are too long, or that name no site are not believed in part.
func TestFilesThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	hash := hashOf(nil)
	for text, decode := range map[string]func([]byte) error{
		`{"version":2,"sites":[]}`: func(b []byte) error { _, err := decodeLocal(b); return err },
		`{"version":1,"sites":[{"site":""}]}`: func(b []byte) error {
			_, err := decodeLocal(b)
			return err
		},
		`{"version":2,"records":[]}`: func(b []byte) error { _, err := decodeRoster(b); return err },
		`{"version":1,"records":[{"domain":"lab","site":"a","kind":"other","serial_ms":1}]}`: func(
			b []byte,
		) error {
			_, err := decodeRoster(b)
			return err
		},
		`{"version":2,"invites":[]}`: func(b []byte) error { _, err := decodeInvites(b); return err },
		`{"version":1,"invites":[{"hash":"` + hash + `","left":1025}]}`: func(b []byte) error {
			_, err := decodeInvites(b)
			return err
		},
		`{"version":1,"invites":[{"hash":"` + hash + `","left":-1}]}`: func(b []byte) error {
			_, err := decodeInvites(b)
			return err
		},
		`{"version":1,"invites":[{"hash":"` + hash + `","expires_ms":-1}]}`: func(b []byte) error {
			_, err := decodeInvites(b)
			return err
		},
		`{"version":1,"invites":[{"hash":"` + hash[2:] + `"}]}`: func(b []byte) error {
			_, err := decodeInvites(b)
			return err
		},
		`{"version":1,"invites":[{"hash":"` + strings.Repeat("x", 64) + `"}]}`: func(b []byte) error {
			_, err := decodeInvites(b)
			return err
		},
	} {
		if decode([]byte(text)) == nil {
			t.Errorf("believed: %s", text)
		}
	}
	for _, field := range []string{
		`"revoked":-1`, `"revoked":1025`, `"revoked":1,"left":1`, `"name":"two\nlines"`,
		`"name":"` + strings.Repeat("n", maxInviteName+1) + `"`, `"by":["no site"]`,
		`"by":["a"` + strings.Repeat(`,"a"`, MaxUses) + `]`,
	} {
		text := `{"version":1,"invites":[{"hash":"` + hash + `",` + field + `}]}`
		if _, err := decodeInvites([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), "invitation "+hash[:idChars]) {
			t.Errorf("believed, or refused for another reason: %.60s: %v", field, err)
		}
	}
	whole := `{"version":1,"invites":[{"hash":"` + hash + `","left":1024}]}`
	if got, err := decodeInvites([]byte(whole)); err != nil || len(got) != 1 {
		t.Errorf("an invitation that may be: %v, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "f")
	for size, want := range map[int64]bool{maxFileBytes: true, maxFileBytes + 1: false} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		err := read(file, func(text []byte) error {
			if int64(len(text)) != size {
				t.Errorf("%d of %d bytes are read", len(text), size)
			}
			return nil
		})
		if (err == nil) != want {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
}

// Where no clock is named it is that of the machine.
func TestTheClockOfTheMachine(t *testing.T) {
	t.Parallel()
	before := time.Now().Add(-time.Second)
	r, err := Open(Config{Domain: "lab", Self: "self"})
	if err != nil {
		t.Fatal(err)
	}
	_, made, err := r.Invite(Terms{Span: time.Hour, Uses: 1})
	if err != nil || made.Created.Before(before) || made.Created.After(time.Now()) {
		t.Errorf("made at %s, %v", made.Created, err)
	}
}

// A token is refused at its first field that is out of range, and its addresses are plain.
func TestBoundsOfAToken(t *testing.T) {
	t.Parallel()
	sound := func() Token {
		return Token{
			Domain: "lab", Key: testKey('a').Public(), Inviter: "site", Addrs: []string{"/ip4/1.2.3.4"},
			Secret: bytes.Repeat([]byte{1}, protocol.SecretBytes), Expires: time.Unix(1, 0).UTC(),
		}
	}
	long := "/" + strings.Repeat("a", maxTokenAddr-1)
	for name, c := range map[string]struct {
		change func(*Token)
		ok     bool
	}{
		"sound":             {func(*Token) {}, true},
		"open":              {func(k *Token) { k.Key, k.Secret = "", nil }, true},
		"secret without":    {func(k *Token) { k.Key = "" }, false},
		"key without":       {func(k *Token) { k.Secret = nil }, false},
		"short secret":      {func(k *Token) { k.Secret = k.Secret[1:] }, false},
		"no key":            {func(k *Token) { k.Key = "x" }, false},
		"no address":        {func(k *Token) { k.Addrs = nil }, false},
		"most addresses":    {func(k *Token) { k.Addrs = repeated("/a", maxTokenAddrs) }, true},
		"too many":          {func(k *Token) { k.Addrs = repeated("/a", maxTokenAddrs+1) }, false},
		"no expiry":         {func(k *Token) { k.Expires = time.Unix(0, 0) }, false},
		"longest address":   {func(k *Token) { k.Addrs[0] = long }, true},
		"too long":          {func(k *Token) { k.Addrs[0] = long + "a" }, false},
		"no slash":          {func(k *Token) { k.Addrs[0] = "ip4" }, false},
		"a space":           {func(k *Token) { k.Addrs[0] = "/a b" }, false},
		"last of the plain": {func(k *Token) { k.Addrs[0] = "/a~!" }, true},
		"a letter beyond":   {func(k *Token) { k.Addrs[0] = "/ä" }, false},
		"half a letter":     {func(k *Token) { k.Addrs[0] = "/\xff" }, false},
		"a delete":          {func(k *Token) { k.Addrs[0] = "/\x7f" }, false},
		"no domain":         {func(k *Token) { k.Domain = "" }, false},
		"no inviter":        {func(k *Token) { k.Inviter = "" }, false},
	} {
		k := sound()
		c.change(&k)
		text, err := k.Text()
		if (err == nil) != c.ok || err != nil && !errors.Is(err, errToken) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		back, err := ParseToken("  " + text[:9] + "\n" + text[9:] + "\t")
		if err != nil || fmt.Sprintf("%+v", back) != fmt.Sprintf("%+v", k) || back.Open() != k.Open() {
			t.Errorf("%s: comes back as %+v, %v", name, back, err)
		}
		if dial := back.Dial(); len(dial) != len(k.Addrs) || dial[0] != k.Addrs[0]+"/p2p/site" {
			t.Errorf("%s: to be dialled are %v", name, dial)
		}
	}
	if _, err := ParseToken(strings.Repeat(" ", 2*maxTokenText+1)); err == nil ||
		!strings.Contains(err.Error(), "too long") {
		t.Errorf("a text that is too long: %v", err)
	}
}

func repeated(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}
