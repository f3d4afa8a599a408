package member

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func drawToken(t *rapid.T) Token {
	token := Token{
		Domain:  "lab",
		Inviter: grid.SiteID(rapid.StringMatching(`12D3KooW[1-9A-Za-z]{44}`).Draw(t, "inviter")),
		Addrs: rapid.SliceOfN(
			rapid.StringMatching(`/ip4/[0-9.]{7,15}/tcp/[0-9]{1,5}`), 1, maxTokenAddrs,
		).Draw(t, "addrs"),
		Expires: time.Unix(rapid.Int64Range(1, 1<<38).Draw(t, "expires"), 0).UTC(),
	}
	if rapid.Bool().Draw(t, "key") {
		token.Key = testKey(rapid.Byte().Draw(t, "key")).Public()
		secrets := rapid.SliceOfN(rapid.Byte(), protocol.SecretBytes, protocol.SecretBytes)
		token.Secret = secrets.Draw(t, "secret")
	}
	return token
}

// A token comes back as it was, also when a mail program has broken the line;
// one with a character changed, missing or added does not.
func TestTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := drawToken(t)
		text, err := token.Text()
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(len(tokenPrefix), len(text)-1).Draw(t, "at")
		back, err := ParseToken(" " + text[:at] + "\r\n " + text[at:] + "\n")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(token, back); diff != "" {
			t.Fatalf("token (-want +got):\n%s", diff)
		}
		other := byte('A')
		if text[at] == other {
			other = 'B'
		}
		for name, damaged := range map[string]string{
			"changed": text[:at] + string(other) + text[at+1:], "shorter": text[:at] + text[at+1:],
			"longer": text[:at] + "A" + text[at:], "cut": text[:at],
		} {
			if got, err := ParseToken(damaged); !errors.Is(err, errToken) {
				t.Fatalf("%s: %+v, %v; want ErrToken", name, got, err)
			}
		}
	})
}

func TestTokensThatCannotBe(t *testing.T) {
	good := Token{
		Domain: "lab", Inviter: "12D3KooWa", Addrs: []string{"/ip4/10.0.0.1/tcp/1"},
		Expires: time.Unix(1, 0),
		Key:     testKey('k').Public(), Secret: make([]byte, protocol.SecretBytes),
	}
	for name, change := range map[string]func(*Token){
		"no address":     func(t *Token) { t.Addrs = nil },
		"many addresses": func(t *Token) { t.Addrs = strings.Split(strings.Repeat("/a ", 9), " ") },
		"no multiaddr":   func(t *Token) { t.Addrs = []string{"10.0.0.1:4801"} },
		"short secret":   func(t *Token) { t.Secret = t.Secret[1:] },
		"no key":         func(t *Token) { t.Key = "" },
		"no domain":      func(t *Token) { t.Domain = "" },
		"no inviter":     func(t *Token) { t.Inviter = "" },
		"no expiry":      func(t *Token) { t.Expires = time.Time{} },
	} {
		bad := good
		change(&bad)
		if _, err := bad.Text(); !errors.Is(err, errToken) {
			t.Errorf("%s: %v, want ErrToken", name, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	token := Token{
		Domain: "lab", Inviter: "12D3KooWa", Addrs: []string{"/ip4/10.0.0.1/tcp/1"},
		Expires: time.Unix(1<<31, 0),
		Key:     testKey('k').Public(), Secret: make([]byte, protocol.SecretBytes),
	}
	text, err := token.Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte{1, 0})
	f.Add("mrs1.AAAA", []byte{
		1, 3, 'l', 'a', 'b', 0, 1, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, '/', 'a',
	})
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		if got, err := ParseToken(text); err == nil {
			again, err := got.Text()
			if err != nil || strings.Join(strings.Fields(text), "") != again {
				t.Fatalf("%q reads as %+v and is written as %q, %v", text, got, again, err)
			}
		}
		if got, err := decodeToken(raw); err == nil && got.Validate() == nil { // behind the checksum
			if _, err := got.Text(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
