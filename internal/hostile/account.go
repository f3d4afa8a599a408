package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is a user as whom the tests run; nil: the one who runs this program.
type account struct {
	uid, gid uint32
	name     string
	caches   string // of the go command, for the tests that build programs
}

// makeCaches gives the account caches of the go command. It cannot read those of root, and would
// fetch and compile everything anew for each package. They are to be removed.
func (a *account) makeCaches() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "hostile-caches-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // made a line above
	if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
		remove()
		return nil, fmt.Errorf("-as: %w", err)
	}
	a.caches = dir
	return remove, nil
}

// accountOf is the account of a user's name or number; empty: nil.
func accountOf(name string) (*account, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // none is no error
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("-as: root alone can run the tests as another user")
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return nil, fmt.Errorf("-as: this machine has no user of the name or number %q", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("-as: %s has no number: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("-as: %s has no group's number: %w", name, err)
	}
	return &account{uid: uint32(uid), gid: uint32(gid), name: name}, nil
}
