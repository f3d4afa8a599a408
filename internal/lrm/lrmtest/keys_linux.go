package lrmtest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// ownerKey puts a key on the agent's own ring, which is that of this process, and
// returns its name and what removes it.
func ownerKey(t *testing.T) (name string, forget func()) {
	t.Helper()
	name = fmt.Sprintf("mrs-test-%d", os.Getpid())
	id, err := unix.AddKey("user", name, []byte(hostSecret), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		t.Logf("no keys on this kernel, so none to protect: %v", err)
		return name, func() {}
	}
	return name, func() {
		_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
	}
}
