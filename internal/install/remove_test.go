package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree are the paths below a directory.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// joined makes what join and a run of the agent make in an account.
func joined(t *testing.T, home string, s Site) (state string, r Record) {
	t.Helper()
	state = filepath.Join(home, ".local/state/mrs")
	r, err := Load(state)
	if err != nil {
		t.Fatal(err)
	}
	r.NoteMissing(state, filepath.Dir(s.Config), s.UnitDir())
	write(t, filepath.Join(state, "identity.key"), "secret")
	write(t, s.Config, "name: attic\n")
	write(t, s.ownUnit(), "unit")
	r.AddFile(s.Config)
	r.AddFile(s.ownUnit())
	for _, name := range stateFiles() {
		write(t, filepath.Join(state, name+".1"), "")
	}
	for _, name := range stateDirs() {
		write(t, filepath.Join(state, name, "anything"), "")
	}
	write(t, filepath.Join(state, "data/blocks/00/block"), "a result")
	if err = r.Save(state); err != nil {
		t.Fatal(err)
	}
	if r, err = Load(state); err != nil {
		t.Fatal(err)
	}
	return state, r
}

// removed plans, removes, and returns what is said to stay.
func removed(t *testing.T, s Site, state, usual string, r Record) []string {
	t.Helper()
	p, err := s.Plan(state, usual, r)
	if err != nil {
		t.Fatal(err)
	}
	stay, err := p.Remove()
	if err != nil {
		t.Fatal(err)
	}
	return append(p.Kept, stay...)
}

// TestNothingIsLeft compares an account before and after.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	home, s := account(t)
	write(t, filepath.Join(home, ".config/other/settings"), "of another program")
	before := tree(t, home)
	state, r := joined(t, home, s)
	if kept := removed(t, s, state, state, r); len(kept) != 0 {
		t.Errorf("kept %q", kept)
	}
	if after := tree(t, home); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
	if kept := removed(t, s, state, state, r); len(kept) != 0 { // a second time there is nothing
		t.Errorf("kept %q", kept)
	}
}

// TestWhatIsNotTheAgentsStays puts a person's files where the agent's are.
func TestWhatIsNotTheAgentsStays(t *testing.T) {
	t.Parallel()
	home, s := account(t)
	state, r := joined(t, home, s)
	outside := filepath.Join(home, "photos/one.jpg")
	write(t, outside, "a photo")
	mine := []string{
		filepath.Join(state, "identity.key-copy"), filepath.Join(state, "data.tar"),
		filepath.Join(state, "domain.key"),
		filepath.Join(home, ".config/mrs/submit.yaml"), filepath.Join(s.UnitDir(), "other.service"),
	}
	for _, file := range mine {
		write(t, file, "a person's")
	}
	for _, link := range []string{"runs.jsonl", "data/blocks/01"} { // not to be followed
		if err := os.Symlink(filepath.Dir(outside), filepath.Join(state, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.AddFile(outside) // a record that somebody has changed
	r.Dirs = append(r.Dirs, filepath.Dir(outside), "/")
	kept := strings.Join(removed(t, s, state, state, r), "\n")
	for _, file := range append(mine, outside) {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("it is gone: %v", err)
		}
		if file != outside && !strings.Contains(kept, filepath.Dir(file)) {
			t.Errorf("%s stays and is not named in\n%s", file, kept)
		}
	}
	for _, gone := range []string{s.Config, s.ownUnit(), filepath.Join(state, "data")} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s stays: %v", gone, err)
		}
	}
}

// TestDirectoriesOfOthersAreRefused is about a state directory that the owner chose.
func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	home, s := account(t)
	usual := filepath.Join(home, ".local/state/mrs")
	write(t, filepath.Join(home, "data/thesis.tex"), "years of work")
	link := filepath.Join(home, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{
		home, "/", link, filepath.Join(home, "data/thesis.tex"), systemState,
	} {
		if _, err := os.Lstat(state); err != nil {
			continue // this machine has no site of its own
		}
		p, err := s.Plan(state, usual, Record{})
		if !errors.Is(err, errNotOurs) || p.State != "" {
			t.Errorf("%s: %v", state, err)
		}
	}
	// One that join made is the agent's, wherever it is.
	chosen := filepath.Join(home, "data/mrs")
	var r Record
	r.NoteMissing(chosen)
	write(t, filepath.Join(chosen, "identity.key"), "")
	if kept := removed(t, s, chosen, usual, r); len(kept) != 0 {
		t.Errorf("kept %q", kept)
	}
	if _, err := os.Stat(filepath.Join(home, "data/thesis.tex")); err != nil {
		t.Error(err)
	}
}

// TestConfigurationsOfOthersStay is about one that was there before join.
func TestConfigurationsOfOthersStay(t *testing.T) {
	t.Parallel()
	home, s := account(t)
	write(t, s.Config, "name: attic\n")
	usual := filepath.Join(home, ".local/state/mrs")
	kept := removed(t, s, usual, usual, Record{})
	if _, err := os.Stat(s.Config); err != nil || len(kept) != 1 {
		t.Errorf("%v, kept %q", err, kept)
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	long := `{"version":1,"files":["` + strings.Repeat(`a","`, maxEntries+1) + `a"]}`
	for name, text := range map[string]string{
		"nonsense": "{", "another version": `{"version":2}`, "many": long,
		"large": strings.Repeat(" ", maxRecord+1),
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, recordFile), text)
		if r, err := Load(dir); err == nil || !strings.Contains(err.Error(), recordFile) ||
			len(r.Files) != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestWhatJoiningChangedIsRememberedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := Record{Version: recordVersion}
	r.Remember("domain", "home", true)
	r.Remember("domain", "lab", true) // a second join
	r.Remember("peers", "", false)
	if err := r.Save(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Load(dir)
	if err != nil || *again.Before["domain"] != "home" || again.Before["peers"] != nil ||
		len(again.Before) != 2 {
		t.Errorf("%+v, %v", again.Before, err)
	}
}
