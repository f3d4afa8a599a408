package wire

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestTheIdentityIsKeptAndKeptSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.key")
	first, err := LoadIdentity(file)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode = %v, %v; want 0600", info.Mode(), err)
	}
	second, err := LoadIdentity(file)
	if err != nil || second.Site() != first.Site() {
		t.Errorf("read again: %s, %v; want %s", second.Site(), err, first.Site())
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(file); !errors.Is(err, errKeyReadable) ||
		!strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("readable by the group: %v, want ErrKeyReadable and the remedy", err)
	}
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(file); err == nil {
		t.Error("a file that is no key is accepted")
	}
}

// A signature is a site's own, of one text, or it is none.
func TestWhoHasSigned(t *testing.T) {
	site, other := newSite(t), newSite(t)
	text := []byte("who may act")
	signature, err := site.Key().Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	keyless := grid.SiteID("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N")
	bad := bytes.Clone(signature)
	bad[0]++
	for name, c := range map[string]struct {
		by              grid.SiteID
		text, signature []byte
		want            bool
	}{
		"its own":        {site.Site(), text, signature, true},
		"another's":      {other.Site(), text, signature, false},
		"another text":   {site.Site(), []byte("who may act now"), signature, false},
		"changed":        {site.Site(), text, bad, false},
		"none":           {site.Site(), text, nil, false},
		"no site":        {"nobody", text, signature, false},
		"a site of none": {"", text, signature, false},
		"without a key":  {keyless, text, signature, false},
	} {
		if got := SignedBy(c.by, c.text, c.signature); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func newSite(t *testing.T) Identity {
	t.Helper()
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}
