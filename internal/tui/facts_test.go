package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// fakeAgent answers with what it is given, and writes down what it is told.
type fakeAgent struct {
	site  SiteFacts
	jobs  []view.JobView
	tasks []view.TaskView
	log   string
	fleet []view.FleetRow

	told    []string
	err     error // of orders
	trouble error // of questions
}

func (a *fakeAgent) tell(format string, args ...any) error {
	a.told = append(a.told, fmt.Sprintf(format, args...))
	return a.err
}

func (a *fakeAgent) Status(context.Context) (view.AgentStatus, error) {
	return a.site.Status, a.trouble
}

func (a *fakeAgent) Sites(context.Context) ([]view.SiteRow, error) {
	return a.site.Sites, a.trouble
}

func (a *fakeAgent) Pause(_ context.Context, span time.Duration) error {
	return a.tell("pause %s", span)
}

func (a *fakeAgent) Leave(_ context.Context, span, stopAfter time.Duration) error {
	return a.tell("leave %s %s", span, stopAfter)
}

func (a *fakeAgent) Resume(context.Context) error { return a.tell("resume") }

func (a *fakeAgent) Fleet(context.Context) ([]view.FleetRow, error) { return a.fleet, a.trouble }

func (a *fakeAgent) PauseAt(
	_ context.Context, site string, p view.PauseOrder,
) (view.AgentStatus, error) {
	return view.AgentStatus{}, a.tell("pause %s: %s %v", site, p.Span, p.Leave)
}

func (a *fakeAgent) ResumeAt(_ context.Context, site string) (view.AgentStatus, error) {
	return view.AgentStatus{}, a.tell("resume %s", site)
}

func (a *fakeAgent) Cancel(_ context.Context, id grid.JobID) error {
	return a.tell("cancel %s", id)
}

func (a *fakeAgent) Jobs(_ context.Context, q view.JobQuery) ([]view.JobView, error) {
	at := 0
	if q.Before != "" {
		at = 1 + slices.IndexFunc(a.jobs, func(j view.JobView) bool { return j.ID == q.Before })
	}
	var found []view.JobView
	for _, j := range a.jobs[at:] {
		if strings.HasPrefix(string(j.ID), q.Prefix) && len(found) < q.Limit {
			found = append(found, j)
		}
	}
	return found, a.trouble
}

func (a *fakeAgent) Tasks(
	_ context.Context, _ grid.JobID, from uint32, limit int,
) ([]view.TaskView, error) {
	rest := a.tasks[min(int(from), len(a.tasks)):]
	return rest[:min(len(rest), limit)], a.trouble
}

func (a *fakeAgent) TaskLog(
	_ context.Context, _ grid.TaskID, q view.LogQuery,
) (io.ReadCloser, error) {
	text := a.log
	if q.Stream == stderr {
		text = ""
	}
	if a.err != nil {
		return nil, a.err
	}
	return io.NopCloser(strings.NewReader(text[min(int(q.Offset), len(text)):])), a.trouble
}

// aSite is a site with something to show in each place. A stranger's name tries to clear the
// window.
func aSite() SiteFacts {
	at := func(back time.Duration) view.Time { return view.At(noon.Add(-back)) }
	z, ms := 0.035, 12.4
	const rude = "evil\x1b[2J\nname"
	total := func(cores, gib int64) *view.Resources {
		return &view.Resources{MilliCPUs: cores * 1000, MemoryBytes: gib << 30}
	}
	return SiteFacts{
		Status: view.AgentStatus{
			Site: "12D3KooWattic", Name: "attic", Domain: "home", Peers: 2, Kinds: []string{"wasm"},
			Ceilings: *total(4, 8), InUse: *total(3, 2),
			Reach: view.Reach{Reachability: "private", Direct: 1, Relayed: 1},
			Running: []view.RunningTask{
				{
					Task: "mfrgaaaaaaaaaaaa.0", Token: 1, Name: "census", SubmitterName: "ada",
					Phase: view.PhaseRunning, Need: *total(1, 1), Started: at(754 * time.Second),
				},
				{
					Task: "mfrgaaaaaaaaaaaa.1", Token: 2, Name: rude,
					SubmitterName: "e\u202eve", Phase: view.PhaseSuspended, Need: *total(2, 1),
					Started: at(26 * time.Hour),
				},
			},
			Notices: []view.Notice{{
				Text: "the clock of ben is ahead", Cause: "it leads by 12 s",
				Action: "set the clock of ben, or ask its owner to",
			}},
		},
		Sites: []view.SiteRow{
			{ID: "12D3KooWattic", Name: "attic", Domain: "home", Self: true, Total: total(4, 8)},
			{
				ID: "12D3KooWben", Name: "ben", Domain: "home", Connected: true,
				Total: total(16, 64), RoundTripMS: &ms, ZHour: &z, FaultIndex: 2, OS: "linux",
				Arch:  "amd64",
				Fault: &view.FaultRow{Index: 2, Shared: 0.4}, LastSeen: at(time.Second),
			},
			{ID: "12D3KooWcid", Domain: "home", LastSeen: at(3 * time.Hour), Total: total(2, 4)},
		},
	}
}

func manyJobs(n int) []view.JobView {
	var jobs []view.JobView
	for i := range n {
		jobs = append(jobs, view.JobView{
			ID: jobID(i), Name: fmt.Sprintf("words/%d", i), Phase: view.PhaseRunning, Count: 1,
			Tasks: view.PhaseCounts{view.PhaseRunning: 1}, Submitted: view.At(noon.Add(-time.Hour)),
		})
	}
	return jobs
}

func jobID(i int) grid.JobID {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return grid.JobID(fmt.Sprintf("mfrgmfrgmfrg%c%c%c%c", letters[i/17576%26], letters[i/676%26],
		letters[i/26%26], letters[i%26]))
}

// someJobs are one that is under way, one that waits, and one that has failed.
func someJobs() []view.JobView {
	jobs := manyJobs(3)
	jobs[0].Name, jobs[0].Count = "census of all words in the library", 200
	jobs[0].Started = view.At(noon.Add(-10 * time.Minute))
	jobs[0].Tasks = view.PhaseCounts{
		view.PhaseDone: 120, view.PhaseRunning: 30, view.PhaseStaging: 10, view.PhaseWaiting: 38,
		view.PhaseFailed: 2,
	}
	jobs[1].Phase, jobs[1].Tasks = view.PhaseWaiting, view.PhaseCounts{view.PhaseWaiting: 1}
	jobs[1].Hint = "busy: 1 of 1 cores taken until about 12:17"
	jobs[2].Name, jobs[2].Phase = "", view.PhaseFailed
	jobs[2].Tasks = view.PhaseCounts{view.PhaseFailed: 1}
	jobs[2].Submitted = view.At(noon.Add(-30 * time.Hour))
	return jobs
}

func someTasks(n int) []view.TaskView {
	var tasks []view.TaskView
	for i := range uint32(n) {
		tasks = append(tasks, view.TaskView{
			ID: grid.TaskID{Job: jobID(0), Index: i}.String(), Index: i, Phase: view.PhaseRunning,
			SiteName: "ben", Token: 1, Started: view.At(noon.Add(-95 * time.Second)),
			Attempts: []view.AttemptView{{Token: 1}},
		})
	}
	code := 3
	tasks[0].Phase, tasks[0].Ended, tasks[0].Code = view.PhaseFailed, view.At(noon), &code
	tasks[0].Cause = "exited with 3"
	return tasks
}

func siteOn(a *fakeAgent) *screen {
	top := SiteTop{Agent: a, Sharing: func(s view.AgentStatus, _ time.Time) string {
		if s.Paused {
			return "no: paused; siteagent resume ends that"
		}
		return "yes"
	}}
	return newScreen(&siteSubject{top: top}, a.site, noon)
}

// aFleet is one site of each kind.
func aFleet() []view.FleetRow {
	own := aSite().Status
	paused, busy := own, own
	paused.Name, paused.Paused, paused.Notices = "ben", true, nil
	busy.Owner = &view.OwnerView{Busy: true, Why: "an editor runs"}
	return []view.FleetRow{
		{Site: own.Site, Name: "attic", Self: true, Connected: true, Status: &own, Running: 2},
		{Site: "12D3KooWben", Name: "ben", Connected: true, Status: &paused},
		{Site: "12D3KooWeve", Name: "e\x1b[2Jve", Connected: true, Status: &busy},
		{Site: "12D3KooWshut", Name: "shut", Connected: true, Trouble: "its owner does not allow"},
		{Site: "12D3KooWaway", Trouble: "it is not connected"},
	}
}

func fleetOn(a *fakeAgent) *screen {
	top := FleetTop{Agent: a, Sharing: func(s view.AgentStatus, _ time.Time) string {
		if s.Paused {
			return "no: paused from afar by attic"
		}
		return "no: its owner has the machine"
	}}
	return newScreen(&fleetSubject{top: top}, FleetFacts{Sites: a.fleet}, noon)
}

func jobsOn(a *fakeAgent) *screen {
	top := JobsTop{
		Agent: a,
		Left: func(v view.JobView) string {
			if v.Count > 1 {
				return "~7 min left"
			}
			return ""
		},
		Why: func(v view.JobView, _ []view.TaskView) []string {
			if v.Hint == "" {
				return nil
			}
			return []string{v.Hint}
		},
	}
	first := JobsFacts{Jobs: a.jobs[:min(len(a.jobs), jobsAPage)]}
	return newScreen(&jobsSubject{top: top}, first, noon)
}

// run gives a screen messages, and makes the calls that it wants until there are none.
func run(s *screen, messages ...tea.Msg) {
	for _, m := range messages {
		for queue := s.update(m); len(queue) > 0; queue = queue[1:] {
			queue = append(queue, s.update(queue[0](context.Background()))...)
		}
	}
}

// typed are the messages of keys: single characters and names.
func typed(keys ...string) []tea.Msg {
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"tab": tea.KeyTab, "backspace": tea.KeyBackspace,
	}
	var messages []tea.Msg
	for _, k := range keys {
		if code, named := codes[k]; named {
			messages = append(messages, tea.KeyPressMsg{Code: code})
			continue
		}
		if k == "ctrl+c" {
			messages = append(messages, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
			continue
		}
		messages = append(messages, tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
	}
	return messages
}

func sized(width, height int) tea.Msg { return tea.WindowSizeMsg{Width: width, Height: height} }

var errAway = errors.New("dial: connection refused")
