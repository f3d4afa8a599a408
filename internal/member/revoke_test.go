package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// made makes an invitation with a name.
func (o *office) made(t *testing.T, name string, uses int) (secret []byte, id string) {
	t.Helper()
	secret, i, err := o.Invite(Terms{Name: name, Span: time.Hour, Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	return secret, i.ID
}

// A revoked invitation is of no use any more, over a restart, too, and who holds it is told so
// for an hour, in which strangers are let in. Who has redeemed it stays a member. A build that
// knows of no revoked ones finds it used up.
func TestARevokedInvitation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := open(t, dir, "")
	secret, id := o.made(t, "lab 3", 3)
	if got := o.redeem("a", secret); got != protocol.JoinAdmitted {
		t.Fatal(got)
	}
	o.now = o.now.Add(time.Minute)
	revoked, err := o.Revoke("lab 3")
	if err != nil || revoked.ID != id || revoked.Refusal != protocol.JoinRevoked {
		t.Fatalf("revoked: %+v, %v", revoked, err)
	}
	now := o.now
	for range 2 {
		if got := o.redeem("b", secret); got != protocol.JoinRevoked {
			t.Errorf("the next one hears: %s", got)
		}
		if got := o.redeem("a", secret); got != protocol.JoinAdmitted ||
			o.Standing("a") != Admitted {
			t.Errorf("a member whose answer was lost hears: %s", got)
		}
		if len(o.Invites()) != 0 || !o.Inviting() {
			t.Errorf("open are %v; strangers hear why: %t", o.Invites(), o.Inviting())
		}
		if all := o.AllInvites(); len(all) != 1 || all[0].Uses != 3 || all[0].Left != 0 ||
			!slices.Equal(all[0].By, []grid.SiteID{"a"}) || all[0].Name != "lab 3" {
			t.Errorf("it is listed as %+v", all)
		}
		o = open(t, dir, "")
		o.now = now
	}
	text, err := os.ReadFile(filepath.Join(dir, invitesFile))
	if err != nil {
		t.Fatal(err)
	}
	var older struct {
		Version int `json:"version"`
		Invites []struct {
			Left   int   `json:"left"`
			UsedMS int64 `json:"used_ms"`
		} `json:"invites"`
	}
	if err := json.Unmarshal(text, &older); err != nil || older.Version != 1 ||
		older.Invites[0].Left != 0 || older.Invites[0].UsedMS != now.UnixMilli() {
		t.Errorf("an older build reads %+v, %v", older, err)
	}
	if o.now = now.Add(closedTold - time.Millisecond); !o.Inviting() {
		t.Error("strangers are turned away before the hour is over")
	}
	if o.now = now.Add(closedTold); o.Inviting() {
		t.Error("strangers are let in though nothing is open")
	}
	o.now = o.now.Add(time.Hour + closedKept)
	if all := o.AllInvites(); len(all) != 0 {
		t.Errorf("long after, these are listed: %v", all)
	}
}

// An invitation is meant by its ID, the beginning of that, or its name. What fits none or several
// changes nothing, and the error names those that it could be.
func TestWhichInvitationIsRevoked(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	ids := []string{"aa000001", "aa000002", "bb000003", "cc000004", "dd000005"}
	names := []string{"twin", "twin", "", "aa", "used"}
	for n, id := range ids {
		o.invites = append(o.invites, invite{
			Hash: id + strings.Repeat("0", 56), Name: names[n], Left: 1,
			ExpiresMS: o.now.Add(time.Hour).UnixMilli(),
		})
	}
	o.invites[4].Left = 0
	before := o.AllInvites()
	const closed = "dd000005 (used) is closed already: the invitation is used up"
	const list = "aa000001 (twin), aa000002 (twin), bb000003, cc000004 (aa)"
	for which, want := range map[string]string{
		"":          `no open invitation has this ID or name: ""; open are ` + list,
		"   ":       `no open invitation has this ID or name: "   "; open are ` + list,
		"ee":        `no open invitation has this ID or name: "ee"; open are ` + list,
		"aa000001x": `no open invitation has this ID or name: "aa000001x"; open are ` + list,
		"used":      "no open invitation has this ID or name: " + closed,
		"dd000005":  "no open invitation has this ID or name: " + closed,
		"twin": `several open invitations match: "twin" may be aa000001 (twin), ` +
			"aa000002 (twin); give more of the ID",
		"aa": `several open invitations match: "aa" may be aa000001 (twin), ` +
			"aa000002 (twin), cc000004 (aa); give more of the ID",
	} {
		_, err := o.Revoke(which)
		if err == nil || err.Error() != want ||
			errors.Is(err, ErrNoInvite) == errors.Is(err, ErrSeveralInvite) {
			t.Errorf("%q: %v, want %s", which, err, want)
		}
	}
	same(t, "after what failed", before, o.AllInvites())
	for _, c := range []struct{ which, want string }{
		{"aa000002", "aa000002"},
		{"b", "bb000003"},
		{" twin\n", "aa000001"},
		{"aa", "cc000004"}, // clear now that the others are closed
	} {
		if got, err := o.Revoke(c.which); err != nil || got.ID != c.want {
			t.Errorf("%q is %s, %v, want %s", c.which, got.ID, err, c.want)
		}
	}
	if _, err := o.Revoke("bb"); err == nil || !strings.HasSuffix(err.Error(),
		"bb000003 is closed already: the invitation was revoked") {
		t.Errorf("again: %v", err)
	}
	_, err := o.Revoke("ff")
	if err == nil || !strings.HasSuffix(err.Error(), `"ff"; none is open`) {
		t.Errorf("when none is open: %v", err)
	}
}

// An error names some of many invitations.
func TestErrorsNameSomeInvitations(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	for range maxNamed + 2 {
		o.made(t, "many", 1)
	}
	for _, which := range []string{"many", "none"} {
		_, err := o.Revoke(which)
		if err == nil || strings.Count(err.Error(), "(many)") != maxNamed ||
			!strings.Contains(err.Error(), " and 2 more") {
			t.Errorf("%s: %v", which, err)
		}
	}
	if all, err := o.RevokeAll(); err != nil || len(all) != maxNamed+2 || len(o.Invites()) != 0 {
		t.Errorf("%d are revoked, %v", len(all), err)
	}
	if all, err := o.RevokeAll(); err != nil || len(all) != 0 {
		t.Errorf("again: %d are revoked, %v", len(all), err)
	}
}

// The names of invitations are one line that is not too long.
func TestNamesOfInvitations(t *testing.T) {
	t.Parallel()
	long, words := strings.Repeat("é", maxInviteName), strings.Repeat("n ", maxInviteName)
	for name, want := range map[string]string{
		"":                       "",
		"lab 3":                  "lab 3",
		" two\n\tlines \x1b[2J ": "two lines [2J",
		"caf\xe9":                "caf?",
		long:                     long[:maxInviteName],
		words:                    words[:maxInviteName-1],
	} {
		o := open(t, "", "")
		o.made(t, name, 1)
		got := o.AllInvites()[0].Name
		if got != want || inviteName(got) != got {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// ledger is a plain table of the invitations that should be: for each its end, the uses left, who
// came by it, and whether it was revoked.
type ledger struct {
	o       *office
	secrets [][]byte
	rows    []ledgerRow
	banned  map[grid.SiteID]bool
	members map[grid.SiteID]bool
}

type ledgerRow struct {
	ends    time.Time
	left    int
	uses    int
	by      []grid.SiteID
	revoked bool
}

func (l *ledger) open(n int) bool {
	row := l.rows[n]
	return row.left > 0 && !row.revoked && l.o.now.Before(row.ends)
}

func (l *ledger) issue(t *rapid.T) {
	span := time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute
	uses := rapid.IntRange(1, 3).Draw(t, "uses")
	secret, _, err := l.o.Invite(Terms{Span: span, Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	l.secrets = append(l.secrets, secret)
	l.rows = append(l.rows, ledgerRow{ends: l.o.now.Add(span), left: uses, uses: uses})
}

func (l *ledger) redeem(t *rapid.T) {
	n, site := l.draw(t), drawGuest(t)
	row := &l.rows[n]
	want := protocol.JoinAdmitted
	switch {
	case l.banned[site]:
		want = protocol.JoinBanned
	case l.members[site] && slices.Contains(row.by, site):
	case row.revoked:
		want = protocol.JoinRevoked
	case row.left == 0:
		want = protocol.JoinUsed
	case !l.open(n):
		want = protocol.JoinExpired
	default:
		row.left--
		row.by = append(row.by, site)
		l.members[site] = true
	}
	if got := l.o.redeem(site, l.secrets[n]); got != want {
		t.Fatalf("%s with invitation %d hears: %s, want: %s", site, n, got, want)
	}
}

func (l *ledger) revoke(t *rapid.T) {
	n := l.draw(t)
	_, err := l.o.Revoke(hashOf(l.secrets[n])[:idChars])
	if open := l.open(n); (err == nil) != open {
		t.Fatalf("revoking invitation %d, open: %t: %v", n, open, err)
	}
	l.rows[n].revoked = l.rows[n].revoked || err == nil
}

func (l *ledger) ban(t *rapid.T) {
	site := drawGuest(t)
	revoked, err := l.o.RevokeOf(site)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.o.Ban(site, "", ""); err != nil {
		t.Fatal(err)
	}
	l.banned[site], l.members[site] = true, false
	for n := range l.rows {
		if row := &l.rows[n]; l.open(n) && slices.Contains(row.by, site) {
			row.revoked = true
			if id := hashOf(l.secrets[n])[:idChars]; len(revoked) == 0 || revoked[0].ID != id {
				t.Fatalf("banning %s revokes %v, want %s next", site, revoked, id)
			}
			revoked = revoked[1:]
		}
	}
	if len(revoked) > 0 {
		t.Fatalf("banning %s revokes %v, too", site, revoked)
	}
}

func (l *ledger) draw(t *rapid.T) int { return rapid.IntRange(0, len(l.rows)-1).Draw(t, "which") }

func drawGuest(t *rapid.T) grid.SiteID {
	return grid.SiteID(fmt.Sprint("guest", rapid.IntRange(0, 4).Draw(t, "guest")))
}

// restart gives the invitations the form on disk, and reads them again.
func (l *ledger) restart(t *rapid.T) {
	text, err := json.Marshal(invitesText{Version: fileVersion, Invites: l.o.invites})
	if err == nil {
		l.o.invites, err = decodeInvites(text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (l *ledger) check(t *rapid.T) {
	open := 0
	all := l.o.AllInvites()
	if len(all) != len(l.rows) {
		t.Fatalf("%d invitations are listed, want %d", len(all), len(l.rows))
	}
	for n, row := range l.rows {
		left := row.left
		if row.revoked {
			left = 0
		}
		i := all[n]
		if i.Left != left || i.Uses != row.uses || !slices.Equal(i.By, row.by) ||
			(i.Refusal == protocol.JoinAdmitted) != l.open(n) ||
			(i.Refusal == protocol.JoinRevoked) != row.revoked {
			t.Fatalf("invitation %d is %+v, want %+v", n, i, row)
		}
		if l.open(n) {
			open++
		}
	}
	if len(l.o.Invites()) != open {
		t.Fatalf("%d are open, want %d", len(l.o.Invites()), open)
	}
	if open > 0 && !l.o.Inviting() {
		t.Fatal("an invitation is open, and strangers are turned away")
	}
}

// Whatever happens to invitations, they are what a plain table of them says.
func TestInvitationsAreAsTheLedgerSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := &ledger{
			o: open(t, "", ""), banned: map[grid.SiteID]bool{}, members: map[grid.SiteID]bool{},
		}
		l.issue(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				if len(l.rows) < maxInvites {
					l.issue(t)
				}
			},
			"redeem": l.redeem, "redeem again": l.redeem, "revoke": l.revoke, "ban": l.ban,
			"admit": func(t *rapid.T) {
				site := drawGuest(t)
				if _, err := l.o.Admit(site, "", ""); err != nil {
					t.Fatal(err)
				}
				l.banned[site], l.members[site] = false, true
			},
			"all": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") > 0 {
					return
				}
				if _, err := l.o.RevokeAll(); err != nil {
					t.Fatal(err)
				}
				for n := range l.rows {
					l.rows[n].revoked = l.rows[n].revoked || l.open(n)
				}
			},
			"wait": func(t *rapid.T) {
				minutes := rapid.IntRange(1, 30).Draw(t, "minutes")
				l.o.now = l.o.now.Add(time.Duration(minutes) * time.Minute)
			},
			"restart": l.restart,
			"":        l.check,
		})
	})
}

// Sites that join while the invitation is revoked are members or are told so; once it is revoked
// nobody is admitted any more.
func TestRevokingWhileManyJoin(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	secret, _ := o.made(t, "", MaxUses)
	var revoked atomic.Bool
	var admitted atomic.Int64
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i, done := 0, false; !done; i++ {
				for i > MaxUses/5 && !revoked.Load() { // it is not to be used up
					runtime.Gosched()
				}
				done = revoked.Load() // then this one is the last
				switch got := o.redeem(grid.SiteID(fmt.Sprintf("site%d-%d", n, i)), secret); {
				case got == protocol.JoinAdmitted && !done:
					admitted.Add(1)
				case got != protocol.JoinRevoked:
					t.Errorf("after the end: %t, a site hears: %s", done, got)
				}
			}
		})
	}
	for admitted.Load() < 8 {
		runtime.Gosched()
	}
	if _, err := o.RevokeAll(); err != nil {
		t.Error(err)
	}
	revoked.Store(true)
	group.Wait()
	all := o.AllInvites()
	if len(all) != 1 || int64(len(all[0].By)) != admitted.Load() || all[0].Uses != MaxUses {
		t.Errorf("%d are admitted; listed is %+v", admitted.Load(), all)
	}
}
