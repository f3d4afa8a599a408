package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// repeated copies the facts of the only job of a state directory, as if it had run many times
// before, and returns the copies' IDs, the oldest first.
func repeated(t *testing.T, dir string, times int) []grid.JobID {
	t.Helper()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	facts, err := s.Load("broker")
	if err != nil {
		t.Fatal(err)
	}
	var ids []grid.JobID
	for n := range times {
		id := grid.JobID(strings.ToLower(fmt.Sprintf("q%s", strings.Map(func(r rune) rune {
			return 'a' + (r - '0')
		}, fmt.Sprintf("%015d", n)))))
		ids = append(ids, id)
		var copies []step.Fact
		for _, f := range facts {
			_, index, isTask := strings.Cut(f.Key, ".")
			switch {
			case isTask:
				f.Key = string(id) + "." + index
			case strings.HasPrefix(f.Kind, "job/"):
				f.Key, f.Value = string(id), earlier(t, f.Value, time.Duration(times-n)*time.Minute)
			default:
				continue
			}
			copies = append(copies, f)
		}
		if err := s.Apply("broker", copies); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// earlier moves the times of a job's fact back.
func earlier(t *testing.T, fact []byte, by time.Duration) []byte {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(fact, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"submitted_ms", "ended_ms"} {
		var ms int64
		if err := json.Unmarshal(fields[name], &ms); err != nil {
			t.Fatal(err)
		}
		fields[name] = fmt.Append(nil, ms-by.Milliseconds())
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// past runs a job, and starts its submitter again with a state in which that job ran many
// times: an agent of an earlier version kept them all in its machine.
func past(t *testing.T, times int) (submitter *node, last grid.JobID, copies []grid.JobID) {
	t.Helper()
	a, _ := pair(t)
	job := a.job(t, "print=hello", "put=/out/x:result", "exit=0")
	job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
	id := a.submit(t, job)
	a.await(t, id, view.PhaseDone)
	a.close(t)
	copies = repeated(t, a.cfg.StateDir, times)
	c := a.cfg
	c.Summary = backend.Summary
	a = start(t, c)
	agent.Eventually(t, "the ended jobs but a few are in the history", func() bool {
		sums, err := a.History().Sums()
		return err == nil && sums.Jobs >= int64(times+1-80)
	})
	return a, id.Job, copies
}

func (n *node) text(t *testing.T, cid grid.CID) string {
	t.Helper()
	_, body, err := n.GetData(t.Context(), cid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil || body.Close() != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEndedJobsOfAnEarlierVersionMoveToTheHistory(t *testing.T) {
	t.Parallel()
	a, last, copies := past(t, 200)
	jobs, err := a.Jobs(t.Context(), view.JobQuery{Limit: 1000})
	if err != nil || len(jobs) != 201 || jobs[0].ID != last || jobs[200].ID != copies[0] {
		t.Fatalf("%d jobs are listed, %v; want 201, newest first", len(jobs), err)
	}
	// The machine's and the history's look alike.
	first, then := jobs[0], jobs[200]
	then.ID, then.Submitted, then.Ended = first.ID, first.Submitted, first.Ended
	if x, y := fmt.Sprintf("%+v", first), fmt.Sprintf("%+v", then); first.Phase != view.PhaseDone ||
		len(x) != len(y) {
		t.Errorf("in the machine  %s\nin the history %s", x, y)
	}
	// Page by page it is the same list.
	var paged []view.JobView
	for before := grid.JobID(""); ; {
		page, err := a.Jobs(t.Context(), view.JobQuery{Before: before, Limit: 30})
		if err != nil {
			t.Fatal(err)
		}
		if paged = append(paged, page...); len(page) < 30 {
			break
		}
		before = page[29].ID
	}
	if x, y := fmt.Sprintf("%+v", jobs), fmt.Sprintf("%+v", paged); len(jobs) != len(paged) ||
		len(x) != len(y) {
		t.Errorf("%d jobs in one page, %d page by page", len(jobs), len(paged))
	}
	since := jobs[100].Submitted.Time
	if some, err := a.Jobs(t.Context(), view.JobQuery{Since: since, Limit: 1000}); err != nil ||
		len(some) != 101 {
		t.Errorf("since the hundredth: %d, %v", len(some), err)
	}
	if some, err := a.Jobs(t.Context(), view.JobQuery{Prefix: "qaa", Limit: 1000}); err != nil ||
		len(some) != 200 {
		t.Errorf("with the copies' prefix: %d, %v", len(some), err)
	}
}

func TestAJobOfTheHistoryIsDescribedInFull(t *testing.T) {
	t.Parallel()
	a, last, copies := past(t, 100)
	old := grid.TaskID{Job: copies[0]}
	detail, err := a.Job(t.Context(), old.Job)
	if err != nil || detail.Status.Phase != view.PhaseDone || detail.Spec.Outputs[0].To != "x" {
		t.Fatalf("%+v, %v", detail, err)
	}
	task := a.task(t, old)
	if task.Code == nil || *task.Code != 0 || len(task.Attempts) != 1 || task.Started.IsZero() {
		t.Errorf("its task: %+v", task)
	}
	if text := a.text(t, task.Outputs[0].CID); text != "result" {
		t.Errorf("its output is %q", text)
	}
	if text := a.log(t, old, view.LogQuery{Stream: "stdout"}); text != "hello\n" {
		t.Errorf("its log is %q", text)
	}
	if _, err = a.Offers(t.Context(), old.Job); err != nil {
		t.Errorf("why: %v", err)
	}
	after := a.job(t, "exit=0")
	after.After = []grid.JobID{old.Job, last}
	next := a.submit(t, after)
	detail, err = a.Job(t.Context(), next.Job)
	if err != nil || detail.Status.After[0].Phase != view.PhaseDone || detail.Status.Phase.Ended() {
		t.Errorf("a job after one of the history: %+v, %v", detail.Status, err)
	}
}

func TestForgettingJobsLetsGoOfTheirData(t *testing.T) {
	t.Parallel()
	a, last, copies := past(t, 100)
	cid := a.task(t, grid.TaskID{Job: last}).Outputs[0].CID
	pinned := func() bool {
		for _, root := range a.Stores().Data.Roots() {
			if root.CID == cid {
				return root.Pinned
			}
		}
		return false
	}
	if err := a.Forget(t.Context(), copies[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Job(t.Context(), copies[0]); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("described after it was forgotten: %v", err)
	}
	if err := a.Forget(t.Context(), copies[0]); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("forgotten twice: %v", err)
	}
	if err := a.Forget(t.Context(), last); err != nil || !pinned() {
		t.Errorf("one of the machine: %v; others need its output: %v", err, pinned())
	}
	a.close(t)
	a = start(t, a.cfg)
	if !pinned() {
		t.Error("a restart lets go of what the history keeps")
	}
	n, err := a.ForgetEnded(t.Context(), time.Now().Add(time.Hour))
	if err != nil || n != 99 {
		t.Errorf("%d jobs forgotten, %v; want the other 99", n, err)
	}
	if pinned() {
		t.Error("what nobody keeps stays pinned")
	}
	if jobs, err := a.Jobs(t.Context(), view.JobQuery{Limit: 9}); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs are left, %v", len(jobs), err)
	}
}

func TestOldJobsLeaveTheHistoryByThemselves(t *testing.T) {
	t.Parallel()
	a, _, copies := past(t, 100)
	a.close(t)
	var log bytes.Buffer
	a.cfg.Past.Jobs = time.Minute // the history was written by the test: every copy is older
	a.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	a = start(t, a.cfg)
	agent.Eventually(t, "the history is empty", func() bool {
		sums, err := a.History().Sums()
		return err == nil && sums == store.HistorySums{}
	})
	if _, err := a.Job(t.Context(), copies[0]); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("the oldest is still there: %v", err)
	}
	a.close(t)
	if !strings.Contains(log.String(), "ended jobs left the history") {
		t.Errorf("it is not said: %s", log.String())
	}
}
