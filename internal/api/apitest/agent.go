// Package apitest is an agent in memory: it satisfies api.Backend, keeps data in
// maps and places jobs as a test scripts it. Tests of the API, of its client and
// of the command line share it. It is one subject, however long: each method is the
// shortest answer to one method of api.Backend.
package apitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Agent is an agent in memory. Its methods are safe for concurrent use.
type Agent struct {
	*view.EventLog
	// OnSubmit is called in its own goroutine for every job; it moves the job's
	// tasks with Set. It is set before use.
	OnSubmit func(a *Agent, id grid.JobID, job grid.Job)
	// Table is the answer of Plan and Offers. It is set before use.
	Table view.OfferTable
	// Skew is the lead of the other site's clock, in seconds. It is set before use.
	Skew float64

	mu       sync.Mutex
	jobs     []*record          // guarded by mu, oldest first
	byKey    map[string]*record // guarded by mu: by the key of the request
	blobs    map[grid.CID]blob  // guarded by mu
	logs     map[string]string  // guarded by mu: "JOB.INDEX/stream" -> text
	state    view.AgentStatus   // guarded by mu
	rows     []view.MemberRow   // guarded by mu: members that were decided about
	invites  []view.InviteRow   // guarded by mu
	links    []view.LinkRow     // guarded by mu
	planning view.Planning      // guarded by mu
	settings view.Configuration // guarded by mu
	steered  bool               // guarded by mu: the other site is paused from afar
	clock    func() time.Time
	wait     sync.WaitGroup
}

type record struct {
	id    grid.JobID
	job   grid.Job
	tasks []view.TaskView
	since time.Time
	hint  string
	why   []string
	held  bool
}

type blob struct {
	data []byte
	dir  bool

	executable bool
}

// New makes an agent whose clock is the given function.
func New(clock func() time.Time) *Agent {
	return &Agent{
		EventLog: view.NewEventLog(1024, 1),
		planning: view.Planning{Policy: "fcfs", Backfill: "conservative"}, blobs: map[grid.CID]blob{},
		logs: map[string]string{}, clock: clock, byKey: map[string]*record{},
		state: view.AgentStatus{
			Site: "12D3KooWself", Name: "self", Domain: "home", Version: "test", Started: view.At(clock()),
			Reach: view.Reach{Reachability: "unknown", Relays: []grid.SiteID{}},
		},
	}
}

// Wait returns when all OnSubmit functions have.
func (a *Agent) Wait() { a.wait.Wait() }

// Set changes a task, and tells it as an event.
func (a *Agent) Set(id grid.JobID, index uint32, change func(*view.TaskView)) {
	a.mu.Lock()
	r := a.find(id)
	if r == nil || int(index) >= len(r.tasks) {
		a.mu.Unlock()
		return
	}
	task := &r.tasks[index]
	change(task)
	event := view.Event{
		Time: view.At(a.clock()), Kind: string(task.Phase), Job: id, Task: task.ID,
		Token: task.Token, Site: task.Site, Distance: task.Distance,
	}
	if task.Phase.Ended() {
		event.Kind = "task_" + event.Kind
	}
	ended := r.view().Phase.Ended()
	a.mu.Unlock()
	a.Append(event)
	if ended {
		a.tell("job_ended", id)
	}
}

// tell appends an event of a job.
func (a *Agent) tell(kind string, id grid.JobID) {
	a.Append(view.Event{Time: view.At(a.clock()), Kind: kind, Job: id})
}

// Explain sets why a job waits or is refused.
func (a *Agent) Explain(id grid.JobID, hint string, reasons ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.find(id); r != nil {
		r.hint, r.why = hint, reasons
	}
}

// Print adds to a task's log.
func (a *Agent) Print(task, stream, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logs[task+"/"+stream] += text
}

// Store puts a file or a tar of a directory into the data room.
func (a *Agent) Store(data []byte, dir bool) view.DataRef {
	sum := sha256.Sum256(append([]byte(strconv.FormatBool(dir)), data...))
	cid := grid.CID("b" + hex.EncodeToString(sum[:]))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.blobs[cid] = blob{data: data, dir: dir}
	return view.DataRef{CID: cid, Bytes: int64(len(data)), Dir: dir}
}

// Job0 is the newest submission as it arrived.
func (a *Agent) Job0() (grid.Job, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 {
		return grid.Job{}, false
	}
	return a.jobs[len(a.jobs)-1].job, true
}

// find needs mu.
func (a *Agent) find(id grid.JobID) *record {
	for _, r := range a.jobs {
		if r.id == id {
			return r
		}
	}
	return nil
}

func missing(id grid.JobID) error { return fmt.Errorf("job %s: %w", id, view.ErrNotFound) }

// Submit implements api.Submissions.
func (a *Agent) Submit(_ context.Context, job grid.Job, key string) (grid.JobID, error) {
	a.mu.Lock()
	if r := a.byKey[key]; r != nil {
		a.mu.Unlock()
		if !reflect.DeepEqual(r.job, job) {
			return "", fmt.Errorf("%w: the key named another request before", view.ErrConflict)
		}
		return r.id, nil
	}
	sum := sha256.Sum256([]byte(strconv.Itoa(len(a.jobs))))
	id := grid.JobID(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:16])
	r := &record{id: id, job: job, since: a.clock(), held: job.Held}
	for i := range job.Count {
		t := view.TaskView{
			ID: grid.TaskID{Job: id, Index: i}.String(), Index: i, Phase: view.PhaseAnnounced,
		}
		if len(job.Items) > 0 {
			t.Item = job.Items[i].Value
		}
		r.tasks = append(r.tasks, t)
	}
	a.jobs = append(a.jobs, r)
	if key != "" {
		a.byKey[key] = r
	}
	a.mu.Unlock()
	a.tell("job_submitted", id)
	if !job.Held {
		a.begin(id, job)
	}
	return id, nil
}

// begin calls OnSubmit.
func (a *Agent) begin(id grid.JobID, job grid.Job) {
	if a.OnSubmit != nil {
		a.wait.Go(func() { a.OnSubmit(a, id, job) })
	}
}

// Hold implements api's submissions. OnSubmit hears of a held job when it is released.
func (a *Agent) Hold(_ context.Context, id grid.JobID, release bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.find(id)
	switch {
	case r == nil:
		return missing(id)
	case r.view().Phase.Ended():
		return fmt.Errorf("%w: the job has ended", view.ErrConflict)
	case !r.view().Started.IsZero():
		return fmt.Errorf("%w: the job has begun at a site", view.ErrConflict)
	case release && r.held:
		a.begin(id, r.job)
	}
	r.held = !release
	return nil
}

// Migrate implements api.Submissions: a task that has a state, or may begin anew, is at another
// site immediately.
func (a *Agent) Migrate(_ context.Context, id grid.JobID, wanted view.MoveRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.find(id)
	if r == nil {
		return missing(id)
	}
	moves := 0
	for i := range r.tasks {
		t := &r.tasks[i]
		named := len(wanted.Tasks) == 0 || slices.Contains(wanted.Tasks, t.Index)
		switch {
		case !named || t.Site == "" || t.Phase.Ended():
			continue
		case t.Saved != nil || wanted.Restart:
			t.Site, t.SiteName, t.Move = "12D3KooWother", "other", nil
			t.Token++
		default:
			t.Move = &view.MoveView{
				Phase: view.MoveStays, Reason: grid.ReasonCannotSave.String(),
				Text: "it would begin anew",
			}
		}
		moves++
	}
	if moves == 0 {
		return fmt.Errorf("%w: no site has the task; there is nothing to move", view.ErrConflict)
	}
	return nil
}

// Cancel implements api.Submissions.
func (a *Agent) Cancel(_ context.Context, id grid.JobID) error {
	a.mu.Lock()
	r := a.find(id)
	if r == nil {
		a.mu.Unlock()
		return missing(id)
	}
	for i := range r.tasks {
		if !r.tasks[i].Phase.Ended() {
			r.tasks[i].Phase = view.PhaseCancelled
			if r.job.Spec.Kind == grid.KindReservation {
				r.tasks[i].Phase = view.PhaseReleased
			}
		}
	}
	a.mu.Unlock()
	a.tell("job_cancelled", id)
	return nil
}

// view needs mu.
func (r *record) view() view.JobView {
	v := view.JobView{
		ID: r.id, Name: r.job.Spec.Name, Kind: r.job.Spec.Kind.String(), Count: r.job.Count,
		Tasks: view.PhaseCounts{}, Submitted: view.At(r.since), Hint: r.hint, Reasons: r.why,
		Held: r.held,
	}
	code := 0
	for i := range r.tasks {
		t := r.tasks[i]
		v.Tasks[t.Phase]++
		if v.Started.IsZero() {
			v.Started = t.Started
		}
		if t.Code != nil && *t.Code != 0 && v.FailedIndex == nil {
			code, v.FailedIndex = *t.Code, &t.Index
		}
	}
	v.Phase = v.Tasks.Phase()
	if v.Phase == view.PhaseDone || v.Phase == view.PhaseFailed {
		v.Code = &code
	}
	return v
}

// Jobs implements api.Jobs.
func (a *Agent) Jobs(_ context.Context, q view.JobQuery) ([]view.JobView, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []view.JobView
	for _, r := range slices.Backward(a.jobs) {
		v := r.view()
		if v.ID == q.Before {
			out = nil
			continue
		}
		if strings.HasPrefix(string(v.ID), q.Prefix) && !v.Submitted.Before(q.Since) {
			out = append(out, v)
		}
	}
	return out[:min(len(out), q.Limit)], nil
}

// Forget implements api's submissions.
func (a *Agent) Forget(_ context.Context, id grid.JobID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.find(id)
	if r == nil {
		return missing(id)
	}
	if !r.view().Phase.Ended() {
		return fmt.Errorf("%w: the job has not ended; cancel it first", view.ErrConflict)
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(o *record) bool { return o == r })
	return nil
}

// ForgetEnded implements api's submissions.
func (a *Agent) ForgetEnded(_ context.Context, before time.Time) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := len(a.jobs)
	a.jobs = slices.DeleteFunc(a.jobs, func(r *record) bool {
		v := r.view()
		return v.Phase.Ended() && v.Ended.Before(before)
	})
	return all - len(a.jobs), nil
}

// Job implements api.Jobs.
func (a *Agent) Job(_ context.Context, id grid.JobID) (view.JobDetail, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.find(id)
	if r == nil {
		return view.JobDetail{}, missing(id)
	}
	return view.JobDetail{Spec: view.FromJob(r.job), Status: r.view()}, nil
}

// Tasks implements api.Jobs.
func (a *Agent) Tasks(
	_ context.Context, id grid.JobID, from uint32, limit int,
) ([]view.TaskView, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.find(id)
	if r == nil {
		return nil, missing(id)
	}
	tasks := r.tasks[min(int(from), len(r.tasks)):]
	return slices.Clone(tasks[:min(limit, len(tasks))]), nil
}

// Plan implements api.Plans.
func (a *Agent) Plan(context.Context, grid.Job) (view.OfferTable, error) { return a.Table, nil }

// Offers implements api.Plans.
func (a *Agent) Offers(_ context.Context, id grid.JobID) (view.OfferTable, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.find(id) == nil {
		return view.OfferTable{}, missing(id)
	}
	table := a.Table
	table.Job = id
	return table, nil
}

// Rounds implements api.Plans: there was one.
func (a *Agent) Rounds(ctx context.Context, id grid.JobID) ([]view.OfferTable, error) {
	table, err := a.Offers(ctx, id)
	return []view.OfferTable{table}, err
}

// PutData implements api.Data.
func (a *Agent) PutData(_ context.Context, tar bool, body io.Reader) (view.DataRef, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return view.DataRef{}, fmt.Errorf("read upload: %w", err)
	}
	return a.Store(data, tar), nil
}

// PutExecutable implements api.Data.
func (a *Agent) PutExecutable(ctx context.Context, body io.Reader) (view.DataRef, error) {
	ref, err := a.PutData(ctx, false, body)
	if err != nil {
		return ref, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.blobs[ref.CID]
	b.executable = true
	a.blobs[ref.CID] = b
	ref.Executable = true
	return ref, nil
}

// PutEncrypted implements api.Data: nothing is encrypted here.
func (a *Agent) PutEncrypted(
	ctx context.Context, _ string, u view.Upload, body io.Reader,
) (view.DataRef, error) {
	if u.Executable {
		return a.PutExecutable(ctx, body)
	}
	return a.PutData(ctx, u.Tar, body)
}

// GetOutput implements api.Data.
func (a *Agent) GetOutput(
	ctx context.Context, _ grid.TaskID, cid grid.CID,
) (view.DataRef, io.ReadCloser, error) {
	return a.GetData(ctx, cid)
}

// GetData implements api.Data.
func (a *Agent) GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	ref, err := a.StatData(ctx, cid)
	if err != nil {
		return ref, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return ref, io.NopCloser(bytes.NewReader(a.blobs[cid].data)), nil
}

// StatData implements api.Data.
func (a *Agent) StatData(_ context.Context, cid grid.CID) (view.DataRef, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b, ok := a.blobs[cid]
	if !ok {
		return view.DataRef{}, fmt.Errorf("data %s: %w", cid, view.ErrNotFound)
	}
	return view.DataRef{CID: cid, Bytes: int64(len(b.data)), Dir: b.dir, Executable: b.executable}, nil
}

// TaskLog implements api.Logs. Following ends immediately, with what there is.
func (a *Agent) TaskLog(
	_ context.Context, task grid.TaskID, q view.LogQuery,
) (io.ReadCloser, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.find(task.Job) == nil {
		return nil, missing(task.Job)
	}
	text := a.logs[task.String()+"/"+q.Stream]
	return io.NopCloser(strings.NewReader(text[min(int(q.Offset), len(text)):])), nil
}

// Sites implements api.Sites.
func (a *Agent) Sites(context.Context) ([]view.SiteRow, error) {
	return []view.SiteRow{
		{ID: "12D3KooWself", Name: "self", Domain: "home", Self: true, Connected: true},
		{
			ID: "12D3KooWother", Name: "other", Domain: "home", Connected: true,
			LastSeen: view.At(a.clock()), SkewSeconds: &a.Skew,
		},
	}, nil
}

// Status implements api.Sites.
func (a *Agent) Status(context.Context) (view.AgentStatus, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, nil
}

// Given implements api.Sites.
func (a *Agent) Given(context.Context) ([]view.GivenDay, error) {
	share := view.GivenShare{Site: "12D3KooWother", Name: "other", CoreSeconds: 3600, Tasks: 2}
	return []view.GivenDay{{Date: "2026-03-02", For: []view.GivenShare{share}}}, nil
}

// Pause implements api.Owner.
func (a *Agent) Pause(_ context.Context, span time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Paused, a.state.PausedUntil = true, view.Time{}
	a.state.Leaving, a.state.StopAt = false, view.Time{}
	if span > 0 {
		a.state.PausedUntil = view.At(a.clock().Add(span))
	}
	return nil
}

// Leave implements api.Owner.
func (a *Agent) Leave(ctx context.Context, span, stopAfter time.Duration) error {
	if err := a.Pause(ctx, span); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Leaving = true
	if stopAfter > 0 {
		a.state.StopAt = view.At(a.clock().Add(stopAfter))
	}
	return nil
}

// Resume implements api.Owner.
func (a *Agent) Resume(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Paused = false
	return nil
}

// Recover implements api.Owner.
func (a *Agent) Recover(context.Context, []grid.SiteID) error {
	return fmt.Errorf("%w: this agent acts for your jobs; there is nothing to recover",
		view.ErrConflict)
}

// Stop implements api.Owner.
func (a *Agent) Stop(_ context.Context, now bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.Stopping && !now {
		return fmt.Errorf("already stopping: %w", view.ErrConflict)
	}
	a.state.Stopping = true
	return nil
}
