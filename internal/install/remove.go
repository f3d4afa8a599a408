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

// stateNames are the files and directories that an agent keeps in its state directory. One that is
// followed by a dot and more is a file's earlier part, a damaged one, or one that was being written.
func stateNames() []string {
	return []string{
		"api.token", "attempts", "ballast", "data", "deaths", "deputy.json", "facts.db", "facts.log",
		"history.db", "history.log", "hostinfo.json", "identity.key", "invites.json", "journal",
		"links.json", "local.json", "modules", "peers.json", "place", "roster.json", "runs.jsonl",
		"superseded", "tasks", "wasm", recordFile,
	}
}

// Removal is what is to be removed of a site that has left.
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
	var p Removal
	for _, file := range r.Files {
		name := filepath.Base(file)
		switch {
		case name != unitName && file != s.Config: // the record names nothing else
		case exists(file) == file && isFile(file):
			p.Files = append(p.Files, file)
		}
	}
	if exists(s.Config) != "" && !r.Made(s.Config) {
		p.Kept = append(p.Kept, s.Config+": it was there before")
	}
	info, err := os.Lstat(state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return p, fmt.Errorf("look at the state directory: %w", err)
	case !info.IsDir():
		return p, fmt.Errorf("the state directory %s is a link or a file: %w", state, errNotOurs)
	case !r.Made(state) && state != usual && (s.Config != systemConfig || state != systemState):
		return p, fmt.Errorf("the state directory %s: %w", state, errNotOurs)
	default:
		if err = p.lookAtState(state); err != nil {
			return p, err
		}
	}
	p.dirs = slices.Clone(r.Dirs)
	if p.State != "" && !slices.Contains(p.dirs, state) && state == usual {
		p.dirs = append(p.dirs, state)
	}
	slices.SortFunc(p.dirs, func(a, b string) int { return len(b) - len(a) })
	return p, nil
}

// lookAtState tells what is the agent's from what is not.
func (p *Removal) lookAtState(state string) error {
	entries, err := os.ReadDir(state)
	if err != nil {
		return fmt.Errorf("look at the state directory: %w", err)
	}
	p.State = state
	for _, e := range entries {
		known := slices.ContainsFunc(stateNames(), func(name string) bool {
			return e.Name() == name || strings.HasPrefix(e.Name(), name+".")
		})
		if known {
			p.inState = append(p.inState, e.Name())
			continue
		}
		p.Kept = append(p.Kept, filepath.Join(state, e.Name())+": the agent did not make it")
	}
	return nil
}

// Remove removes what Plan found, and returns the directories of it that stay because something else
// is in them. Links are removed and not followed.
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
