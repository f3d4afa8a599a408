package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func statusOf(t *testing.T, n *node) view.AgentStatus {
	t.Helper()
	s, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// While the owner needs the machine its speed stays unknown, which is said and is
// no 0; then it is measured, and the other sites hear of it.
func TestMeasuredWhenQuiet(t *testing.T) {
	c := agent.Plans(t, 2)
	d := newDesk(t)
	known := c[1].Capability
	machine := hostinfo.Machine{Cores: 2, FreeMemory: -1, FreeDiskBytes: -1}
	c[1].Host = agent.Host{
		Machine: machine, Want: hostinfo.Want{Core: true}, Every: 20 * time.Millisecond,
		Capability: func(m hostinfo.Measured) grid.Capability {
			out := known
			out.CoreMFLOPS, out.Total.MFLOPS = m.CoreMFLOPS, 2*m.CoreMFLOPS
			return out
		},
	}
	c[1].Capability = c[1].Host.Capability(hostinfo.Measured{})
	c[1].Owner = agent.Owner{Yield: true, Rules: ownerRules(), Root: d.root}
	a := start(t, c[0])
	b := start(t, c[1], a)
	d.await("the measurement waits", func() bool {
		return strings.Contains(statusOf(t, b).Machine.Pending, "quiet")
	})
	text, err := json.Marshal(statusOf(t, b))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"core_mflops", `"mflops"`, "cpu_model"} {
		if strings.Contains(string(text), field) {
			t.Errorf("%s is in the status while it is unknown: %s", field, text)
		}
	}
	if r := statusOf(t, b).Reference; r == nil || r.Refusal == "" || r.X != nil {
		t.Errorf("reference %+v, want a refusal", r)
	}
	agent.Eventually(t, "the quiet machine is measured", func() bool {
		return statusOf(t, b).CoreMFLOPS > 0
	})
	s := statusOf(t, b)
	if s.Ceilings.MFLOPS != 2*s.CoreMFLOPS || s.Machine.CoreMFLOPS == nil ||
		*s.Machine.CoreMFLOPS != s.CoreMFLOPS {
		t.Errorf("status %+v, machine %+v", s, s.Machine)
	}
	agent.Eventually(t, "the other site knows it", func() bool {
		rows, err := a.Sites(t.Context())
		return err == nil && len(rows) == 2 && rows[1].CoreMFLOPS == s.CoreMFLOPS && rows[1].Left == nil
	})
	agent.Eventually(t, "the site has a place in the map", func() bool {
		r := statusOf(t, b).Reference
		return r != nil && r.Refusal == "" && r.X != nil && r.Y != nil && r.Z != nil && r.Distance != nil
	})
	if got := hostinfo.Recall(machine, c[1].StateDir); got.CoreMFLOPS != s.CoreMFLOPS {
		t.Errorf("kept %+v, want %d", got, s.CoreMFLOPS)
	}
}

// What other programs use is not offered; the others hear of the ceilings alone.
func TestOthersUseTheMachine(t *testing.T) {
	c := agent.Plans(t, 2)
	d := newDesk(t)
	c[1].Host = agent.Host{
		Machine: hostinfo.Machine{Cores: 2, FreeMemory: -1, FreeDiskBytes: -1},
		Every:   20 * time.Millisecond,
	}
	rules := ownerRules()
	rules.Looks = 100 // the site shows what is left rather than that it yields
	c[1].Owner = agent.Owner{Yield: true, Root: d.root, Rules: rules}
	a := start(t, c[0])
	b := start(t, c[1], a)
	began := time.Now()
	stat, err := os.OpenFile(filepath.Join(d.root, "proc/stat"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stat.Close()
	busy := func() { // ten cores of others, beside whatever this test uses itself; a core is stolen
		const ticks, others, stolen = 100, 9, 1
		n := time.Since(began).Seconds() * ticks
		if _, err = fmt.Fprintf(
			pwriter{stat}, "cpu  %010d 0 0 0 0 0 0 %010d\ncpu0 0\ncpu1 0\n", int64(others*n),
			int64(stolen*n),
		); err != nil {
			t.Fatal(err)
		}
	}
	agent.Eventually(t, "the site takes less", func() bool {
		busy()
		s := statusOf(t, b)
		return s.Left.MilliCPUs == 0 && s.Left.MFLOPS == 1
	})
	s := statusOf(t, b)
	if s.Ceilings.MilliCPUs != 2000 || s.Ceilings.MFLOPS != 8000 || s.CoreMFLOPS != 4000 {
		t.Errorf("ceilings %+v, a core %d; want them as they were", s.Ceilings, s.CoreMFLOPS)
	}
	if r := s.Reference; r == nil || r.Refusal == "" {
		t.Errorf("reference %+v, want a refusal for now", r)
	}
	if m := s.Machine; m.OtherCores == nil || m.StolenCores == nil ||
		*m.CoreMFLOPSNow >= *m.CoreMFLOPS {
		t.Errorf("machine %+v, want what others use", m)
	}
	rows, err := b.Sites(t.Context())
	if err != nil || rows[0].Left == nil || rows[0].Left.MilliCPUs != 0 ||
		rows[0].Total.MilliCPUs != 2000 {
		t.Errorf("own row %+v, %v", rows, err)
	}
	agent.Eventually(t, "the other site knows the ceilings", func() bool {
		rows, err := a.Sites(t.Context())
		return err == nil && len(rows) == 2 && rows[1].Total.MilliCPUs == 2000
	})
}

// Nobody looks unless told to.
func TestHostIsLeftAlone(t *testing.T) {
	n := start(t, agent.Plans(t, 1)[0])
	s := statusOf(t, n)
	if s.Machine != nil || s.Owner.OtherCores != nil || *s.Left != s.Ceilings {
		t.Errorf("status %+v", s)
	}
}
