package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// thursday is a moment on some Thursday afternoon.
func thursday() time.Time { return time.Date(2026, time.March, 12, 15, 0, 0, 0, time.Local) }

// sharingSite is a site that shares with others and has nothing to complain about.
func sharingSite() view.AgentStatus {
	return view.AgentStatus{
		Name: "attic", Domain: "home", Members: 4, Peers: 2, Kinds: []string{"wasm"},
		Ceilings: view.Resources{MilliCPUs: 4000, MemoryBytes: 8 << 30},
		InUse:    view.Resources{MilliCPUs: 2000, MemoryBytes: 1 << 30},
		Running: []view.RunningTask{
			{SubmitterName: "ben", Phase: view.PhaseRunning},
			{SubmitterName: "ada", Phase: view.PhaseRunning},
			{SubmitterName: "ben", Phase: view.PhaseRunning},
		},
		Owner: &view.OwnerView{How: "watching 4 processors"},
		Counters: map[string]int64{
			"jobs_done": 3, "availability_learned": 9,
		},
		Reference:    &view.Standing{Job: "a job"},
		Availability: &view.Availability{Outlook: []view.Outlook{{Hours: 1, Z: .02}}},
	}
}

func TestStatusFitsAGlance(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printStatus(&out, sharingSite(), thursday()); err != nil {
		t.Fatal(err)
	}
	const want = `sharing     yes
for         ada (1 job), ben (2 jobs)
cores       2.0 of 4.0 in use
memory      1.0 GiB of 8.0 GiB in use
next pause  whenever you use the machine
site        attic, in domain home with 3 other sites, 2 connected
problem     none
more        siteagent status --all
`
	if out.String() != want {
		t.Errorf("status:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestStatusSaysWhoseWorkRuns(t *testing.T) {
	t.Parallel()
	for signers, want := range map[int]string{
		0: "", 1: "\nruns        work signed by 1 key only (signers)\n",
		3: "\nruns        work signed by 3 keys only (signers)\n",
	} {
		s := sharingSite()
		s.Signers = signers
		var out bytes.Buffer
		if err := printStatus(&out, s, thursday()); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(out.String(), "work signed by"); has != (signers > 0) ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%d signers:\n%s", signers, out.String())
		}
	}
}

func TestStatusSaysWhySharingRests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 12, 15, 0, 0, 0, time.UTC) // a Thursday
	said := []sharedCase{}
	free := func(n int64) *view.MachineView { return &view.MachineView{FreeDiskBytes: &n} }
	for _, c := range []struct {
		name   string
		change func(*view.AgentStatus)
		want   string
	}{
		{
			"paused", func(s *view.AgentStatus) { s.Paused = true },
			"no: paused; siteagent resume ends that",
		},
		{"paused for a while", func(s *view.AgentStatus) {
			s.Paused, s.PausedUntil = true, view.At(now.Add(time.Hour))
		}, "no: paused until 16:00; siteagent resume ends that"},
		{"paused from afar", func(s *view.AgentStatus) {
			s.Paused, s.PausedBy, s.PausedUntil = true, "oak", view.At(now.Add(time.Hour))
		}, "no: paused from afar by oak until 16:00; siteagent resume ends that"},
		{"jobs leave", func(s *view.AgentStatus) {
			s.Paused, s.Leaving, s.StopAt = true, true, view.At(now.Add(2*time.Hour))
			s.Running[0].Leaves = "paused"
		}, "no: paused; siteagent resume ends that; 1 job moves when it is saved and another " +
			"site offers, 2 jobs go on until 17:00"},
		{"paused till tomorrow", func(s *view.AgentStatus) {
			s.Paused, s.PausedUntil = true, view.At(now.Add(24*time.Hour))
		}, "no: paused until Fri 15:00; siteagent resume ends that"},
		{
			"stopping", func(s *view.AgentStatus) { s.Stopping = true },
			"no: stopping as soon as 3 jobs have ended",
		},
		{"busy", func(s *view.AgentStatus) {
			s.Owner.Busy, s.Owner.Why = true, "others use 2.0 of 2 cores"
			s.Running[0].Phase, s.Running[1].Phase = view.PhaseFrozen, view.PhaseSuspended
		}, "paused: you are using the machine (2.0 of 2 cores); 2 jobs are frozen and resume after 10 " +
			"s of quiet"},
		{"busy without jobs", func(s *view.AgentStatus) {
			s.Owner.Busy, s.Owner.Why, s.Running = true, "others use 2.0 of 2 cores", nil
		}, "paused: you are using the machine (2.0 of 2 cores); jobs are taken again after 10 s of " +
			"quiet"},
		{"outside the hours", func(s *view.AgentStatus) {
			s.Owner.Busy, s.Owner.Hours = true, "mon-fri 18:00-08:00"
		}, "no: you share this machine mon-fri 18:00-08:00; again from 18:00"},
		{"a share of the cores", func(s *view.AgentStatus) {
			s.Owner.Hours, s.Owner.Share = "mon-fri 08:00-18:00 25%, 18:00-08:00", 25
		}, "yes, 25 % of the cores until 18:00 (owner.hours)"},
		{
			"no kind of work", func(s *view.AgentStatus) { s.Kinds = nil },
			"no: this machine can run no jobs",
		},
		{"on battery", func(s *view.AgentStatus) {
			s.Owner = &view.OwnerView{Busy: true, Why: yield.WhyBattery}
		}, "paused: the machine runs on battery; jobs are taken again when it is plugged in " +
			"(owner.battery)"},
		{"with somebody at it", func(s *view.AgentStatus) {
			s.Owner = &view.OwnerView{Busy: true, Why: yield.InputAnswer{}.Judge().Why}
		}, "paused: owner.input: keyboard or mouse are in use; jobs are taken again when you are " +
			"away"},
		{"while data costs money", func(s *view.AgentStatus) {
			s.Owner = &view.OwnerView{Busy: true, Why: yield.WhyMetered}
		}, "paused: the connection is metered; jobs are taken again when it is not " +
			"(owner.metered)"},
		{"in the heat", func(s *view.AgentStatus) {
			hot := []yield.Sensor{{Name: "coretemp_core_0", Celsius: 91.4}}
			s.Owner = &view.OwnerView{Busy: true, Why: yield.NewHeat(90).Look(hot).Why}
		}, "paused: owner.heat: the processors have 91 °C, want less than 85 °C; jobs are " +
			"taken again when a thermometer says so"},
		{"less while somebody is there", func(s *view.AgentStatus) {
			s.Owner = &view.OwnerView{Share: 25, Memory: 50, InUse: true}
		}, "yes, 25 % of the cores and 50 % of the memory while you are there (in-use)"},
		{"by a program", func(s *view.AgentStatus) {
			s.Owner = &view.OwnerView{Busy: true, Why: yield.WhyHook + "a film"}
		}, "paused: owner.hook: a film; jobs are taken again when it says so"},
		{"full disk", func(s *view.AgentStatus) { s.Machine = free(1 << 20) }, "no: the disk is full"},
		{"less than you keep", func(s *view.AgentStatus) {
			s.Machine = free(1 << 30)
			s.Machine.KeptDiskBytes = 2 << 30
		}, "no: 1.0 GiB of the disk are free, and you keep 2.0 GiB (owner.free-disk)"},
		{"enough disk", func(s *view.AgentStatus) { s.Machine = free(1 << 30) }, "yes"},
		{"unknown disk", func(s *view.AgentStatus) { s.Machine = &view.MachineView{} }, "yes"},
		{"alone", func(s *view.AgentStatus) { s.Peers = 0 }, "yes, but no other site is connected"},
		{
			"all taken", func(s *view.AgentStatus) { s.InUse.MilliCPUs = 4000 },
			"yes, all cores that you give are in use",
		},
	} {
		s := sharingSite()
		if c.change(&s); sharing(s, now) != c.want {
			t.Errorf("%s: %q, want %q", c.name, sharing(s, now), c.want)
		}
		said = append(said, sharedCase{Name: c.name, Now: view.At(now), Status: s, Words: c.want})
	}
	compareShared(t, said)
}

// sharedCase holds the words for a status, which are the same here and on the page.
type sharedCase struct {
	Name   string           `json:"name"`
	Now    view.Time        `json:"now"`
	Status view.AgentStatus `json:"status"`
	Words  string           `json:"words"`
}

var update = flag.Bool("update", false, "write anew what the page's test compares")

// compareShared keeps the cases that the page is tested with (TestPage in e2e) as they are here: it
// says the same in another language.
func compareShared(t *testing.T, cases []sharedCase) {
	t.Helper()
	const file = "../../internal/api/web/testdata/sharing.json"
	text, err := json.MarshalIndent(cases, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, text) {
		t.Errorf("%s is out of date (%v): run go test ./cmd/siteagent -run WhySharing -update, "+
			"and change src/words/sharing.ts of the page", file, err)
	}
}

func TestNextPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		owner view.OwnerView
		want  string
	}{
		{"watching", view.OwnerView{How: "watching 4 processors"}, "whenever you use the machine"},
		{
			"hours",
			view.OwnerView{How: "watching 4 processors", Hours: "mon-fri 09:00-17:30"},
			"17:30 (shared mon-fri 09:00-17:30), and whenever you use the machine",
		},
		{
			"weekly",
			view.OwnerView{How: "off: owner.yield is false", Hours: "thu-sat 00:00-24:00"},
			"Sun 00:00 (shared thu-sat 00:00-24:00)",
		},
		{
			"at the machine",
			view.OwnerView{How: "off: owner.yield is false", Input: true},
			"while keyboard or mouse are in use",
		},
		{
			"a program alone",
			view.OwnerView{How: "off: owner.yield is false", Hook: "/ask"},
			"when owner.hook says so",
		},
		{"off", view.OwnerView{How: "off: owner.yield is false"}, "none by itself: owner.yield is false"},
		{
			"only looking",
			view.OwnerView{How: "watching 2 processors; jobs do not yield: owner.yield is false"},
			"none by itself: owner.yield is false",
		},
	} {
		if got := nextPause(view.AgentStatus{Owner: &c.owner}, thursday()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestProblemsComeWithWhatToDo(t *testing.T) {
	t.Parallel()
	notices := []view.Notice{
		{Text: "it is broken", Cause: "it fell", Action: "glue it"},
		{Text: "b"},
		{Text: "c"},
		{Text: "d"},
		{Text: "e"},
	}
	want := []line{
		{"problem", "it is broken: it fell"},
		{"  to do", "glue it"},
		{"problem", "b"},
		{"problem", "c"},
		{"problem", "and 2 more"},
	}
	got := problemLines(notices)
	if len(got) != len(want) {
		t.Fatalf("lines %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: %q, want %q", i, got[i], want[i])
		}
	}
}

// Owners are not to learn the words of a thesis, not even with --all.
func TestStatusHasPlainWords(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	if err := printAll(&all, sharingSite(), thursday()); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		"z for", "reference", "P(KEPT)", "counterfactual", "awarded", "stands still",
	} {
		if strings.Contains(all.String(), word) {
			t.Errorf("%q on the owner's screen:\n%s", word, all.String())
		}
	}
	if !strings.Contains(all.String(), "within 1 h: 2 %") ||
		!strings.Contains(all.String(), "availability learned 9") {
		t.Errorf("--all leaves something out:\n%s", all.String())
	}
}

// The status says who the controller is, with whom, and why there is none.
func TestStatusSaysWhoTheControllerIs(t *testing.T) {
	t.Parallel()
	three := []view.GroupMember{
		{Site: "a", Name: "attic"}, {Site: "b", Name: "den", Away: true}, {Site: "c"},
	}
	for want, s := range map[string]view.AgentStatus{
		"": {Members: 2, Controller: &view.Controller{Why: "few"}},
		"none: two are needed; members: c, den (away)": {
			Site: "x", Controller: &view.Controller{Why: "two are needed", Members: three[1:]},
		},
		"none: two are needed; den takes no part (no)": {
			Members: 3, Controller: &view.Controller{
				Why: "two are needed", Refusals: []view.GroupRefusal{
					{Site: "b", Name: "den", Reason: "no"},
				},
			},
		},
		"this site; members: c, den (away); the founder is away": {
			Site: "a", Controller: &view.Controller{
				Acting: "a", Here: true, Members: three, Notice: "the founder is away",
			},
		},
		"this site; watches 7 promises at 1 site; " +
			"den has failed, 3 of its 5 move and 1 have nowhere to go": {
			Members: 3, Controller: &view.Controller{
				Acting: "a", Here: true, Bookings: 7, Sites: 1, Failed: []view.ControlFailed{
					{Site: "b", Name: "den", Bookings: 5, Leaving: 3, Stuck: 1},
				},
			},
		},
		"this site; watches 7 promises at 1 site; " +
			"den has less than it has promised, 1 of its 5 move": {
			Members: 3, Controller: &view.Controller{
				Acting: "a", Here: true, Bookings: 7, Sites: 1, Failed: []view.ControlFailed{
					{Site: "b", Name: "den", Bookings: 5, Leaving: 1, Partly: true},
				},
			},
		},
		"attic; members: den (away), this site": {
			Site: "c", Controller: &view.Controller{
				Acting: "a", ActingName: "attic", Members: three,
			},
		},
	} {
		got := ""
		for _, l := range controllerLines(s) {
			got += l[1]
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := controllerLines(view.AgentStatus{Members: 9}); got != nil {
		t.Errorf("in a domain without a key: %v", got)
	}
}

// While standbys are missing the status says who does not stand by, and why.
func TestStatusSaysWhyStandbysAreMissing(t *testing.T) {
	refusals := []view.GroupRefusal{
		{Site: "b", Name: "den", Reason: "for nobody"},
		{Site: "c", Reason: "full"},
		{Site: "d", Reason: "full"},
		{Site: "e", Reason: "full"},
	}
	own := view.Group{Owner: "a", Acting: "a", Wanted: 2, Refusals: refusals}
	member := func(site grid.SiteID) view.GroupMember { return view.GroupMember{Site: site} }
	for want, members := range map[string][]view.GroupMember{
		"none yet; den does not stand by (for nobody), c does not stand by (full), " +
			"d does not stand by (full), 1 more does not": {member("a")},
		"f; den does not stand by (for nobody), c does not stand by (full), " +
			"d does not stand by (full), 1 more does not": {member("a"), member("f")},
		"f, g": {member("a"), member("f"), member("g")},
	} {
		own.Members = members
		if got := standbysText(own, "a"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	own.Members, own.Refusals = nil, nil
	if got := standbysText(own, "a"); got != "none yet" {
		t.Errorf("nobody has answered: %q", got)
	}
}

// The week in a line is in one unit, names few, and leaves out own jobs.
func TestWeekLines(t *testing.T) {
	t.Parallel()
	share := func(name string, seconds float64) view.GivenShare {
		return view.GivenShare{Site: grid.SiteID(name), Name: name, CoreSeconds: seconds, Tasks: 1}
	}
	own := share("me", 9e9)
	own.Own = true
	for want, g := range map[string]*view.Given{
		"12.3 core-hours, 41 tasks, for lab (9.0), ada (3.3)": {
			CoreSeconds: 44280, Tasks: 41, For: []view.GivenShare{
				share("lab", 32400), share("ada", 11880), own,
			},
		},
		"100 core-seconds, 1 task, for a (60), b (30), c (9), and 2 more": {
			CoreSeconds: 100, Tasks: 1, For: []view.GivenShare{
				share("a", 60), share("b", 30), share("c", 9), share("d", 1), share("e", 0),
			},
		},
	} {
		if got := weekLines(g); len(got) != 1 || got[0][1] != want {
			t.Errorf("weekLines = %q, want %q", got, want)
		}
	}
	if got := weekLines(&view.Given{For: []view.GivenShare{own}}); got != nil {
		t.Errorf("own jobs alone: %q", got)
	}
}
