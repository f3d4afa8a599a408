package view_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// Each copy has its sentence; a task that runs once has none.
func TestCopyLines(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0123456789abcdef", 4)
	task := view.TaskView{ID: "aaaaaaaaaaaaaaaa.0", Copies: []view.CopyView{
		{
			Number: 1, Phase: view.PhaseDone, Site: "12D3", SiteName: "shed", Digest: digest,
			Vote: "outvoted",
		},
		{Number: 2, Phase: view.PhaseRunning, Site: "12D4"},
		{Number: 3, Phase: view.PhaseWaiting, Site: "12D5", SiteName: "barn"},
	}}
	want := []string{
		"aaaaaaaaaaaaaaaa.0, copy 1 of 3 on shed: outvoted, digest 0123456789ab",
		"aaaaaaaaaaaaaaaa.0, copy 2 of 3 on 12D4: running",
		"aaaaaaaaaaaaaaaa.0, copy 3 of 3: waits for a site that has no other copy",
	}
	if diff := cmp.Diff(want, task.CopyLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	task.Copies = task.Copies[:1]
	if lines := task.CopyLines(); lines != nil {
		t.Errorf("of one copy: %v", lines)
	}
}
