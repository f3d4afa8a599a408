package fake

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// The state of a played program is the time that it has run, and a line that it may have.

func (p *process) saves() bool { return p.does.Save > 0 && lrm.CanSave(p.at.Task) }

// goOn takes up the state that an earlier attempt has saved.
func (p *process) goOn() {
	if !p.saves() {
		return
	}
	text, err := os.ReadFile(path.Join(p.at.WorkDir(), lrm.SaveDir, "state"))
	if err != nil {
		return
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if ms, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64); err == nil {
		p.before = time.Duration(ms) * time.Millisecond
		p.saved = p.before
	}
}

// saveDue saves the state if it is time.
func (p *process) saveDue() {
	if !p.saves() || p.ran() < p.saved+p.does.Save {
		return
	}
	p.saved = p.ran()
	dir := path.Join(p.at.WorkDir(), lrm.SaveDir)
	text := strconv.FormatInt(p.saved.Milliseconds(), 10) + "\n" + p.does.Note
	if os.WriteFile(path.Join(dir, "next"), []byte(text), 0o600) == nil {
		_ = os.Rename(path.Join(dir, "next"), path.Join(dir, "state"))
	}
}
