package eval

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WriteResults writes a run in the form of the simulator Batsim (P.-F. Dutot et al., "Batsim: a
// Realistic Language-Independent Resources and Jobs Management Systems Simulator", JSSPP 2016),
// for the tools that read it: jobs.csv and schedule.json in DIR/STRATEGY/seed-N, which is made.
// Both replace older ones.
func (r RunRecord) WriteResults(dir string) error {
	dir = filepath.Join(dir, FileName(r.Strategy), fmt.Sprintf("seed-%d", r.Seed))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("directory for results: %w", err)
	}
	jobs := r.batsimJobs()
	err := writeFile(filepath.Join(dir, "jobs.csv"), func(out io.Writer) error {
		return writeJobs(out, jobs)
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "schedule.json"), func(out io.Writer) error {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r.batsimSchedule(jobs))
	})
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	if err := write(out); err != nil {
		return err
	}
	return out.Flush()
}

// batsimJob is a line of jobs.csv, in seconds.
type batsimJob struct {
	id, workload, profile string
	submitted, requested  float64
	resources             int
	done                  bool
	start, finish         float64
	allocated             string
}

func (j batsimJob) execution() float64  { return j.finish - j.start }
func (j batsimJob) waiting() float64    { return j.start - j.submitted }
func (j batsimJob) turnaround() float64 { return j.finish - j.submitted }
func (j batsimJob) stretch() float64    { return j.turnaround() / max(j.execution(), 1e-6) }

// batsimJobs are the jobs in the order of submission. The first copy of a job that ends counts.
// Resources are the nodes of all sites, numbered on from site to site; one of which several jobs
// have a part is in the lists of all of them.
func (r RunRecord) batsimJobs() []batsimJob {
	allocated := r.allocated()
	jobs := make([]batsimJob, len(r.Jobs))
	for i, j := range r.Jobs {
		number := int64(i + 1)
		if r.numbers != nil {
			number = r.numbers[i]
		}
		b := batsimJob{
			id: strconv.FormatInt(number, 10), workload: r.Experiment,
			profile:   strconv.FormatFloat(j.Run.Seconds(), 'g', -1, 64),
			submitted: j.Submit.Seconds(), requested: j.Estimate.Seconds(),
			resources: int(math.Ceil(float64(j.Need.MilliCPUs) / 1000)),
		}
		if e := r.ends[i]; e.started {
			b.done, b.start, b.finish = true, e.start.Seconds(), e.finish.Seconds()
			b.allocated = intervals(allocated[i])
		}
		jobs[i] = b
	}
	return jobs
}

// allocated are the numbers of the nodes that each job had, by the copy of it that ended first.
func (r RunRecord) allocated() [][]int {
	first, nodes := make([]int, len(r.Grid.Sites)), 0
	for i, s := range r.Grid.Sites {
		first[i] = nodes
		nodes += nodesOf(s.MilliCPUs)
	}
	type copyOf struct{ number, end int64 }
	winner := make(map[int]copyOf)
	for _, h := range r.Holds {
		w, known := winner[h.Job]
		if !known || int64(h.To) < w.end {
			winner[h.Job] = copyOf{int64(h.Copy), int64(h.To)}
		}
	}
	all := make([][]int, len(r.Jobs))
	for _, p := range r.Places() {
		h := r.Holds[p.Hold]
		if int64(h.Copy) != winner[h.Job].number {
			continue
		}
		for n := int(p.Low + least); float64(n) < p.High-least; n++ {
			all[h.Job] = append(all[h.Job], first[h.Site]+n)
		}
	}
	return all
}

// nodesOf counts the nodes of a site; the last one may be a part of one.
func nodesOf(milliCPUs int64) int { return int(math.Ceil(float64(milliCPUs) / 1000)) }

// intervals writes numbers as Batsim does: 0-3 7 9-10.
func intervals(numbers []int) string {
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		k := i
		for k+1 < len(numbers) && numbers[k+1] == numbers[k]+1 {
			k++
		}
		part := strconv.Itoa(numbers[i])
		if k > i {
			part += "-" + strconv.Itoa(numbers[k])
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, " ")
}

// writeJobs writes the columns of Batsim. Energy is not known: -1, as Batsim has it then.
func writeJobs(out io.Writer, jobs []batsimJob) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{ // Flush tells
		"job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
		"requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
		"waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
		"metadata",
	})
	for _, j := range jobs {
		line := []string{
			j.id, j.workload, j.profile, decimal(j.submitted), strconv.Itoa(j.resources),
			decimal(j.requested),
		}
		if j.done {
			line = append(line, "1", "COMPLETED_SUCCESSFULLY", decimal(j.start),
				decimal(j.execution()), decimal(j.finish), decimal(j.waiting()), decimal(j.turnaround()),
				decimal(j.stretch()), j.allocated, "-1", "")
		} else {
			line = append(line, "0", "REJECTED", "", "", "", "", "", "", "", "", "")
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 6, 64) }

// batsimSchedule is schedule.json, in the order of the names. Means are over the jobs that ran.
type batsimSchedule struct {
	Version         string  `json:"batsim_version"`
	Joules          float64 `json:"consumed_joules"`
	Makespan        float64 `json:"makespan"`
	MaxSlowdown     float64 `json:"max_slowdown"`
	MaxTurnaround   float64 `json:"max_turnaround_time"`
	MaxWaiting      float64 `json:"max_waiting_time"`
	MeanSlowdown    float64 `json:"mean_slowdown"`
	MeanTurnaround  float64 `json:"mean_turnaround_time"`
	MeanWaiting     float64 `json:"mean_waiting_time"`
	Machines        int     `json:"nb_computing_machines"`
	GroupedSwitches int     `json:"nb_grouped_switches"`
	Jobs            int     `json:"nb_jobs"`
	Finished        int     `json:"nb_jobs_finished"`
	Killed          int     `json:"nb_jobs_killed"`
	Rejected        int     `json:"nb_jobs_rejected"`
	Success         int     `json:"nb_jobs_success"`
	MachineSwitches int     `json:"nb_machine_switches"`
	SuccessRate     float64 `json:"success_rate"`
	Computing       float64 `json:"time_computing"`
	Idle            float64 `json:"time_idle"`
	Sleeping        float64 `json:"time_sleeping"`
	SwitchingOff    float64 `json:"time_switching_off"`
	SwitchingOn     float64 `json:"time_switching_on"`
	Unavailable     float64 `json:"time_unavailable"`
}

func (r RunRecord) batsimSchedule(jobs []batsimJob) batsimSchedule {
	s := batsimSchedule{Version: "none: written by gridsim", Joules: -1, Jobs: len(jobs)}
	first, last := math.Inf(1), math.Inf(-1)
	for _, j := range jobs {
		if !j.done {
			s.Rejected++
			continue
		}
		s.Success++
		first, last = min(first, j.submitted), max(last, j.finish)
		s.MeanWaiting += j.waiting()
		s.MeanTurnaround += j.turnaround()
		s.MeanSlowdown += j.stretch()
		s.MaxWaiting = max(s.MaxWaiting, j.waiting())
		s.MaxTurnaround = max(s.MaxTurnaround, j.turnaround())
		s.MaxSlowdown = max(s.MaxSlowdown, j.stretch())
	}
	s.Finished = s.Success
	if n := float64(s.Success); n > 0 {
		s.Makespan, s.SuccessRate = last-first, n/float64(s.Jobs)
		s.MeanWaiting, s.MeanTurnaround = s.MeanWaiting/n, s.MeanTurnaround/n
		s.MeanSlowdown /= n
	}
	whole := 0.0
	end := time.Duration(0)
	for _, h := range r.Holds {
		end = max(end, h.To)
	}
	for _, e := range r.ends {
		s.Computing += e.held
	}
	for _, site := range r.Grid.Sites {
		s.Machines += nodesOf(site.MilliCPUs)
		whole += float64(site.MilliCPUs) / 1000
	}
	s.Idle = max(whole*end.Seconds()-s.Computing, 0)
	return s
}
