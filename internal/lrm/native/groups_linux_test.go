package native_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
)

// All processes of a command are in each of its groups, and nobody else is: the thread that has
// started it has left them.
func TestACommandIsInItsGroupsAlone(t *testing.T) {
	t.Parallel()
	need(t, withBubblewrap)
	record := filepath.Join(t.TempDir(), "runs.jsonl")
	adapter, err := newAdapter(t.Context(), record, withBubblewrap)
	if err != nil {
		t.Fatal(err)
	}
	a := attempt(t, "sh", "-c", "echo up; sleep 600 & wait")
	p := lrmtest.Start(t, adapter, a)
	until(t, p, a, "up", func() bool { return text(t, a.StdoutPath()) == "up\n" })
	groups := native.GroupsLeft(record)
	if len(groups) == 0 {
		t.Skip("this user may make no control groups")
	}
	for _, group := range groups {
		members := threads(group)
		until(t, p, a, "its child", func() bool {
			members = threads(group)
			return slices.Contains(members, "sleep")
		})
		for _, comm := range members {
			if !slices.Contains([]string{"bwrap", "sh", "dash", "sleep"}, comm) {
				t.Errorf("%s is in %s, with %q", comm, group, members)
			}
		}
	}
	if err := p.Stop("it was seen"); err != nil {
		t.Fatal(err)
	}
	lrmtest.Wait(t, p)
	if left := native.GroupsLeft(record); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// threads are the names of the threads in a control group.
func threads(group string) (names []string) {
	for _, list := range []string{"tasks", "cgroup.threads"} {
		ids, err := os.ReadFile(filepath.Join(group, list))
		if err != nil {
			continue
		}
		for id := range strings.FieldsSeq(string(ids)) {
			comm, _ := os.ReadFile(filepath.Join("/proc", id, "comm"))
			names = append(names, strings.TrimSpace(string(comm)))
		}
	}
	return names
}
