package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

const etcPath = "/etc"

// etcFiles are the files of /etc that every command finds.
func etcFiles() []string { return []string{"passwd", "group", "hosts"} }

// layEtc writes them to a directory, unless they are there as they should be: it may be in
// use.
func layEtc(dir, id string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"passwd": "nobody:x:" + id + ":" + id + ":nobody:" + startDir + ":/bin/sh\n",
		"group":  "nogroup:x:" + id + ":\n",
		"hosts":  "127.0.0.1 localhost\n",
	} {
		file := filepath.Join(dir, name)
		if has, err := os.ReadFile(file); err == nil && string(has) == text {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// shareEtc lays out the one /etc that all attempts see, read-only: for each to have its own
// would cost ten more files. What of the system is mounted in it has its place there, too.
func (h *host) shareEtc(dir string) error {
	if err := layEtc(dir, h.id()); err != nil {
		return fmt.Errorf("lay out /etc of commands: %w", err)
	}
	h.etc = dir
	for _, p := range h.system {
		if path.Dir(p.path) != etcPath {
			continue
		}
		if err := makePlace(filepath.Join(dir, path.Base(p.path)), p.host); err != nil {
			return fmt.Errorf("lay out /etc of commands: %w", err)
		}
	}
	return nil
}

// makePlace makes something empty of the kind of what is mounted over it, unless it is there.
func makePlace(name, host string) error {
	info, err := os.Stat(host)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(name, 0o700)
	} else {
		var f *os.File
		if f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	has, err := os.Lstat(name)
	if err == nil && has.Mode().Type() != info.Mode().Type() {
		err = fmt.Errorf("%s is not of the kind of %s; remove it", name, host)
	}
	return err
}
