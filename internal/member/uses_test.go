package member

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// An invitation is used up with its last use, at that moment, and not before.
func TestTheLastUse(t *testing.T) {
	t.Parallel()
	o := open(t, "", "")
	secret := o.invite(t, time.Hour, 3)
	for i := range 4 {
		o.now = o.now.Add(time.Minute)
		got := o.redeem(grid.SiteID(fmt.Sprint("site", i)), secret)
		want, used := protocol.JoinAdmitted, int64(0)
		if i == 2 {
			used = o.now.UnixMilli()
		}
		if i == 3 {
			want, used = protocol.JoinUsed, o.now.Add(-time.Minute).UnixMilli()
		}
		at := o.invites[0]
		if got != want || at.UsedMS != used || at.Left != max(2-i, 0) || len(at.By) != min(i+1, 3) {
			t.Errorf("use %d: %v, %+v", i, got, at)
		}
	}
}

// Of too many the first that is closed goes, also where it is the oldest of all.
func TestTheOldestInvitationGoes(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_900_000_000_000)
	list := []invite{{ExpiresMS: now.Add(time.Hour).UnixMilli()}}
	for range maxInvitKept {
		list = append(list, invite{ExpiresMS: now.Add(time.Hour).UnixMilli(), Left: 1})
	}
	if got := pruned(list, now); len(got) != maxInvitKept || got[0].Left != 1 {
		t.Errorf("%d are kept, the first one has %d uses", len(got), got[0].Left)
	}
}

// A token of another version is refused with what to do; files that are no JSON are no lists;
// and a key that cannot be kept is none.
func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := decodeToken([]byte{tokenVersion + 1})
	if err == nil || !strings.Contains(err.Error(), "unknown version 2; update siteagent") {
		t.Errorf("a token of another version: %v", err)
	}
	for name, decode := range map[string]func([]byte) error{
		"roster":  func(b []byte) error { _, err := decodeRoster(b); return err },
		"local":   func(b []byte) error { _, err := decodeLocal(b); return err },
		"invites": func(b []byte) error { _, err := decodeInvites(b); return err },
	} {
		if err := decode([]byte(`{"version":1,`)); err == nil || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%s: %v, want that it is no JSON", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, KeyFile), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, filepath.Join(dir, "none")} {
		key, err := createKey(place, KeyFile)
		if err == nil || key.Public() != "" {
			t.Errorf("in %s: key %q, %v", place, key, err)
		}
	}
}
