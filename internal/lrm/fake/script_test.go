package fake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Each argument is one word of the script; what it does not know means nothing.
func TestTheWordsOfAScript(t *testing.T) {
	for _, c := range []struct {
		args []string
		want Behaviour
	}{
		{nil, Behaviour{}},
		{[]string{"run=2s", "exit=7"}, Behaviour{Run: 2 * time.Second, Code: 7}},
		{[]string{"run=-1s"}, Behaviour{Run: -time.Second}},
		{[]string{"run=x", "exit=x", "lines=", "memory", "disk=1K"}, Behaviour{}},
		{[]string{"print=a=b", "print=c"}, Behaviour{Stdout: "a=b\nc\n"}},
		{[]string{"lines=10", "memory=11", "disk=12"}, Behaviour{Lines: 10, Memory: 11, Disk: 12}},
		{
			[]string{"put=/a:x:y", "put=/b", "other=1", "RUN=1s", ""},
			Behaviour{Files: map[string]string{"/a": "x:y", "/b": ""}},
		},
	} {
		got := byArgs(lrm.Attempt{Task: grid.Task{Args: c.args}})
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.args, diff)
		}
	}
}
