package member

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// office is a registry with a clock that a test sets.
type office struct {
	*Registry
	now time.Time
}

func open(t *testing.T, dir string, key grid.DomainKey) *office {
	t.Helper()
	o := &office{now: time.UnixMilli(1_900_000_000_000)}
	var err error
	o.Registry, err = Open(Config{
		Dir: dir, Domain: "lab", Self: "self", Name: "me", Key: key,
		Now: func() time.Time { return o.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) invite(t *testing.T, span time.Duration, uses int) []byte {
	t.Helper()
	secret, _, err := o.Invite(Terms{Span: span, Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func (o *office) redeem(site grid.SiteID, secret []byte) protocol.JoinRefusal {
	return o.Redeem(site, protocol.JoinRequest{Secret: secret, Name: "n"}).Refusal
}

func TestInvitationsOutliveARestart(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, "")
	if o.Inviting() || o.Holds() {
		t.Fatal("a fresh site invites")
	}
	once, twice := o.invite(t, time.Hour, 1), o.invite(t, time.Hour, 2)
	short := o.invite(t, time.Minute, 1)
	if got := o.redeem("a", once); got != protocol.JoinAdmitted {
		t.Fatal(got)
	}
	key := o.Key()
	o = open(t, dir, "")
	if o.Key() != key || !o.Holds() || o.Standing("a") != Admitted || o.Standing("self") != Admitted {
		t.Fatalf("after a restart: key %q, a is %d", o.Key(), o.Standing("a"))
	}
	for _, c := range []struct {
		site   grid.SiteID
		secret []byte
		want   protocol.JoinRefusal
	}{
		{"b", once, protocol.JoinUsed},
		{"a", once, protocol.JoinAdmitted}, // its answer was lost
		{"b", twice, protocol.JoinAdmitted},
		{"b", twice, protocol.JoinAdmitted}, // no second use
		{"c", twice, protocol.JoinAdmitted},
		{"d", twice, protocol.JoinUsed},
		{"d", bytes.Repeat([]byte{1}, protocol.SecretBytes), protocol.JoinUnknown},
	} {
		if got := o.redeem(c.site, c.secret); got != c.want {
			t.Errorf("%s: %s, want %s", c.site, got, c.want)
		}
	}
	o.now = o.now.Add(time.Minute)
	if got := o.redeem("d", short); got != protocol.JoinExpired {
		t.Errorf("expired: %s", got)
	}
	if len(o.Invites()) != 0 || !o.Inviting() {
		t.Error("strangers are not told why their invitation is of no use")
	}
	o.now = o.now.Add(2 * time.Hour)
	if o.Inviting() {
		t.Error("long after the last invitation strangers are let in")
	}
	for _, file := range []string{KeyFile, invitesFile, rosterFile} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", file, info.Mode(), err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, invitesFile))
	if err != nil || bytes.Contains(text, once) {
		t.Errorf("the secret is on disk, or %v", err)
	}
}

func TestInvitationsAreBounded(t *testing.T) {
	o := open(t, t.TempDir(), "")
	for range maxInvites {
		o.invite(t, time.Hour, 1)
	}
	if _, _, err := o.Invite(Terms{Span: time.Hour, Uses: 1}); !errors.Is(err, ErrTooMany) {
		t.Errorf("one more: %v, want ErrTooMany", err)
	}
	o.now = o.now.Add(time.Hour)
	o.invite(t, time.Hour, 1)
	for _, c := range []struct {
		span time.Duration
		uses int
	}{{0, 1}, {MaxInvite + 1, 1}, {time.Hour, 0}, {time.Hour, MaxUses + 1}} {
		_, _, err := o.Invite(Terms{Span: c.span, Uses: c.uses})
		if !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s, %d uses: %v, want ErrInvalid", c.span, c.uses, err)
		}
	}
}

func TestWhoDoesNotHoldTheKeyDecidesForHimself(t *testing.T) {
	holder := open(t, t.TempDir(), "")
	secret := holder.invite(t, time.Hour, 1)
	answer := holder.Redeem("b", protocol.JoinRequest{Secret: secret})
	dir := t.TempDir()
	o := open(t, dir, holder.Key())
	if _, err := o.Merge(append(holder.Roster().Records(), *answer.Admit)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Invite(Terms{Span: time.Hour, Uses: 1}); !errors.Is(err, ErrNoKey) {
		t.Errorf("Invite = %v, want ErrNoKey", err)
	}
	record, err := o.Ban("b", "", "noisy")
	if err != nil || record != nil || o.Standing("b") != BannedHere {
		t.Errorf("Ban = %v, %v; standing %d", record, err, o.Standing("b"))
	}
	if o = open(t, dir, holder.Key()); o.Standing("b") != BannedHere ||
		o.Standing("self") != Admitted {
		t.Error("the decision is lost in a restart")
	}
	if _, err := o.Admit("b", "", ""); err != nil || o.Standing("b") != AdmittedHere {
		t.Errorf("Admit: %v, standing %d", err, o.Standing("b"))
	}
	if _, err := o.Ban("self", "", ""); !errors.Is(err, errSelf) {
		t.Errorf("ban of oneself: %v", err)
	}
}

// The holder's clock may step back: its last word still holds.
func TestTheLastWordHolds(t *testing.T) {
	o := open(t, t.TempDir(), "")
	o.invite(t, time.Hour, 1)
	for i, kind := range []protocol.MemberKind{
		protocol.MemberBan, protocol.MemberAdmit, protocol.MemberBan, protocol.MemberAdmit,
	} {
		o.now = o.now.Add(-time.Minute)
		record, err := o.decide("b", kind, "", "")
		if err != nil || record.Kind != kind {
			t.Fatal(err)
		}
		want := map[protocol.MemberKind]Standing{
			protocol.MemberBan: BannedHere, protocol.MemberAdmit: Admitted,
		}[kind]
		if got, _ := o.Roster().Get("b"); got.Kind != kind || o.Standing("b") != want {
			t.Errorf("word %d: roster %s, standing %d", i, got.Kind, o.Standing("b"))
		}
	}
	if got := o.redeem("b", o.invite(t, time.Hour, 1)); got != protocol.JoinAdmitted {
		t.Error(got)
	}
	if _, err := o.Ban("b", "", ""); err != nil {
		t.Fatal(err)
	}
	if got := o.redeem("b", o.invite(t, time.Hour, 1)); got != protocol.JoinBanned {
		t.Errorf("a banned site with an invitation: %s", got)
	}
}

func damages() map[string]string {
	return map[string]string{
		"nothing": "", "noise": "\x00\xff", "cut": `{"version":1,"records":[{`, "later": `{"version":2}`,
	}
}

// Who is banned stays out: a site that cannot read its bans does not start.
func TestDamagedBansAreNotForgotten(t *testing.T) {
	for _, file := range []string{rosterFile, localFile} {
		for name, text := range damages() {
			dir := t.TempDir()
			o := open(t, dir, "")
			o.invite(t, time.Hour, 1)
			if _, err := o.Ban("b", "", ""); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Config{Dir: dir, Domain: "lab", Self: "self"})
			if !errors.Is(err, errBans) || !strings.Contains(err.Error(), path) ||
				!strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s, %s: %v, want a refusal with the file and the remedy", file, name, err)
			}
			if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
				t.Errorf("%s, %s: not left as it was: %v", file, name, err)
			}
		}
	}
}

func TestDamagedFilesArePutAside(t *testing.T) {
	for _, file := range []string{invitesFile} {
		for name, text := range damages() {
			dir := t.TempDir()
			o := open(t, dir, "")
			o.invite(t, time.Hour, 1)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o = open(t, dir, "")
			if len(o.Problems()) != 1 || !strings.Contains(o.Problems()[0], file) {
				t.Errorf("%s, %s: problems %q", file, name, o.Problems())
			}
			kept, err := os.ReadFile(filepath.Join(dir, file+".unusable"))
			if err != nil || string(kept) != text {
				t.Errorf("%s, %s: not kept aside: %v", file, name, err)
			}
			if _, err := o.Ban("b", "", ""); err != nil {
				t.Errorf("%s, %s: the site does not go on: %v", file, name, err)
			}
		}
	}
}

// A roster of another key is not this domain's.
func TestTheRosterOfAnotherDomainIsPutAside(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, "")
	o.invite(t, time.Hour, 1)
	if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, testKey('x').Public())
	if o.Roster().Len() != 0 || len(o.Problems()) != 1 {
		t.Errorf("%d records believed, problems %q", o.Roster().Len(), o.Problems())
	}
}

func TestTheDomainsKeyIsKeptSecret(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, "")
	o.invite(t, time.Hour, 1)
	if got := o.key.String(); got != string(o.Key()) || !strings.HasPrefix(got, "ed25519:") {
		t.Errorf("the key prints as %q", got)
	}
	file := filepath.Join(dir, KeyFile)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir, Domain: "lab", Self: "self"}); !errors.Is(err, errKeyReadable) {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir, Domain: "lab", Self: "self"}); err == nil {
		t.Error("a key that is none is accepted")
	}
}

func TestEntriesSayWhoIsWho(t *testing.T) {
	o := open(t, t.TempDir(), "")
	o.redeem("a", o.invite(t, time.Hour, 1))
	o.Redeem("c", protocol.JoinRequest{Secret: o.invite(t, time.Hour, 1), Name: "c\x1b[2J"})
	if _, err := o.Ban("b", "bob\n", "left\r"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range o.Entries() {
		standing := map[Standing]string{Admitted: "in", BannedHere: "out"}
		got = append(got, string(e.Site)+" "+e.Name+" "+standing[e.Standing])
		if e.Note != grid.Plain(e.Note) {
			t.Errorf("%s: the note is %q", e.Site, e.Note)
		}
	}
	want := []string{"a n in", "b bob? out", "c c?[2J in", "self me in"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
