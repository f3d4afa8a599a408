package scenario

import "time"

// LogPart is the part of a log that an experiment's jobs are. In a line
//
//	jobs log=site.swf.gz from=24h for=168h first=5000 procs=64 load=.8 time=.5 data=38MiB
//
// log names a file in the Standard Workload Format, packed by gzip or not, beside the
// experiment's file. From it come when each job is submitted, its processors, its run time and
// the user's estimate. The other keys of jobs mean what they mean for jobs that are drawn, but
// without them nothing of the log is changed:
//
//	procs    wider jobs get so many processors; without it the nodes of the largest site if the
//	         grid's line says them, or else of the grid
//	load     times of submission are stretched or pressed so that this is the load
//	for      jobs that are submitted within it, from the first one on; without it all
//	longest  longer runs are cut
//	estimate is drawn, and the log's one is not used
type LogPart struct {
	Log   string        // its file, as written; empty: there is none, and jobs are drawn
	From  time.Duration // jobs that are submitted earlier are left out, counted from the first
	First int           // of the others so many at most; 0: all
}

// readLog reads the keys of a part of a log. Where there is one, numbers of the model that were
// not written are 0: as the log has it.
func (j *JobModel) readLog(l *line) {
	j.Log, _ = l.text("log")
	j.From = l.duration("from", 0, false)
	if l.has("first") {
		j.First = int(l.whole("first", 1, 1<<24))
	} else {
		l.known = append(l.known, "first")
	}
	if j.Log == "" {
		if j.From > 0 || j.First > 0 {
			l.fail("log", "", "a file with a log, for from=... and first=... say which part of it",
				"add log=FILE")
		}
		return
	}
	if l.has("n", "burst") {
		l.fail("log", "", "no n and burst beside it", "write first=... for so many jobs at most")
	}
	for key, forget := range map[string]func(){
		"procs":    func() { j.Procs = 0 },
		"load":     func() { j.Load = 0 },
		"for":      func() { j.For = 0 },
		"longest":  func() { j.Longest = 0 },
		"estimate": func() { j.EstLow, j.EstHigh = 0, 0 },
	} {
		if !l.has(key) {
			forget()
		}
	}
}
