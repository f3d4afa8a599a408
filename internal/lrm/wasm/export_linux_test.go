package wasm

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// BehindWall encloses this process and tries to get out. It returns the tries
// that went wrong.
func BehindWall(dir, address string) error {
	in, work := filepath.Join(dir, "in"), filepath.Join(dir, "work")
	cache := filepath.Join(dir, "cache")
	for _, d := range []string{work, cache} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(in, []byte("input"), 0o600); err != nil {
		return err
	}
	j := job{WorkDir: work, CacheDir: cache}
	j.Inputs = append(j.Inputs, bindOf("/in", in))
	if err := enclose(j); err != nil {
		return err
	}
	return errors.Join(
		denied("read the host", func() error { _, err := os.ReadFile("/etc/passwd"); return err }),
		denied("list the host", func() error { _, err := os.ReadDir("/"); return err }),
		denied("change an input", func() error { return os.WriteFile(in, nil, 0o600) }),
		denied("write beside", func() error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) }),
		denied("connect", func() error { _, err := net.Dial("tcp", address); return err }),
		allowed("read an input", func() error { _, err := os.ReadFile(in); return err }),
		allowed("write", func() error { return os.WriteFile(filepath.Join(work, "x"), nil, 0o600) }),
	)
}

func denied(what string, try func() error) error {
	err := try()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EACCES) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%s: allowed, want a refusal", what)
	}
	return fmt.Errorf("%s: want a refusal: %w", what, err)
}

func allowed(what string, try func() error) error {
	if err := try(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
