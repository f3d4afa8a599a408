package tes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Backend holds all that tasks need of an agent. internal/agent/backend has these methods; their
// errors are those of internal/view.
type Backend interface {
	jobs
	room
	events
}

// jobs takes jobs and shows them.
type jobs interface {
	Submit(ctx context.Context, job grid.Job, key string) (grid.JobID, error)
	Cancel(ctx context.Context, id grid.JobID) error
	Job(ctx context.Context, id grid.JobID) (view.JobDetail, error)
	Tasks(ctx context.Context, id grid.JobID, from uint32, limit int) ([]view.TaskView, error)
}

// room stores data and hands it out.
type room interface {
	PutData(ctx context.Context, tar bool, body io.Reader) (view.DataRef, error)
	PutExecutable(ctx context.Context, body io.Reader) (view.DataRef, error)
	GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error)
}

// events tells what happens.
type events interface {
	EventsAfter(ctx context.Context, after uint64, limit int) ([]view.Event, error)
}

// Config says what tasks may do, and where they are kept.
type Config struct {
	Dir    string        // for the records of tasks; made with the first of them
	Files  []string      // directories below which files are read and written; none = no files
	Mounts []string      // those below which tasks may change directories that they read
	URLs   []string      // beginnings of addresses of the web that are read; none = no addresses
	Images []string      // names of images whose programs the sites have; * stands for any text
	Keep   time.Duration // how long tasks are kept after their end; 0 = as long as there is space
	Bytes  int64         // most that records take, except for one; 0 = no limit
	Name   string        // of the site, for people
	Domain grid.DomainID // of the site
	Build  string        // version of the program
	Log    *slog.Logger  // nil = silent
}

// Bounds of what is kept.
const (
	maxOpen  = 4_000  // tasks that have not ended
	maxTasks = 20_000 // in all
	readers  = 4      // tasks whose files are read or written at the same time
)

// Tasks takes tasks and follows them to their ends. It is safe for concurrent use.
type Tasks struct {
	cfg     Config
	backend Backend
	shelves shelves
	mounts  shelves // the shelves in which directories may be changed
	web     websites
	store   *store
	busy    chan struct{} // holds a token for each task whose files are read or written
	fresh   chan *entry   // new tasks, for Run

	carrying sync.Mutex // held while a mount is read or changed, so that none is seen half changed

	mu    sync.Mutex
	tasks map[string]*entry     // guarded by mu
	order []*entry              // guarded by mu: the oldest first
	byJob map[grid.JobID]*entry // guarded by mu: those that have not ended
	open  int                   // guarded by mu: those that have not ended
}

// entry is the part of a task that is held in memory.
type entry struct {
	id      string
	created time.Time
	name    string
	tags    map[string]string
	poke    chan struct{} // something happened

	// What follows is guarded by the service's mu.
	state TesState
	over  time.Time          // when it has ended
	stop  context.CancelFunc // ends the reading of its inputs; nil = it is not under way
}

// New makes a service from the tasks of earlier runs. Records that cannot be read are left out and
// logged.
func New(b Backend, cfg Config) *Tasks {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Tasks{
		cfg: cfg, backend: b, shelves: newShelves(cfg.Files),
		mounts: newShelves(cfg.Mounts),
		web:    newWebsites(cfg.URLs),
		store:  &store{dir: filepath.Clean(cfg.Dir), sizes: map[string]int64{}},
		busy:   make(chan struct{}, readers),
		fresh:  make(chan *entry), tasks: map[string]*entry{}, byJob: map[grid.JobID]*entry{},
	}
	err := s.store.all(func(r record) {
		e := s.enter(r)
		if r.End == nil && r.JobID != "" {
			s.byJob[r.JobID] = e
		}
	})
	if err != nil {
		s.cfg.Log.Warn("some tasks cannot be read", "error", err)
	}
	slices.SortFunc(s.order, func(a, b *entry) int { return a.compare(b.created, b.id) })
	return s
}

// compare orders tasks by their time and then their ID.
func (e *entry) compare(created time.Time, id string) int {
	if c := e.created.Compare(created); c != 0 {
		return c
	}
	return strings.Compare(e.id, id)
}

// enter needs mu, or that nobody else has the service.
func (s *Tasks) enter(r record) *entry {
	e := &entry{id: r.ID, created: r.Created, state: QUEUED, poke: make(chan struct{}, 1)}
	if r.Task.Name != nil {
		e.name = *r.Task.Name
	}
	if r.Task.Tags != nil {
		e.tags = *r.Task.Tags
	}
	switch {
	case r.End != nil:
		e.state, e.over = r.End.State, r.End.At
	case r.Canceled:
		e.state = CANCELING
		s.open++
	default:
		s.open++
	}
	s.tasks[e.id], s.order = e, append(s.order, e)
	return e
}

// wake says that something may have happened to a task.
func (e *entry) wake() {
	select {
	case e.poke <- struct{}{}:
	default: // it was told already and has not looked
	}
}

// Run follows tasks until the context ends, and returns when nothing of it is under way.
func (s *Tasks) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	now, err := s.backend.EventsAfter(ctx, view.FromNow, 1)
	if err != nil {
		return // the context has ended
	}
	group.Go(func() { s.listen(ctx, now[len(now)-1].ID) })
	for _, e := range s.unended() {
		group.Go(func() { s.follow(ctx, e) })
	}
	group.Go(func() { s.tidyHourly(ctx) })
	for {
		select {
		case e := <-s.fresh:
			group.Go(func() { s.follow(ctx, e) })
		case <-ctx.Done():
			return
		}
	}
}

func (s *Tasks) tidyHourly(ctx context.Context) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for at := time.Now(); ; {
		s.tidy(at)
		select {
		case at = <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// unended lists the tasks that have not ended.
func (s *Tasks) unended() (open []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.order {
		if !ended(e.state) {
			open = append(open, e)
		}
	}
	return open
}

// listen wakes tasks whose jobs something happens to.
func (s *Tasks) listen(ctx context.Context, after uint64) {
	const most = 256
	for {
		list, err := s.backend.EventsAfter(ctx, after, most)
		if err != nil {
			return // the context has ended
		}
		for _, event := range list {
			after = event.ID
			if event.Kind == "gap" {
				for _, e := range s.unended() {
					e.wake()
				}
				continue
			}
			s.mu.Lock()
			e := s.byJob[event.Job]
			s.mu.Unlock()
			if e != nil {
				e.wake()
			}
		}
	}
}

// tidy drops the oldest ended tasks, which are too many or have been kept long enough.
func (s *Tasks) tidy(now time.Time) {
	s.mu.Lock()
	var drop []*entry
	excess := len(s.order) - maxTasks
	_, bytes := s.store.size("")
	s.order = slices.DeleteFunc(s.order, func(e *entry) bool {
		old := s.cfg.Keep > 0 && e.over.Before(now.Add(-s.cfg.Keep))
		if !ended(e.state) || !old && excess <= 0 && !s.above(bytes) {
			return false
		}
		excess--
		size, _ := s.store.size(e.id)
		bytes -= size
		drop = append(drop, e)
		delete(s.tasks, e.id)
		return true
	})
	s.mu.Unlock()
	for _, e := range drop {
		if err := s.store.remove(e.id); err != nil {
			s.cfg.Log.Warn("a task's record cannot be removed", "error", err)
		}
	}
}

// above reports whether records of so many bytes are too large.
func (s *Tasks) above(bytes int64) bool { return s.cfg.Bytes > 0 && bytes > s.cfg.Bytes }

// hasSpace reports whether one more task may be taken. It drops ended ones for it.
func (s *Tasks) hasSpace() error {
	if _, bytes := s.store.size(""); s.above(bytes) {
		s.tidy(time.Now())
	}
	s.mu.Lock()
	full := s.open >= maxOpen
	s.mu.Unlock()
	if _, bytes := s.store.size(""); full || s.above(bytes) {
		return fmt.Errorf("%w: too many tasks have not ended, or too large ones; "+
			"create more when some have ended", view.ErrBusy)
	}
	return nil
}

// create takes a task and returns its ID, when it is on disk.
func (s *Tasks) create(ctx context.Context, task TesTask) (string, error) {
	mounts := s.mountsOf(task)
	w, err := check(task, s.cfg.Images, mounts)
	if err == nil {
		err = s.shelves.locate(task, &w, s.web)
	}
	if err != nil {
		return "", err
	}
	const idBytes = 16
	r := record{
		ID: strings.ToLower(rand.Text())[:idBytes], Created: s.now(), Task: w.task, Notes: w.notes,
		Mounts: mounts,
	}
	if err = s.hasSpace(); err != nil {
		return "", err
	}
	if err = s.store.add(r); err != nil {
		return "", err
	}
	s.mu.Lock()
	e := s.enter(r)
	slices.SortFunc(s.order, func(a, b *entry) int { return a.compare(b.created, b.id) })
	s.mu.Unlock()
	select {
	case s.fresh <- e:
		return r.ID, nil
	case <-ctx.Done(): // it is followed after the next start, as all that are on disk
		return "", errors.Join(view.ErrBusy, ctx.Err())
	}
}

// now is the time, later than that of every task there is.
func (s *Tasks) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().UTC().Round(0)
	if n := len(s.order); n > 0 && !at.After(s.order[n-1].created) {
		at = s.order[n-1].created.Add(1)
	}
	return at
}

// find is a task by its ID.
func (s *Tasks) find(id string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.tasks[id]; e != nil {
		return e, nil
	}
	return nil, &view.Problem{
		Status: 404, Field: "id", Detail: "no task " + quoted(id),
		Remedy: "list the tasks to see them",
	}
}

// cancel ends a task. One that has ended stays as it is.
func (s *Tasks) cancel(id string) error {
	e, err := s.find(id)
	if err != nil {
		return err
	}
	r, err := s.store.change(id, func(r *record) { r.Canceled = true })
	if err != nil || r.End != nil {
		return err
	}
	s.mu.Lock()
	if !ended(e.state) {
		e.state = CANCELING
	}
	if e.stop != nil {
		e.stop()
	}
	s.mu.Unlock()
	e.wake()
	return nil
}

// stateNow is the state of a task as it was last seen.
func (s *Tasks) stateNow(e *entry) TesState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.state
}

// saw keeps the state of a task. One that is being cancelled shows nothing else until its end.
func (s *Tasks) saw(e *entry, state TesState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !ended(e.state) && (e.state != CANCELING || ended(state)) {
		e.state = state
	}
}
