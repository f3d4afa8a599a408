// Package sdk is for programs that run on the mesh, as WASM modules or as commands: it saves their
// states, so that a task whose site is lost goes on elsewhere. It needs nothing but files, and
// outside of the mesh it saves nothing and is asked for nothing.
//
// docs/submit.md, section Checkpoints, says the same for programs in other languages.
package sdk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// dir is the directory for the state; empty: there is none.
func dir() string { return os.Getenv("MRS_CKPT_DIR") }

// Load returns the state that an earlier attempt of the task has saved, nil if there is none.
func Load() ([]byte, error) {
	if dir() == "" {
		return nil, nil
	}
	state, err := os.ReadFile(filepath.Join(dir(), "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	return state, nil
}

// Wanted reports whether the site wants a new state now. It costs a look at a file: a loop asks
// after each round that takes milliseconds, not after each that takes less.
func Wanted() bool {
	if dir() == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir(), "wanted"))
	return err == nil
}

// Save saves a state in place of the one before. Percent says how much of the work is done, from 1
// to 100, for people; 0 says nothing. Outside of the mesh it does nothing.
func Save(state []byte, percent int) error {
	if dir() == "" {
		return nil
	}
	if percent < 0 || percent > 100 {
		return fmt.Errorf("save state: percent: want 0 to 100, have %d", percent)
	}
	if percent > 0 {
		text := strconv.Itoa(percent) + "\n"
		if err := os.WriteFile(filepath.Join(dir(), "percent"), []byte(text), 0o600); err != nil {
			return fmt.Errorf("save state: %w", err)
		}
	}
	next := filepath.Join(dir(), "next")
	if err := os.WriteFile(next, state, 0o600); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	if err := os.Rename(next, filepath.Join(dir(), "state")); err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	return nil
}
