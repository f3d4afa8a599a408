package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stateDirs are the directories that an agent keeps in its state directory.
func stateDirs() []string {
	return []string{
		"attempts", "data", "deaths", "etc", "journal", "modules", "spare", "tasks", "warm", "wasm",
	}
}

// stateFiles are the files that it keeps there. A name that is followed by a dot and more is that
// of an earlier part, a damaged file, or one that was being written.
func stateFiles() []string {
	return []string{
		"api.token", "ballast", "deputy.json", "facts.db", "facts.log", "given.json",
		"history.db", "history.log", "hostinfo.json", "identity.key", "invites.json",
		"links.json", "local.json", "peers.json", "place",
		"roster.json", "runs.jsonl", "superseded", recordFile,
	}
}

// isState reports whether a name in the state directory is one of the agent's.
func isState(name string) bool {
	return slices.Contains(stateDirs(), name) ||
		slices.ContainsFunc(stateFiles(), func(file string) bool {
			return name == file || strings.HasPrefix(name, file+".")
		})
}

// Removal lists what goes when a site has left.
type Removal struct {
	State   string   // the state directory; empty: it is not there, or not the agent's
	inState []string // what the agent keeps there
	Files   []string // the configuration and the unit, where they were made for the site
	dirs    []string // to be removed where they are empty, the innermost first
	Kept    []string // what stays, with the reason, for people
}

// errNotOurs refuses a state directory.
var errNotOurs = errors.New("it was there before the agent; remove what you do not want by hand")

// Plan says what is to be removed of a site with this state directory. usual is the state directory
// that a site has whose owner did not choose one. Nothing is removed yet.
func (s Site) Plan(state, usual string, r Record) (Removal, error) {
	p := Removal{Files: s.made(r), dirs: slices.Clone(r.Dirs)}
	if exists(s.Config) != "" && !r.Made(s.Config) {
		p.Kept = append(p.Kept, s.Config+": it was there before")
	}
	ours := r.Made(state) || state == usual || s.Config == systemConfig && state == systemState
	there, err := isOurs(state, ours)
	if err != nil {
		return p, err
	}
	if there {
		p.State = state
		if p.inState, err = stateIn(state, &p.Kept); err != nil {
			return p, err
		}
		if state == usual {
			p.dirs = once(p.dirs, state)
		}
	}
	slices.SortFunc(p.dirs, func(a, b string) int { return len(b) - len(a) })
	return p, nil
}

// made are the files of a record that are there. It names a configuration and a unit; anything else
// is none of ours.
func (s Site) made(r Record) (files []string) {
	for _, file := range r.Files {
		if (file == s.Config || filepath.Base(file) == unitName) && isFile(file) {
			files = append(files, file)
		}
	}
	return files
}

// isOurs reports whether a state directory is there. One that is not the agent's is an error, and
// so is a link.
func isOurs(state string, ours bool) (there bool, err error) {
	info, err := os.Lstat(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at the state directory: %w", err)
	case !info.IsDir():
		return false, fmt.Errorf("the state directory %s is none itself: %w", state, errNotOurs)
	case !ours:
		return false, fmt.Errorf("the state directory %s: %w", state, errNotOurs)
	default:
		return true, nil
	}
}

// stateIn are the names in a state directory that are the agent's; of others it adds to kept that
// they stay.
func stateIn(state string, kept *[]string) (names []string, err error) {
	entries, err := os.ReadDir(state)
	if err != nil {
		return nil, fmt.Errorf("look at the state directory: %w", err)
	}
	for _, e := range entries {
		if isState(e.Name()) {
			names = append(names, e.Name())
			continue
		}
		*kept = append(*kept, filepath.Join(state, e.Name())+": the agent did not make it")
	}
	return names, nil
}

// Remove removes what Plan found, and returns the directories of it that stay because something
// else is in them. Links are removed and not followed.
func (p Removal) Remove() (stay []string, err error) {
	var errs []error
	for _, file := range p.Files {
		errs = append(errs, gone(os.Remove(file)))
	}
	if p.State != "" {
		errs = append(errs, p.removeState())
	}
	for _, dir := range p.dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			stay = append(stay, dir) // something else is in it
		}
	}
	return stay, errors.Join(errs...)
}

// removeState removes what the agent keeps in its state directory, which is not followed to another
// place meanwhile.
func (p Removal) removeState() error {
	root, err := os.OpenRoot(p.State)
	if err != nil {
		return fmt.Errorf("remove the state: %w", err)
	}
	defer root.Close()
	var errs []error
	for _, name := range p.inState {
		if err := root.RemoveAll(name); err != nil {
			errs = append(errs, fmt.Errorf("remove the state: %w", err))
		}
	}
	return errors.Join(errs...)
}

// isFile reports whether a path is a file itself, and no link.
func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// gone is nil for a file that is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
