package failing

import "testing"

// BenchmarkPlay plays the jobs of the experiment ckpt where failures are most frequent.
func BenchmarkPlay(b *testing.B) {
	jobs := Jobs{
		Count: 3000, Shortest: 3600, Longest: 36_000, Load: .5, Cost: 120, Restart: 60, Deadline: 2,
	}
	resources := Resources{Count: 128, MTBF: 4 * 3600, Spread: 1, Shape: 1, Repair: 1800}
	for seed := uint64(0); b.Loop(); seed++ {
		if _, err := Play(resources, jobs, Policy{Save: SaveLearned}, seed); err != nil {
			b.Fatal(err)
		}
	}
}
