package failing

// Summary holds means over jobs. Times are seconds.
type Summary struct {
	Waste       float64 // time on resources that was no work: checkpoints, restarts, work lost
	Met         float64 // part of the jobs that met their deadlines
	Completion  float64 // from submission to the end
	Checkpoints float64
	Failures    float64 // of resources while a job ran there
}

// Summarise measures what became of the jobs; a deadline is a multiple of a job's work. Of no
// jobs all is 0.
func Summarise(endings []Ending, deadline float64) Summary {
	var s Summary
	for _, e := range endings {
		s.Waste += e.Held - e.Work
		s.Completion += e.End - e.Submit
		s.Checkpoints += float64(e.Checkpoints)
		s.Failures += float64(e.Failures)
		if e.End-e.Submit <= deadline*e.Work {
			s.Met++
		}
	}
	n := max(float64(len(endings)), 1)
	return Summary{
		Waste: s.Waste / n, Met: s.Met / n, Completion: s.Completion / n, Checkpoints: s.Checkpoints / n,
		Failures: s.Failures / n,
	}
}
