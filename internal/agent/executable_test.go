package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// TestInputsAndOutputsKeepTheXBit lays inputs out for an attempt and stores what one left.
func TestInputsAndOutputsKeepTheXBit(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	script, err := b.data.AddExecutable(t.Context(), strings.NewReader("#!/bin/sh\n"))
	if err != nil {
		t.Fatal(err)
	}
	plain := b.store(t, "plain")
	b.order(step.Stage{
		Attempt: testAttempt, From: b.Self(), Inputs: []grid.Input{
			{Path: "/in/script", CID: script.CID, Bytes: script.Bytes},
			{Path: "/in/plain", CID: plain.CID, Bytes: plain.Bytes},
		},
	})
	if s := await[step.Staged](b); s.Problem != "" {
		t.Fatal(s.Problem)
	}
	dir := b.work.attemptDir(testAttempt)
	for name, want := range map[string]os.FileMode{"in-0": 0o700, "in-1": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("input %s: %v, %v; want mode %o", name, info, err, want)
		}
	}
	made := filepath.Join(t.TempDir(), "made")
	for mode, want := range map[os.FileMode]bool{0o755: true, 0o644: false} {
		if err := os.WriteFile(made, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(made, mode); err != nil {
			t.Fatal(err)
		}
		ref, err := b.addPath(t.Context(), "", made, false)
		if err != nil || ref.Executable != want {
			t.Errorf("an output of mode %o is stored as %+v, %v", mode, ref, err)
		}
	}
	b.discard()
}
