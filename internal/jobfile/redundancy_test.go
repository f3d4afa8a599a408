package jobfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// How often a task runs is read from the job file, and written as it was read.
func TestRedundancyIsRead(t *testing.T) {
	for text, want := range map[string]grid.Redundancy{
		"replicas: 1":               {Replicas: 1},
		"replicas: 3\nagreement: 2": {Replicas: 3, Agreement: 2},
		"replicas: auto":            {Auto: true},
		"verify: .02":               {Verify: .02},
		"verify: 0":                 {},
	} {
		f, err := jobfile.Parse([]byte("command: [x]\n"+text), options())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, f.Redundancy); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		d := jobfile.Format(grid.Job{Redundancy: want})
		got := jobfile.Document{Replicas: d.Replicas, Agreement: d.Agreement, Verify: d.Verify}
		if diff := cmp.Diff(jobfile.Document{
			Replicas: want.ReplicasWord(), Agreement: want.Agreement, Verify: want.Verify,
		}, got); diff != "" {
			t.Errorf("%s is written as (-want +got):\n%s", text, diff)
		}
	}
}

// What contradicts itself, or the kind of the job, is refused in the line of the key.
func TestMistakesOfRedundancy(t *testing.T) {
	for text, want := range map[string]string{
		"replicas: 9":                "2: replicas: want auto, or a whole number from 1 to 8",
		"replicas: some":             "2: replicas: want auto, or a whole number from 1 to 8",
		"agreement: 2":               "2: agreement: 2 copies cannot agree where replicas is 1",
		"agreement: 0":               "2: agreement: want a whole number from 1 to 8",
		"verify: 2":                  "2: verify: want a part from 0 to 1",
		"verify: often":              "2: verify: want a number",
		"replicas: 2\nverify: 1":     "3: verify: replicas are compared already",
		"replicas: auto\nverify: 1":  "3: verify: replicas are compared already",
		"split: never\nreplicas: 2":  "3: replicas: the parts of a split job",
		"placing: flood\nverify: .1": "3: verify: not with placing: flood",
		"deadline: +1h\nreplicas: 2": "3: replicas: not with a fixed start or a deadline",
		"reservation: aa\nverify: 1": "3: verify: not in a reservation",
		"count: 50000\nreplicas: 3":  "3: replicas: a task may run in 3 copies, so that",
	} {
		_, err := jobfile.Parse([]byte("wasm: w\n"+text), options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	_, err := jobfile.Parse([]byte("reserve: 2h\nstart: {at: 14:00}\nreplicas: 2"), options())
	if want := "3: replicas: a reservation only holds capacity"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("of a reservation: %v, want %s", err, want)
	}
}
