package wire

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
