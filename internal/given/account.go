package given

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The files of the state directory.
const (
	FileName  = "given.json"         // the account
	asideName = "given.json.damaged" // one that could not be read
)

// Bounds of the account.
const (
	maxDays = 42  // on which something was given; the oldest are dropped
	maxFor  = 100 // submitters of a day; what is given to more of them is the others'
	maxName = 64  // bytes of a submitter's name
)

// Others stands for the submitters of a day that are beyond the bound.
const Others grid.SiteID = ""

// Share says what one submitter was given on a day.
type Share struct {
	For         grid.SiteID `json:"for"`            // Others: those beyond the bound
	Name        string      `json:"name,omitempty"` // that it was last known by
	CoreSeconds float64     `json:"core_seconds"`   // processor time that attempts used
	Tasks       int         `json:"tasks"`          // that came to an end of their own here
}

// Day lists what was given on one day.
type Day struct {
	Date   string  `json:"date"` // by the owner's clock, such as 2026-03-02
	Shares []Share `json:"shares"`
}

// Work says what to add to the account.
type Work struct {
	At    time.Time // on the owner's clock
	For   grid.SiteID
	CPU   time.Duration // of processors, at least 0
	Tasks int           // at least 0
}

// Account is an open account. It may be used by several goroutines. Trouble with the file never
// stops its user: what cannot be saved is kept in memory and saved with what comes later.
type Account struct {
	dir string

	saving sync.Mutex // held while the file is written

	mu      sync.Mutex
	days    []Day // guarded by mu; ascending
	changed bool  // guarded by mu; since the last save
}

// Open reads the account in a directory. A file that is there and cannot be read is put aside; an
// error says that this failed, too. The Account is usable nevertheless, and then saves nothing.
func Open(dir string, log *slog.Logger) (*Account, error) {
	a := &Account{dir: dir}
	days, err := read(a.path())
	if errors.Is(err, errDamaged) {
		log.Warn("the account of what was given was put aside, a new one begins",
			"file", asideName, "error", err)
		err = os.Rename(a.path(), filepath.Join(dir, asideName))
	}
	if err != nil {
		a.dir = ""
		return a, fmt.Errorf("open account: %w", err)
	}
	a.days = days
	return a, nil
}

func (a *Account) path() string { return filepath.Join(a.dir, FileName) }

// Add adds work. Nothing is added for nothing.
func (a *Account) Add(w Work) {
	if w.CPU <= 0 && w.Tasks <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	share := a.day(w.At.Format(time.DateOnly)).share(w.For)
	share.CoreSeconds += max(w.CPU, 0).Seconds()
	share.Tasks += max(w.Tasks, 0)
	a.changed = true
}

// day is only called with mu held. It makes a day that is not there; the oldest one is dropped if
// there are too many then.
func (a *Account) day(date string) *Day {
	i, found := slices.BinarySearchFunc(a.days, date, func(d Day, date string) int {
		return cmp.Compare(d.Date, date)
	})
	if found {
		return &a.days[i]
	}
	a.days = slices.Insert(a.days, i, Day{Date: date})
	if len(a.days) > maxDays {
		a.days = slices.Delete(a.days, 0, 1)
		i = max(i-1, 0) // of a clock that is behind all days: the oldest one takes it
	}
	return &a.days[i]
}

// share makes a submitter's share if it is not there.
func (d *Day) share(whose grid.SiteID) *Share {
	at := func(id grid.SiteID) int {
		return slices.IndexFunc(d.Shares, func(s Share) bool { return s.For == id })
	}
	i := at(whose)
	if i < 0 && len(d.Shares) >= maxFor {
		whose = Others
		i = at(Others)
	}
	if i < 0 {
		d.Shares = append(d.Shares, Share{For: whose})
		i = len(d.Shares) - 1
	}
	return &d.Shares[i]
}

// Name tells by which names submitters are known, so that they can be told when these are gone.
func (a *Account) Name(names map[grid.SiteID]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.days {
		for k := range a.days[i].Shares {
			s := &a.days[i].Shares[k]
			if name := shortened(names[s.For]); s.For != Others && name != "" && name != s.Name {
				s.Name, a.changed = name, true
			}
		}
	}
}

func shortened(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// Days returns what was given, ascending by date. What it returns is the caller's.
func (a *Account) Days() []Day {
	a.mu.Lock()
	defer a.mu.Unlock()
	days := slices.Clone(a.days)
	for i := range days {
		days[i].Shares = slices.Clone(days[i].Shares)
	}
	return days
}

// Changed reports whether there is something to save.
func (a *Account) Changed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// Save makes the account durable, if it has changed since it last was.
func (a *Account) Save() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	changed := a.changed
	a.changed = false
	a.mu.Unlock()
	if !changed || a.dir == "" {
		return nil
	}
	text, err := encode(a.Days())
	if err == nil {
		err = durable.Replace(a.path(), text)
	}
	if err != nil {
		a.mu.Lock()
		a.changed = true
		a.mu.Unlock()
		return fmt.Errorf("save account of what was given: %w", err)
	}
	return nil
}
