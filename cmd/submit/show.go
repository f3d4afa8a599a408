package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List this agent's own submissions, newest first", Args: exactly(0, "no argument"),
		Example: "  submit list\n  submit list -o name",
		RunE: func(cmd *cobra.Command, _ []string) error {
			jobs, err := a.client.Jobs(cmd.Context())
			if err != nil {
				return err
			}
			return a.show(jobsResult(jobs, jobs))
		},
	}
}

func jobsResult(value any, jobs []view.JobView) result {
	r := result{value: value}
	for _, j := range jobs {
		r.names = append(r.names, string(j.ID))
	}
	r.table = func(t *table) {
		t.row("ID", "NAME", "PHASE", "TASKS", "CODE", "SUBMITTED", "|STARTED", "|ENDED", "|MOVED", "|HINT")
		for _, j := range jobs {
			t.row(string(j.ID), j.Name, string(j.Phase), counts(j.Tasks), code(j.Code), moment(j.Submitted),
				"|"+moment(j.Started), "|"+moment(j.Ended), "|"+strconv.FormatUint(uint64(j.Moves), 10), "|"+j.Hint)
		}
	}
	return r
}

// described is what describe prints as JSON: a job file with inputs as cid:, which
// job reads again, and the status, which it ignores.
type described struct {
	Job    jobfile.Document `json:"job"`
	Status status           `json:"status"`
}

// status is a job's status with all its tasks.
type status struct {
	view.JobView
	TaskList []view.TaskView `json:"task_list"`
}

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "status [ID]", Short: "Show how a job and its tasks stand, or how the agent does",
		Example: "  submit status\n  submit status mfrg\n  submit status mfrg --watch",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("want at most one job, have %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showAgent(cmd)
			}
			id, err := a.findJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if watch {
				return a.watch(cmd.Context(), id, func(v view.JobView) (bool, error) { return v.Phase.Ended(), a.ndjson(v) })
			}
			detail, err := a.client.Job(cmd.Context(), id)
			if err != nil {
				return err
			}
			tasks, err := a.client.AllTasks(cmd.Context(), id)
			if err != nil {
				return err
			}
			r := jobsResult(status{JobView: detail.Status, TaskList: tasks}, []view.JobView{detail.Status})
			jobTable := r.table
			r.table = func(t *table) {
				jobTable(t)
				a.taskRows(t, tasks)
				if hint := detail.Status.Hint; hint != "" && !detail.Status.Phase.Ended() {
					_ = t.writer.Flush() // the last Flush reports errors
					t.row(hint)
				}
			}
			return a.show(r)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print a line of JSON for each change until the job has ended")
	return cmd
}

func (a *app) taskRows(t *table, tasks []view.TaskView) {
	_ = t.writer.Flush() // the next table has other widths; the last Flush reports errors
	t.row("TASK", "PHASE", "SITE", "DISTANCE", "PLANNED", "P(KEPT)", "CODE", "ATTEMPTS", "|STARTED", "|ENDED", "|CAUSE", "|ITEM")
	for _, task := range tasks {
		t.row(task.ID, string(task.Phase), nameOf(task.SiteName, task.Site), number(task.Distance), a.local(task.Planned), view.Percent(task.Kept),
			code(task.Code), strconv.Itoa(len(task.Attempts)), "|"+moment(task.Started), "|"+moment(task.Ended), "|"+task.Cause, "|"+task.Item)
	}
	_ = t.writer.Flush() // as above
	for _, task := range tasks[:min(len(tasks), maxTaskLines)] {
		if text := a.planText(task); text != "" {
			t.row(task.ID + " is " + text)
		}
	}
}

func (a *app) showAgent(cmd *cobra.Command) error {
	s, err := a.client.Status(cmd.Context())
	if err != nil {
		return err
	}
	r := result{value: s, names: []string{string(s.Site)}}
	r.table = func(t *table) {
		state := "sharing"
		switch {
		case s.Stopping:
			state = "stopping"
		case s.Owner != nil && s.Owner.Busy && !s.Paused:
			state = "left to its owner: " + s.Owner.Why
		case s.Paused && s.PausedUntil.IsZero():
			state = "paused until resumed"
		case s.Paused:
			state = "paused until " + moment(s.PausedUntil)
		}
		t.row("SITE", nameOf(s.Name, s.Site))
		t.row("DOMAIN", string(s.Domain))
		t.row("STATE", state)
		t.row("CORES", fmt.Sprintf("%.1f of %.1f in use", float64(s.InUse.MilliCPUs)/1000, float64(s.Ceilings.MilliCPUs)/1000))
		t.row("MEMORY", grid.FormatBytes(s.InUse.MemoryBytes)+" of "+grid.FormatBytes(s.Ceilings.MemoryBytes)+" in use")
		t.row("TASKS", strconv.Itoa(len(s.Running)))
		t.row("PEERS", strconv.Itoa(s.Peers))
		t.row("DATA", grid.FormatBytes(s.DataUsedBytes)+" of "+grid.FormatBytes(s.DataQuotaBytes))
		for _, n := range s.Notices {
			t.row("NOTICE", strings.Join([]string{n.Text, n.Cause, n.Action}, " "))
		}
	}
	return a.show(r)
}

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe ID", Short: "Show a job in full: its job file, its status, every attempt",
		Example: "  submit describe mfrg\n  submit describe mfrg -o json | submit job - --parsable",
		Args:    exactly(1, "one job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := a.findJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			detail, err := a.client.Job(cmd.Context(), id)
			if err != nil {
				return err
			}
			tasks, err := a.client.AllTasks(cmd.Context(), id)
			if err != nil {
				return err
			}
			job, err := detail.Spec.Job()
			if err != nil {
				return fmt.Errorf("read answer of agent: %w", err)
			}
			value := described{Job: jobfile.Format(job), Status: status{JobView: detail.Status, TaskList: tasks}}
			r := jobsResult(value, []view.JobView{detail.Status})
			head := r.table
			r.table = func(t *table) {
				head(t)
				a.taskRows(t, tasks)
				attemptRows(t, tasks)
			}
			return a.show(r)
		},
	}
}

func attemptRows(t *table, tasks []view.TaskView) {
	_ = t.writer.Flush() // the next table has other widths; the last Flush reports errors
	t.row("ATTEMPT", "SITE", "DISTANCE", "X", "Y", "Z", "AWARDED", "ENDED", "CAUSE", "CODE")
	for _, task := range tasks {
		for _, at := range task.Attempts {
			t.row(fmt.Sprintf("%s#%d", task.ID, at.Token), nameOf(at.SiteName, at.Site), number(&at.Distance),
				number(&at.X), number(&at.Y), number(&at.Z), moment(at.Awarded), moment(at.Ended), at.Cause, code(at.Code))
		}
	}
}

func (a *app) sitesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sites", Short: "List the sites the agent knows", Args: exactly(0, "no argument"),
		Long: `List the sites the agent has seen within a week, those that are away included.
Z 1H is 1 - P(the site stays for an hour), from what this agent has seen of its
coming and going; 0 is best. SKEW is how far its clock is ahead of this one's. Below the table: how many sites are to be expected
an hour from now, by equation (11) of the thesis as it was meant and as printed.`,
		Example: "  submit sites\n  submit sites -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			sites, err := a.client.Sites(cmd.Context())
			if err != nil {
				return err
			}
			r := result{value: sites}
			for _, s := range sites {
				r.names = append(r.names, string(s.ID))
			}
			r.table = func(t *table) {
				t.row("NAME", "DOMAIN", "STATE", "CORES", "MEMORY", "GFLOPS", "RUNS", "FAULTS", "Z 1H", "SKEW", "SEEN", "DOWN", "UP", "|SINCE", "|WENT", "|RTT", "|ID", "|ADDRESSES")
				for _, s := range sites {
					siteRow(t, s)
				}
			}
			if err := a.show(r); err != nil {
				return err
			}
			return a.sayForecast(cmd)
		},
	}
}

// sayForecast tells how many sites are to be expected.
func (a *app) sayForecast(cmd *cobra.Command) error {
	s, err := a.client.Status(cmd.Context())
	if err != nil {
		return err
	}
	if f := s.Forecast; f != nil {
		past := "no forecast was checked yet"
		if f.Checked > 0 {
			past = fmt.Sprintf("%d forecasts were off by %+.1f on average", f.Checked, f.ErrorTerm)
		}
		a.say("in %.0f h: %.1f of %d sites, at least %d with 95 %% (as printed: %.1f); %s", f.Hours, f.Mean, f.Sites, f.Low, f.Paper, past)
	}
	return nil
}

// rate is a link's rate as people write it, "" for one that was not measured.
func rate(bps int64) string {
	switch {
	case bps <= 0:
		return ""
	case bps >= 1e9:
		return fmt.Sprintf("%.1fGbit/s", float64(bps)/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.1fMbit/s", float64(bps)/1e6)
	default:
		return fmt.Sprintf("%.1fkbit/s", float64(bps)/1e3)
	}
}

func siteRow(t *table, s view.SiteRow) {
	state, cores, memory := "away", "", ""
	switch {
	case s.Self:
		state = "this site"
	case s.Connected:
		state = "connected"
	case s.Trouble != "":
		state = s.Trouble
	}
	if s.Total != nil {
		cores = strconv.FormatFloat(float64(s.Total.MilliCPUs)/1000, 'f', -1, 64)
		memory = grid.FormatBytes(s.Total.MemoryBytes)
	}
	if s.Left != nil && s.Total != nil && *s.Left != *s.Total {
		cores = strconv.FormatFloat(float64(s.Left.MilliCPUs)/1000, 'f', -1, 64) + " of " + cores
		memory = grid.FormatBytes(s.Left.MemoryBytes) + " of " + memory
	}
	speed := ""
	if s.Total != nil && s.Total.MFLOPS > 0 {
		speed = strconv.FormatFloat(float64(s.Total.MFLOPS)/1000, 'f', 1, 64)
		if s.Left != nil && s.Left.MFLOPS != s.Total.MFLOPS {
			speed = strconv.FormatFloat(float64(s.Left.MFLOPS)/1000, 'f', 1, 64) + " of " + speed
		}
	}
	roundTrip := ""
	if s.RoundTripMS != nil {
		roundTrip = strconv.FormatFloat(*s.RoundTripMS, 'f', 1, 64) + "ms"
	}
	t.row(nameOf(s.Name, s.ID), string(s.Domain), state, cores, memory, speed, strings.Join(s.Kinds, ","),
		strconv.Itoa(s.FaultIndex), number(s.ZHour), skew(s.SkewSeconds), moment(s.LastSeen), rate(s.DownBps), rate(s.UpBps),
		"|"+moment(s.Since), "|"+strconv.FormatUint(s.Ends, 10), "|"+roundTrip, "|"+string(s.ID), "|"+strings.Join(s.Addresses, " "))
}
