//go:build e2e

package e2e_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pageFacts are made answers of an agent in a mesh of so many sites.
type pageFacts struct {
	mu            sync.Mutex
	status        view.AgentStatus
	jobs          []view.JobView
	sites         []view.SiteRow
	members       view.Members
	offers        view.OfferTable
	rounds        []view.OfferTable // before these, oldest first
	given         []view.GivenDay
	configuration view.Configuration
	neighbours    []view.NeighbourRow
	fleet         []view.FleetRow
	tries         map[int][]view.AttemptView // of the array's tasks; of others: one
}

// arrayTasks is the number of tasks of the largest job.
const arrayTasks = 10_000

func newPageFacts(sites int) *pageFacts {
	f := &pageFacts{offers: madeOffers(sites), given: madeDays()}
	f.status = madeStatus(sites)
	for i := range sites {
		f.sites = append(f.sites, madeSite(i))
	}
	for i := range 30 {
		f.jobs = append(f.jobs, madeJob(i))
	}
	f.members = view.Members{Domain: "home", Invites: []view.OpenInvitation{}}
	for i := range 3 {
		f.members.Sites = append(f.members.Sites, view.MemberRow{
			Site: grid.SiteID(fmt.Sprintf("12D3KooWGuest%039d", i)),
			Name: fmt.Sprintf("guest-%d", i), Standing: "pending",
			Since: ago(time.Duration(i+1) * time.Hour), Note: "for the seminar",
		})
	}
	for name, value := range map[string]string{
		"ceilings.cpus": "6", "ceilings.memory": "8GiB", "ceilings.disk": "100GiB",
		"rates.down": "100Mbit/s", "rates.up": "20Mbit/s", "owner.yield": "true",
		"owner.input": "false", "owner.battery": "false", "owner.hours": "mon-fri 18:00-08:00",
		"owner.metered": "false", "in-use.cpus": "100", "in-use.memory": "50",
	} {
		f.set(name, value)
	}
	f.configuration.File = "siteagent.yaml"
	f.neighbours = []view.NeighbourRow{
		{Name: "lab", Domain: "lab", Reachable: true, Jobs: 3, Tasks: 9},
	}
	open := madeStatus(sites)
	open.Name = "oak"
	f.fleet = []view.FleetRow{
		{Site: "12D3KooWattic", Name: "attic", Self: true, Connected: true, Status: &f.status},
		{Site: "12D3KooWoak", Name: "oak", Connected: true, Status: &open, Running: 3},
		{Site: "12D3KooWshut", Name: "shut", Trouble: "its owner does not allow it"},
	}
	return f
}

func ago(d time.Duration) view.Time { return view.At(time.Now().Add(-d)) }

func madeStatus(sites int) view.AgentStatus {
	free, kept, memory, whole := int64(90<<30), int64(5<<30), int64(16<<30), int64(500<<30)
	used, jobs, x, y, z, d := 0.7, 2.1, .25, 0., .04, .253
	s := view.AgentStatus{
		Site: "12D3KooWself", Name: "attic", Domain: "home", Version: "test",
		Started: ago(time.Hour), Kinds: []string{"wasm", "command"},
		Ceilings: view.Resources{
			MilliCPUs: 6000, MemoryBytes: 8 << 30, DiskBytes: 100 << 30, NetBps: 1e8,
		},
		InUse: view.Resources{MilliCPUs: 2000, MemoryBytes: 3 << 30, DiskBytes: 4 << 30},
		Peers: sites - 1, Members: sites,
		Reach: view.Reach{Reachability: "public", Direct: sites - 2, Relayed: 1},
		Machine: &view.MachineView{
			Cores: 8, MemoryBytes: &memory, DiskBytes: &whole, FreeDiskBytes: &free,
			KeptDiskBytes: kept,
		},
		Owner: &view.OwnerView{
			How: "processors and pressure are watched", OtherCores: &used, JobCores: &jobs,
			Hours: "mon-fri 18:00-08:00, sat-sun 00:00-24:00",
		},
		Reference: &view.Standing{
			Job: "1 core and 1.0 GiB for 10 minutes, 100.0 MiB of data",
			X:   &x, Y: &y, Z: &z, Distance: &d,
		},
		Availability: &view.Availability{Outlook: []view.Outlook{
			{Hours: 1, Z: .04, Sure: "fairly sure"}, {Hours: 8, Z: .21, Sure: "unsure"},
		}},
		Notices: []view.Notice{
			{
				Text: "2 sites cannot reach this one", Cause: "the router lets nothing in",
				Action: "forward the port 4001, or set relay: true",
			},
			{Text: "the disk is slow", Cause: "it was measured at 12.0 Mbit/s"},
		},
		Week: madeWeek(),
	}
	for i, phase := range []view.Phase{view.PhaseRunning, view.PhaseSuspended} {
		s.Running = append(s.Running, view.RunningTask{
			Task: fmt.Sprintf("aaaaaaaaaaaaaaaa.%d", i), Token: 1, Submitter: "12D3KooWada",
			SubmitterName: "ada", Name: "render", Phase: phase,
			Need: view.Resources{MilliCPUs: 1000}, Started: ago(7 * time.Minute),
		})
	}
	return s
}

func madeWeek() *view.Given {
	return &view.Given{
		Since: view.Monday(time.Now()), CoreSeconds: 41_000, Tasks: 412, For: []view.GivenShare{
			{Site: "12D3KooWada", Name: "ada", CoreSeconds: 36_000, Tasks: 400},
			{Site: "12D3KooWbob", Name: "bob", CoreSeconds: 5000, Tasks: 12},
			{Site: "12D3KooWself", Name: "attic", Own: true, CoreSeconds: 900, Tasks: 2},
		},
	}
}

func madeSite(i int) view.SiteRow {
	trip, leaves := float64(1+i%40), float64(i%10)/20
	row := view.SiteRow{
		ID: grid.SiteID(fmt.Sprintf("12D3KooWSite%040d", i)), Name: fmt.Sprintf("site-%d", i),
		Domain: "home", Self: i == 0, Connected: i%7 != 3, RoundTripMS: &trip, ZHour: &leaves,
		FaultIndex: i % 5 / 4,
		Total: &view.Resources{
			MilliCPUs: int64(1000 * (1 + i%16)), MemoryBytes: int64(1+i%32) << 30,
		},
	}
	if !row.Connected {
		row.LastSeen = ago(time.Duration(i) * time.Minute)
	}
	return row
}

func madeJob(i int) view.JobView {
	j := view.JobView{
		ID: grid.JobID(fmt.Sprintf("job%013d", i)), Name: fmt.Sprintf("job-%d", i), Kind: "wasm",
		Phase: view.PhaseDone, Count: 20, Tasks: view.PhaseCounts{view.PhaseDone: 20},
		Submitted: ago(time.Duration(i+1) * time.Hour),
		Started:   ago(time.Duration(i+1) * time.Hour), Ended: ago(time.Duration(i) * time.Hour),
	}
	switch i {
	case 0:
		j.Name, j.Phase, j.Count, j.Ended = "array", view.PhaseRunning, arrayTasks, view.Time{}
		j.Tasks = view.PhaseCounts{
			view.PhaseDone: 3400, view.PhaseRunning: 600, view.PhaseWaiting: 5990,
			view.PhaseFailed: 10,
		}
	case 1:
		j.Name, j.Phase, j.Started, j.Ended = "later", view.PhaseWaiting, view.Time{}, view.Time{}
		j.Tasks = view.PhaseCounts{view.PhaseWaiting: 20}
		j.Hint = "no site has capacity now; asked again in 8 s"
	case 2:
		j.Phase, j.Tasks = view.PhaseRefused, view.PhaseCounts{view.PhaseRefused: 20}
		j.Reasons = []string{"64.0 GiB of memory: no site gives more than 16.0 GiB"}
	}
	return j
}

// madeOffers has a third of the sites refuse, and the others near for different causes.
func madeOffers(sites int) view.OfferTable {
	t := view.OfferTable{
		Job: "job0000000000000", Asked: ago(time.Minute), Round: 1, Members: uint32(sites),
		Answered: uint32(sites), Map: "thesis",
		Counterfactuals: []string{"at most 2.0 GiB of memory: 5 more sites"},
	}
	var refusals []view.OfferRow
	for i := range sites {
		row := view.OfferRow{
			Site: grid.SiteID(fmt.Sprintf("12D3KooWSite%040d", i)), Name: fmt.Sprintf("site-%d", i),
		}
		if i%3 == 2 {
			row.Never, row.Refusal = i%2 == 0, "not now: too little memory (wants 8.0 GiB)"
			refusals = append(refusals, row)
			continue
		}
		f := float64(i+1) / float64(sites)
		turn := float64(i)
		x, y, z := f*math.Abs(math.Sin(turn)), f*math.Abs(math.Cos(turn)), f*float64(i%4)/4
		distance := math.Sqrt(x*x + y*y + z*z)
		row.X, row.Y, row.Z, row.Distance = &x, &y, &z, &distance
		t.Rows = append(t.Rows, row)
	}
	slices.SortFunc(t.Rows, func(a, b view.OfferRow) int {
		return int(math.Copysign(1, *a.Distance-*b.Distance))
	})
	for i := range t.Rows {
		t.Rows[i].Rank = i + 1
	}
	t.Rows[0].Awarded = 40
	t.Rows = append(t.Rows, refusals...)
	return t
}

func madeDays() (days []view.GivenDay) {
	for i := range 30 {
		days = append(days, view.GivenDay{
			Date: time.Now().AddDate(0, 0, i-29).Format(time.DateOnly),
			For: []view.GivenShare{{
				Site: "12D3KooWada", Name: "ada", Tasks: 40,
				CoreSeconds: 20_000 * math.Abs(math.Sin(float64(i)/4)),
			}},
		})
	}
	return days
}

func (f *pageFacts) set(name, value string) {
	f.configuration.Settings = slices.DeleteFunc(f.configuration.Settings,
		func(s view.Setting) bool { return s.Name == name })
	f.configuration.Settings = append(f.configuration.Settings, view.Setting{
		Name: name, Value: value, From: "file", Place: "file, line 3", Live: true,
	})
	switch name {
	case "ceilings.cpus":
		var cores float64
		_, _ = fmt.Sscan(value, &cores)
		f.status.Ceilings.MilliCPUs = int64(cores * 1000)
	case "ceilings.memory":
		f.status.Ceilings.MemoryBytes, _ = grid.ParseBytes(value)
	case "ceilings.disk":
		f.status.Ceilings.DiskBytes, _ = grid.ParseBytes(value)
	}
}

// page is a page of the jobs.
func (f *pageFacts) page(prefix, before string, limit int) []view.JobView {
	from := 0
	page := []view.JobView{}
	for i, j := range f.jobs {
		if before != "" && string(j.ID) == before {
			from = i + 1
		}
		if prefix != "" && strings.HasPrefix(string(j.ID), prefix) {
			return append(page, j)
		}
	}
	if prefix != "" {
		return page
	}
	return append(page, f.jobs[from:min(from+limit, len(f.jobs))]...)
}

// tasks is a page of the array's.
func (f *pageFacts) tasks(from, limit int) []view.TaskView {
	tasks := []view.TaskView{}
	for i := from; i < min(from+limit, arrayTasks); i++ {
		code := 0
		tasks = append(tasks, view.TaskView{
			ID: fmt.Sprintf("job0000000000000.%d", i), Index: uint32(i), Phase: view.PhaseDone,
			Site: "12D3KooWsite", SiteName: fmt.Sprintf("site-%d", i%5), Started: ago(time.Hour),
			Ended: ago(time.Hour - time.Minute), Code: &code,
			Attempts: []view.AttemptView{{Token: 1}},
			Outputs: []view.OutputView{
				{Path: "/out/result.txt", CID: "bafkreiresult", Bytes: 1200},
			},
		})
		if tries := f.tries[i]; tries != nil {
			tasks[len(tasks)-1].Attempts = tries
		}
	}
	return tasks
}

func (f *pageFacts) orderJob(id grid.JobID, verb string) {
	for i := range f.jobs {
		if f.jobs[i].ID != id {
			continue
		}
		switch verb {
		case "hold":
			f.jobs[i].Held = true
		case "release":
			f.jobs[i].Held = false
		case "cancel":
			f.jobs[i].Phase = view.PhaseCancelled
		}
	}
}
