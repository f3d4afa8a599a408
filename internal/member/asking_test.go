package member

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func (o *office) asking(t *testing.T, uses int) []byte {
	t.Helper()
	secret, made, err := o.Invite(Terms{Name: "posted", Span: time.Hour, Uses: uses, Ask: true})
	if err != nil || !made.Ask {
		t.Fatalf("%+v, %v", made, err)
	}
	return secret
}

// waits lists who waits, in words.
func (o *office) waits() string {
	text := ""
	for _, p := range o.Waiting() {
		text += fmt.Sprintf("%s as %s with %s; ", p.Site, p.Name, p.Invite.Name)
	}
	return text
}

// Nobody is admitted by the token alone; asked again and again a site waits once, and over a
// restart; it hears next how the owner decided.
func TestWhoComesWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := open(t, dir, "")
	secret := o.asking(t, 2)
	for range 2 {
		for _, site := range []grid.SiteID{"ann", "ben", "cleo"} {
			if got := o.redeem(site, secret); got != protocol.JoinPending {
				t.Fatalf("%s: %v", site, got)
			}
		}
	}
	o = open(t, dir, o.Key())
	want := "ann as n with posted; ben as n with posted; cleo as n with posted; "
	if o.waits() != want {
		t.Fatalf("%s, want %s", o.waits(), want)
	}
	if o.Standing("ann") != Unknown {
		t.Errorf("who waits is %d", o.Standing("ann"))
	}
	if _, err := o.Admit("ann", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Ban("ben", "", ""); err != nil {
		t.Fatal(err)
	}
	i := o.Invites()[0]
	if i.Left != 1 || len(i.By) != 1 || i.By[0] != "ann" || o.waits() != "cleo as n with posted; " {
		t.Errorf("%+v; waits: %s", i, o.waits())
	}
	for site, want := range map[grid.SiteID]protocol.JoinRefusal{
		"ann": protocol.JoinAdmitted, "ben": protocol.JoinBanned, "cleo": protocol.JoinPending,
	} {
		if got := o.redeem(site, secret); got != want {
			t.Errorf("%s hears: %v, want %v", site, got, want)
		}
	}
	if _, err := o.Admit("cleo", "", ""); err != nil {
		t.Fatal(err)
	}
	if got := o.redeem("dora", secret); got != protocol.JoinUsed {
		t.Errorf("with no use left: %v", got)
	}
	if got := o.redeem("cleo", secret); got != protocol.JoinAdmitted {
		t.Errorf("the last one: %v", got)
	}
}

// With an invitation that has ended nobody waits any more; the owner can admit all the same, and
// that costs it nothing.
func TestNobodyWaitsWithAnEndedInvitation(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	secret := o.asking(t, 3)
	o.redeem("ann", secret)
	o.redeem("ben", secret)
	if _, err := o.Revoke("posted"); err != nil {
		t.Fatal(err)
	}
	if o.waits() != "" || o.redeem("ben", secret) != protocol.JoinRevoked {
		t.Errorf("waits: %s", o.waits())
	}
	if _, err := o.Admit("ann", "", ""); err != nil {
		t.Fatal(err)
	}
	if i := o.AllInvites()[0]; o.Standing("ann") != Admitted || i.Left != 0 || len(i.By) != 0 {
		t.Errorf("ann is %d; %+v", o.Standing("ann"), i)
	}
}

// A site with several tokens waits once, and its admission costs one use of one of them.
func TestASiteWaitsOnce(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	one, two := o.asking(t, 2), o.asking(t, 2)
	o.redeem("ann", one)
	o.redeem("ann", two)
	if o.waits() != "ann as n with posted; " {
		t.Errorf("waits: %s", o.waits())
	}
	if _, err := o.Admit("ann", "", ""); err != nil {
		t.Fatal(err)
	}
	if list := o.Invites(); list[0].Left != 1 || list[1].Left != 2 || o.waits() != "" {
		t.Errorf("%+v; waits: %s", list, o.waits())
	}
}

// A posted token lets strangers write down what is bounded; a name is one line.
func TestWhatStrangersWriteDownIsBounded(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	secret := o.asking(t, MaxUses)
	for i := range maxAsked + 1 {
		want := protocol.JoinPending
		if i == maxAsked {
			want = protocol.JoinCrowded
		}
		if got := o.redeem(grid.SiteID(fmt.Sprint("site", i)), secret); got != want {
			t.Fatalf("site %d: %v, want %v", i, got, want)
		}
	}
	if _, err := o.Ban("site7", "", ""); err != nil {
		t.Fatal(err)
	}
	request := protocol.JoinRequest{Secret: secret, Name: "two\nlines\x1b[2J"}
	if got := o.Redeem("late", request).Refusal; got != protocol.JoinPending {
		t.Fatalf("where one was banned: %v", got)
	}
	last := o.Waiting()[maxAsked-1]
	if last.Site != "late" || last.Name != "two lines [2J" {
		t.Errorf("the last one is %q as %q", last.Site, last.Name)
	}
	whole := o.invites[0]
	whole.Asked = append(whole.Asked, asked{Site: "more"})
	if whole.validate() == nil {
		t.Error("a file with more of them is read")
	}
}
