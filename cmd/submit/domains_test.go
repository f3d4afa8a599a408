package main

import (
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// submit why shows what each domain has answered, in a line each.
func TestWhySaysWhatDomainsAnswered(t *testing.T) {
	b := newBench(t, ends(nil))
	b.agent.Table.Domains = []string{"own domain: full", "domain campus: .41"}
	_, id, _ := b.run(t, "", "run", "-d", "--parsable", "--wasm", b.path("w.wasm"))
	b.agent.Wait()
	exit, _, said := b.run(t, "", "why", strings.TrimSpace(id))
	const want = "own domain: full\ndomain campus: .41\n"
	if exit != 0 || !strings.Contains(said, want) {
		t.Errorf("why = %d %q, want %q in it", exit, said, want)
	}
}

func TestDomains(t *testing.T) {
	b := newBench(t, nil)
	exit, _, said := b.run(t, "", "domains")
	if exit != 0 || !strings.Contains(said, "no linked domain") {
		t.Errorf("domains = %d %q, want that there is none", exit, said)
	}
	invitation, err := b.agent.InviteDomain(t.Context(), "", 3600e9)
	if err != nil {
		t.Fatal(err)
	}
	row, err := b.agent.JoinDomain(t.Context(), invitation.Token)
	if err != nil {
		t.Fatal(err)
	}
	exit, shown, said := b.run(t, "", "domains")
	lines := strings.Split(shown, "\n")
	if exit != 0 || len(lines) < 2 || said != "" ||
		strings.Join(strings.Fields(lines[1]), " ") != string(row.Name)+" yes 0 0 0" {
		t.Errorf("domains = %d %q %q, want a line for %s", exit, shown, said, row.Name)
	}
	if _, shown, _ = b.run(t, "", "domains", "-o", "name"); shown != string(row.Name)+"\n" {
		t.Errorf("domains -o name: %q", shown)
	}
}

func TestJobName(t *testing.T) {
	for _, c := range []struct {
		name string
		by   grid.DomainID
		want string
	}{
		{"sum", "", "sum"},
		{"lab: sum", "lab", "sum (for domain lab)"},
		{"", "lab", "(for domain lab)"},
	} {
		if got := jobName(view.JobView{Name: c.name, For: c.by}); got != c.want {
			t.Errorf("%q for %q: %q, want %q", c.name, c.by, got, c.want)
		}
	}
}
