package failing

import "testing"

// Where the fault index alone decides, submitters that tell each other what they have counted have
// fewer failures than those that do not.
func TestSharedFaultsSaveFailures(t *testing.T) {
	r := Resources{Count: 128, MTBF: 4 * 3600, Spread: 1, Shape: 1, Repair: 1800}
	j := Jobs{
		Count: 1500, Shortest: 3600, Longest: 36000, Load: .5, Cost: 120, Restart: 60, Deadline: 2,
	}
	const seeds = 3
	failures := map[string]float64{}
	for seed := range uint64(seeds) {
		for name, p := range map[string]Policy{
			"one": {Save: SaveEvery, Interval: 1800, Place: PlaceFIBR},
			"own": {Save: SaveEvery, Interval: 1800, Place: PlaceFIBR, Submitters: 30},
			"shared": {
				Save: SaveEvery, Interval: 1800, Place: PlaceFIBR, Submitters: 30, Share: true,
			},
		} {
			endings, err := Play(r, j, p, seed)
			if err != nil {
				t.Fatal(err)
			}
			failures[name] += Summarise(endings, j.Deadline).Failures / seeds
		}
	}
	t.Logf("failures a job: one submitter %.3f; of 30 each by itself %.3f, shared %.3f",
		failures["one"], failures["own"], failures["shared"])
	if failures["shared"] > .97*failures["own"] {
		t.Errorf("sharing saves too little: %v", failures)
	}
}
