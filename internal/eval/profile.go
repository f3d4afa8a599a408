package eval

// Profile says how wide and long the jobs of a log are, and when they come.
type Profile struct {
	Model string  // that drew them
	Jobs  int     // how many
	Procs []Share // at most so many processors: 1, 2, 4 and so on, until all jobs have
	Runs  []Share // at most so many seconds: the same
	Hours []Share // submitted in that hour of the day, 0 to 23; the log begins at midnight
}

// Share is the part of the jobs that have at most so many processors or seconds, or that hour.
type Share struct{ At, Part float64 }

// Profile counts the jobs that Write writes.
func (j JobLog) Profile() (Profile, error) {
	records, err := j.records()
	if err != nil {
		return Profile{}, err
	}
	p := Profile{Model: j.model(), Jobs: len(records)}
	procs, runs, hours := make([]int64, p.Jobs), make([]int64, p.Jobs), [24]int{}
	for i, r := range records {
		procs[i], runs[i] = r.UsedProcs, int64(r.Run)
		hours[r.Submit/3600%24]++
	}
	p.Procs, p.Runs = upTo(procs), upTo(runs)
	for hour, jobs := range hours {
		p.Hours = append(p.Hours, Share{float64(hour), float64(jobs) / float64(p.Jobs)})
	}
	return p, nil
}

// upTo is the parts of values that are at most 1, 2, 4 and so on: up to the first power of two that
// none exceeds, and at least up to 2.
func upTo(values []int64) []Share {
	var shares []Share
	for limit, below := int64(1), 0; below < len(values) || limit <= 2; limit *= 2 {
		below = 0
		for _, v := range values {
			if v <= limit {
				below++
			}
		}
		shares = append(shares, Share{float64(limit), float64(below) / float64(len(values))})
	}
	return shares
}
