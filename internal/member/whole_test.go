package member

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// told is all that a registry says.
type told struct {
	Key       grid.DomainKey
	Holds     bool
	Records   []protocol.MemberRecord
	Digest    protocol.Digest
	Entries   []Entry
	Invites   []Invite
	All       []Invite // invitations, closed ones included
	Inviting  bool
	Standings map[grid.SiteID]Standing
	Problems  []string
}

func tell(o *office) told {
	all := told{
		Key: o.Key(), Holds: o.Holds(), Records: o.Roster().Records(), Digest: o.Roster().Digest(),
		Entries: o.Entries(), Invites: o.Invites(), Inviting: o.Inviting(), Problems: o.Problems(),
		All:       o.AllInvites(),
		Standings: map[grid.SiteID]Standing{},
	}
	for _, site := range []grid.SiteID{"self", "a", "b", "c", "d"} {
		all.Standings[site] = o.Standing(site)
	}
	return all
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// All that was decided is there after a restart, at the site that holds the key and at another,
// whose owner's word comes before the roster's; and everything can be asked for in between.
func TestAllIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_900_000_000_000)
	dir := t.TempDir()
	o := open(t, dir, "")
	secret := o.invite(t, time.Hour, 3)
	tell(o)
	o.now = at.Add(time.Minute)
	o.redeem("a", secret)
	o.now = at.Add(2 * time.Minute)
	if _, err := o.Admit("b", "bob", "by hand"); err != nil {
		t.Fatal(err)
	}
	o.now = at.Add(3 * time.Minute)
	if _, err := o.Ban("c", "", "noisy"); err != nil {
		t.Fatal(err)
	}
	id := hashOf(secret)[:idChars]
	invited := Invite{
		ID: id, Created: at, Expires: at.Add(time.Hour), Left: 2, Uses: 3,
		By: []grid.SiteID{"a"},
	}
	want := told{
		Key: o.key.Public(), Holds: true, Inviting: true,
		Records: o.roster.Records(), Digest: o.roster.sum(),
		Entries: []Entry{
			{Site: "a", Standing: Admitted, Name: "n", Note: "invitation " + id, Since: at.Add(time.Minute)},
			{Site: "b", Standing: Admitted, Name: "bob", Note: "by hand", Since: at.Add(2 * time.Minute)},
			{Site: "c", Standing: BannedHere, Note: "noisy", Since: at.Add(3 * time.Minute)},
			{Site: "self", Standing: Admitted, Name: "me", Since: at},
		},
		Invites: []Invite{invited}, All: []Invite{invited},
		Standings: map[grid.SiteID]Standing{
			"self": Admitted, "a": Admitted, "b": Admitted, "c": BannedHere, "d": Unknown,
		},
	}
	same(t, "before", want, tell(o))
	if len(want.Records) != 4 || want.Digest == (protocol.Digest{}) {
		t.Errorf("the roster has %d records, digest %x", len(want.Records), want.Digest)
	}
	again := open(t, dir, "")
	again.now = o.now
	same(t, "after a restart", want, tell(again))

	theirs := t.TempDir()
	other := open(t, theirs, o.Key())
	fresh, err := other.Merge(want.Records)
	same(t, "what is new", want.Records, fresh)
	if err != nil {
		t.Fatal(err)
	}
	tell(other)
	for site, ban := range map[grid.SiteID]bool{"a": true, "c": false, "d": false} {
		decide := map[bool]func(grid.SiteID, string, string) (*protocol.MemberRecord, error){
			true: other.Ban, false: other.Admit,
		}[ban]
		if record, err := decide(site, "", "mine"); record != nil || err != nil {
			t.Errorf("%s: %+v, %v", site, record, err)
		}
	}
	want.Holds, want.Inviting, want.Invites, want.All = false, false, nil, nil
	want.Entries = []Entry{
		{Site: "a", Standing: BannedHere, Name: "n", Note: "mine", Since: at},
		want.Entries[1],
		{Site: "c", Standing: AdmittedHere, Note: "mine", Since: at},
		{Site: "d", Standing: AdmittedHere, Note: "mine", Since: at},
		want.Entries[3],
	}
	want.Standings = map[grid.SiteID]Standing{
		"self": Admitted, "a": BannedHere, "b": Admitted, "c": AdmittedHere, "d": AdmittedHere,
	}
	same(t, "another site", want, tell(other))
	other = open(t, theirs, o.Key())
	same(t, "another site after a restart", want, tell(other))
	if err := os.Remove(filepath.Join(theirs, localFile)); err != nil {
		t.Fatal(err)
	}
	if got := open(t, theirs, o.Key()).Standing("c"); got != Banned {
		t.Errorf("without the owner's word the banned one is %d", got)
	}
	if fresh, err := other.Merge(want.Records); fresh != nil || err != nil {
		t.Errorf("nothing new: %v, %v", fresh, err)
	}
}

// Where something cannot be written the order fails by the name of the file, nothing is taken
// over, and it can be given again when the file can be written.
func TestWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	key := testKey('k')
	record := signed(key, "c", protocol.MemberAdmit, 5)
	secret := make([]byte, protocol.SecretBytes)
	for name, c := range map[string]struct {
		file   string
		holder bool
		order  func(*office) error
	}{
		"records": {rosterFile, false, func(o *office) error {
			fresh, err := o.Merge([]protocol.MemberRecord{record})
			if err != nil && fresh != nil {
				t.Errorf("%v is new", fresh)
			}
			return err
		}},
		"an admission here": {localFile, false, func(o *office) error {
			_, err := o.Admit("a", "", "")
			return err
		}},
		"a ban": {localFile, true, func(o *office) error {
			_, err := o.Ban("a", "", "")
			return err
		}},
		"an admission": {rosterFile, true, func(o *office) error {
			_, err := o.Admit("a", "", "")
			return err
		}},
		"an invitation": {invitesFile, true, func(o *office) error {
			made, _, err := o.Invite(Terms{Span: time.Hour, Uses: 1})
			if (err == nil) != (made != nil) {
				t.Errorf("a secret of %d bytes, %v", len(made), err)
			}
			return err
		}},
		"a revocation": {invitesFile, true, func(o *office) error {
			revoked, err := o.RevokeAll()
			if (err == nil) != (len(revoked) > 0) {
				t.Errorf("revoked are %v, %v", revoked, err)
			}
			return err
		}},
		"a use": {invitesFile, true, func(o *office) error {
			if answer := o.Redeem("a", protocol.JoinRequest{Secret: secret}); answer.Admit == nil {
				if answer.Refusal != protocol.JoinBroken {
					t.Errorf("refused as %s", answer.Refusal)
				}
				return errors.New(answer.Text)
			}
			return nil
		}},
	} {
		dir := t.TempDir()
		o := open(t, dir, key.Public())
		if c.holder {
			o = open(t, dir, "")
			o.invite(t, time.Hour, 1)
			invites := append(o.invites, invite{
				Hash: hashOf(secret), Left: 1, ExpiresMS: o.now.Add(time.Hour).UnixMilli(),
			})
			if err := o.keepInvites(invites); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, c.file)
		aside := path + ".aside"
		if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		before := tell(o)
		if err := c.order(o); err == nil || !strings.Contains(err.Error(), "write "+c.file+": ") {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, before, tell(o))
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := c.order(o); err != nil {
			t.Errorf("%s, again: %v", name, err)
		}
		if cmp.Equal(before, tell(o), cmpopts.EquateEmpty()) {
			t.Errorf("%s changes nothing", name)
		}
	}
}

// Who cannot keep the domain's key has none, and whose first roster could not be written is
// admitted with the next invitation.
func TestTheFirstInvitation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	o := open(t, dir, "")
	_, _, err := o.Invite(Terms{Span: time.Hour, Uses: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "invite: make the domain's key: ") || o.Holds() {
		t.Errorf("without a folder: %v, holds a key: %t", err, o.Holds())
	}
	if err = os.MkdirAll(filepath.Join(dir, rosterFile), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = o.Invite(Terms{Span: time.Hour, Uses: 1})
	if err == nil || !strings.HasPrefix(err.Error(), "invite: write roster.json: ") {
		t.Errorf("without a roster: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, rosterFile)); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, "")
	o.invite(t, time.Hour, 1)
	if o.Standing("self") != Admitted || len(o.Roster().Records()) != 1 {
		t.Errorf("who invites is %d in a roster of %d", o.Standing("self"), o.Roster().Len())
	}
	serial := o.Roster().Records()[0].SerialMS
	o.now = o.now.Add(time.Minute)
	o.invite(t, time.Hour, 1)
	if got := o.Roster().Records()[0].SerialMS; got != serial {
		t.Errorf("who invites is admitted again, at %d after %d", got, serial)
	}
}

// The key in the folder counts unless another domain is named, and says nothing then.
func TestWhichKeyCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := open(t, dir, "")
	o.invite(t, time.Hour, 1)
	own, other := o.Key(), testKey('x').Public()
	if o = open(t, dir, own); !o.Holds() || o.Key() != own || len(o.Problems()) != 0 {
		t.Errorf("its own key: holds it %t, %q", o.Holds(), o.Problems())
	}
	if err := os.Remove(filepath.Join(dir, rosterFile)); err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, other)
	same(t, "another key", []string{
		"domain.key is not used: it is the key of another domain (" + string(own) +
			") than domain-key names",
	}, o.Problems())
	if o.Holds() || o.Key() != other {
		t.Errorf("another key: holds it %t, %s", o.Holds(), o.Key())
	}
	_, _, err := o.Invite(Terms{Span: time.Hour, Uses: 1})
	want := "invite: this site does not hold the domain's key; invite from the site that does, " +
		"or remove domain-key to start a domain of your own"
	if !errors.Is(err, ErrNoKey) || err.Error() != want {
		t.Errorf("an invitation: %v", err)
	}
	_, err = Open(Config{Dir: dir, Domain: "lab", Self: "self", Key: "ed25519:short"})
	if err == nil || !strings.HasPrefix(err.Error(), "open roster: domain-key: make roster: ") {
		t.Errorf("a key that is none: %v", err)
	}
	nobody := emptyRoster(t, testKey('a')).Digest()
	if nobody == (protocol.Digest{}) || nobody == emptyRoster(t, testKey('b')).Digest() {
		t.Error("empty rosters of two domains have one digest")
	}
}

// A site that trusts no key leaves a roster alone, and believes nothing of it.
func TestARosterWithoutAKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := open(t, dir, "")
	o.invite(t, time.Hour, 1)
	if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, rosterFile))
	if err != nil {
		t.Fatal(err)
	}
	o = open(t, dir, "")
	if o.Key() != "" || o.Roster().Len() != 0 || o.Roster().Digest() != (protocol.Digest{}) ||
		len(o.Problems()) != 0 {
		t.Errorf("key %q, %d records, %q", o.Key(), o.Roster().Len(), o.Problems())
	}
	left, err := os.ReadFile(filepath.Join(dir, rosterFile))
	if err != nil || !bytes.Equal(left, text) {
		t.Errorf("the roster is changed: %v", err)
	}
}

// A file that cannot be used is moved away, or the owner hears that it cannot be.
func TestWhatTheOwnerHearsOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	write := func() {
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	bad := errors.New("no good")
	spoil := func(text []byte) error { return fmt.Errorf("%s is %w", text, bad) }
	if got := load(dir, "f", func([]byte) error { return nil }); got != "" {
		t.Errorf("a good file: %s", got)
	}
	if got := load("", "f", spoil) + load(dir, "none", spoil); got != "" {
		t.Errorf("no file: %s", got)
	}
	want := file + " was not usable (text is no good): moved to " + file +
		".unusable, and the site continues without it"
	if got := load(dir, "f", spoil); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if kept, err := os.ReadFile(file + ".unusable"); err != nil || string(kept) != "text" {
		t.Errorf("moved away is %q, %v", kept, err)
	}
	write()
	if err := os.Remove(file + ".unusable"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file+".unusable", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	want = file + " is not usable (text is no good) and cannot be moved away: "
	if got := load(dir, "f", spoil); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	want = file + " is damaged (text is no good): it says who is banned, and without it they " +
		"would come back; do this"
	err := need(dir, "f", errBans, "do this", spoil)
	if !errors.Is(err, errBans) || !errors.Is(err, bad) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := errors.Join(
		need("", "f", errBans, "", spoil), need(dir, "none", errBans, "", spoil),
	); err != nil {
		t.Errorf("no file: %v", err)
	}
	if err := save("", "f", make(chan int)); err != nil {
		t.Errorf("saved nowhere: %v", err)
	}
	if err := save(dir, "f", make(chan int)); err == nil ||
		!strings.HasPrefix(err.Error(), "write f: json: ") {
		t.Errorf("what has no form: %v", err)
	}
}

// As many as may be kept can be read again, and not one more.
func TestTheLargestFiles(t *testing.T) {
	t.Parallel()
	wrong := "version 1 with %d %s, want version 1 and at most %d"
	for _, c := range []struct {
		most int
		what string
		text func(n int) any
		read func([]byte) (int, error)
	}{
		{
			maxInvitKept, "invitations",
			func(n int) any {
				return invitesText{fileVersion, repeatedInvite(invite{Hash: hashOf(nil)}, n)}
			},
			func(text []byte) (int, error) { list, err := decodeInvites(text); return len(list), err },
		},
		{
			maxRecords, "records",
			func(n int) any {
				text := rosterText{Version: fileVersion}
				for i := range n {
					text.Records = append(text.Records, recordText{
						Domain: "lab", Site: grid.SiteID(fmt.Sprint("s", i)), Kind: "ban", SerialMS: 1,
						Signature: make([]byte, ed25519.SignatureSize),
					})
				}
				return text
			},
			func(text []byte) (int, error) { list, err := decodeRoster(text); return len(list), err },
		},
		{
			maxRecords, "sites",
			func(n int) any {
				text := localText{Version: fileVersion}
				for i := range n {
					text.Sites = append(text.Sites, decision{Site: grid.SiteID(fmt.Sprint("s", i))})
				}
				return text
			},
			func(text []byte) (int, error) { list, err := decodeLocal(text); return len(list), err },
		},
	} {
		for n, want := range map[int]string{
			c.most: "<nil>", c.most + 1: fmt.Sprintf(wrong, c.most+1, c.what, c.most),
		} {
			text, err := json.Marshal(c.text(n))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.read(text)
			if fmt.Sprint(err) != want || err == nil && got != n {
				t.Errorf("%d %s: %d are read, %v, want %s", n, c.what, got, err, want)
			}
		}
	}
}

func repeatedInvite(one invite, n int) (all []invite) {
	for range n {
		all = append(all, one)
	}
	return all
}

// Bytes behind a good checksum are read as a token or refused with a reason, and so are texts
// that have none.
func TestWhyATokenIsRefused(t *testing.T) {
	t.Parallel()
	key, err := testKey('a').Public().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	field := func(b string) string { return string(rune(len(b))) + b }
	secret := strings.Repeat("s", protocol.SecretBytes)
	raw := func(domain, key, secret, expires string, addrs ...string) string {
		text := "\x01" + field(domain) + field(key) + field("site") + field(secret) + expires
		text += string(rune(len(addrs)))
		for _, a := range addrs {
			text += field(a)
		}
		return text
	}
	const unfit = "key and secret do not fit together"
	const soon, never = "\x00\x00\x00\x00\x00\x00\x00\x09", "\xff\xff\xff\xff\xff\xff\xff\xff"
	nine := strings.Split(strings.Repeat("/a ", maxTokenAddrs+1), " ")[:maxTokenAddrs+1]
	for what, c := range map[string]struct{ raw, want string }{
		"an open one":        {raw("lab", "", "", soon, "/a"), "<nil>"},
		"one with a key":     {raw("lab", string(key), secret, soon, "/a", "/b"), "<nil>"},
		"a late one":         {raw("lab", string(key), secret, never, "/a"), "<nil>"},
		"another version":    {"\x02" + raw("lab", "", "", soon, "/a")[1:], "unknown version 2; update"},
		"one byte more":      {raw("lab", "", "", soon, "/a") + "x", "wrong length"},
		"one byte less":      {strings.TrimSuffix(raw("lab", "", "", soon, "/a"), "a"), "wrong length"},
		"a key of one byte":  {raw("lab", "k", secret, soon, "/a"), "invalid: domain key"},
		"a key and no word":  {raw("lab", string(key), "", soon, "/a"), unfit},
		"a word and no key":  {raw("lab", "", secret, soon, "/a"), unfit},
		"a short word":       {raw("lab", string(key), secret[1:], soon, "/a"), unfit},
		"a word of one byte": {raw("lab", "", "s", soon, "/a"), unfit},
		"no address":         {raw("lab", "", "", soon), "want 1 to 8 addresses, have 0"},
		"nine addresses":     {raw("lab", "", "", soon, nine...), "want 1 to 8 addresses, have 9"},
		"ten addresses":      {raw("lab", "", "", soon, append(nine, "/a")...), "wrong length"},
		"no end":             {raw("lab", "", "", strings.Repeat("\x00", 8), "/a"), "no expiry"},
		"an odd address":     {raw("lab", "", "", soon, "/a", "b"), `address "b"`},
	} {
		body := append([]byte(c.raw), checksum(tokenPrefix, []byte(c.raw))...)
		got, err := ParseToken(tokenPrefix + base64.RawURLEncoding.EncodeToString(body))
		if text := fmt.Sprint(err); err == nil && c.want != "<nil>" ||
			!strings.HasPrefix(strings.TrimPrefix(text, errToken.Error()+": "), c.want) {
			t.Errorf("%s: %+v, %v, want %s", what, got, err, c.want)
		}
	}
	const line = "copy the whole line that siteagent invite printed"
	pad := func(n int) string { return tokenPrefix + strings.Repeat("A", n-len(tokenPrefix)) }
	for text, want := range map[string]string{
		"":                                    `one begins with "mrs1."; ` + line,
		"mrs2.AAAA":                           `one begins with "mrs1."; ` + line,
		"mrs1.":                               "it is damaged; " + line,
		"mrs1.A===":                           "it is damaged; " + line,
		"mrs1.AAAAAA":                         "it is damaged; " + line,
		pad(maxTokenText):                     "it is damaged; " + line,
		pad(maxTokenText + 1):                 `one begins with "mrs1."; ` + line,
		strings.Repeat(" ", 2*maxTokenText):   `one begins with "mrs1."; ` + line,
		strings.Repeat(" ", 2*maxTokenText+1): "too long",
	} {
		if got, err := ParseToken(text); fmt.Sprint(err) != errToken.Error()+": "+want {
			t.Errorf("%.40q of %d: %+v, %v, want %s", text, len(text), got, err, want)
		}
	}
}

// A site that is refused hears why, in full.
func TestWhatARefusedSiteHears(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	used, late := o.invite(t, time.Hour, 1), o.invite(t, time.Minute, 1)
	good := o.invite(t, time.Hour, 2)
	o.redeem("a", used)
	o.now = o.now.Add(time.Minute)
	if _, err := o.Ban("c", "", ""); err != nil {
		t.Fatal(err)
	}
	const again = "ask for a new invitation"
	const lift = "siteagent admit on the inviter's machine lifts the ban"
	for _, c := range []struct {
		site   grid.SiteID
		secret []byte
		want   protocol.JoinAnswer
	}{
		{"b", nil, protocol.JoinAnswer{Refusal: protocol.JoinUnknown, Text: again}},
		{"b", used, protocol.JoinAnswer{Refusal: protocol.JoinUsed, Text: again}},
		{"b", late, protocol.JoinAnswer{Refusal: protocol.JoinExpired, Text: again}},
		{"c", good, protocol.JoinAnswer{Refusal: protocol.JoinBanned, Text: lift}},
		{"c", nil, protocol.JoinAnswer{Refusal: protocol.JoinUnknown, Text: again}},
	} {
		same(t, string(c.site), c.want, o.Redeem(c.site, protocol.JoinRequest{Secret: c.secret}))
	}
	first := o.Redeem("b", protocol.JoinRequest{Secret: good, Name: "bob"})
	record, _ := o.Roster().Get("b")
	same(t, "one that is admitted", protocol.JoinAnswer{Admit: &record}, first)
	if record.Kind != protocol.MemberAdmit || record.Name != "bob" ||
		record.SerialMS != o.now.UnixMilli() ||
		record.Note != "invitation "+hashOf(good)[:idChars] || o.roster.verify(record) != nil {
		t.Errorf("admitted as %+v", record)
	}
	o.now = o.now.Add(time.Second)
	same(t, "and asks again", first, o.Redeem("b", protocol.JoinRequest{Secret: good, Name: "eve"}))
	if got := o.Invites(); len(got) != 1 || got[0].Left != 1 {
		t.Errorf("open are %+v", got)
	}
}
