package eval

import "testing"

// As many sites answer as are asked for, also when all jobs come before it is known who is near:
// one of them searches, and the others wait for what it finds. When each searched 32 answered.
func TestRepliesToABurst(t *testing.T) {
	const text = "grid n=400 cores=2..32 speed=.35 mem=2GiB latency=31ms latencyspread=.58\n" +
		"jobs n=50 burst=50 procs=4 time=.3 longest=5m load=.2 mem=.1..0.8 estimate=1..2\n" +
		"strategy name=16 on=mesh grain=16 map=seconds ttl=500ms replies=16\n"
	_, records := recordsOfRuns(t, Compare{Experiment: mustParse(t, text), First: 1, Seeds: 3})
	replies := 0.0
	for _, r := range records {
		replies += r.ends[0].replies / float64(len(records))
	}
	if replies > 17 {
		t.Errorf("%.1f sites answer each job, want 16", replies)
	}
}
