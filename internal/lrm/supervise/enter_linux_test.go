package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The thread that starts a program goes into the groups from which it can come back, and does so;
// the others the program joins when it is there.
func TestAProgramBeginsInItsGroups(t *testing.T) {
	t.Parallel()
	if err := CanTrace(); err != nil {
		t.Skip("this kernel, or a container, lets no process trace its child:", err)
	}
	for name, c := range map[string]struct {
		files []string // that are there
		moves bool
	}{
		"there and back":  {[]string{"tasks", "group/tasks", "group/cgroup.procs"}, true},
		"no way back":     {[]string{"group/tasks", "group/cgroup.procs"}, false},
		"of no version 1": {[]string{"group/cgroup.procs"}, false},
	} {
		spec := program(t, "exit 9")
		spec.Enclosure = &Enclosure{Program: "/bin/sh", Args: []string{"-c", "exit 4"}}
		root := t.TempDir()
		at := func(file string) string { return filepath.Join(root, file) }
		if err := os.Mkdir(at("group"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range c.files {
			if err := os.WriteFile(at(file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		spec.Enclosure.Join = []string{at("group/cgroup.procs")}
		r, err := startRunner(spec, nil, onDisk)
		if err != nil {
			t.Fatal(name, err)
		}
		if end := <-r.ended; end.code != 4 {
			t.Errorf("%s: %+v", name, end)
		}
		want := map[string]string{"group/cgroup.procs": strconv.Itoa(r.pid()), "group/tasks": ""}
		if c.moves {
			want = map[string]string{"group/cgroup.procs": "", "group/tasks": "0", "tasks": "0"}
		}
		for file, text := range want {
			got, err := os.ReadFile(at(file))
			if string(got) != text && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s has %q, want %q", name, file, got, text)
			}
		}
	}
}

// A thread that cannot leave its groups says so: the program is not started then.
func TestALeaveThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	door, err := os.Open(t.TempDir()) // which nobody can write to
	if err != nil {
		t.Fatal(err)
	}
	way := &entry{back: []*os.File{door}}
	if err := way.leave(); err == nil {
		t.Error("it is said to have left")
	}
	if err := door.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its door stays open: %v", err)
	}
}

// A directory that is no group bears nobody.
func TestWhatIsNoGroupBearsNobody(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if Bears(t.Context(), dir) {
			t.Errorf("%s bears processes", dir)
		}
	}
}
