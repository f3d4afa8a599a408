package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The IDs of two sites.
const (
	adminSite   grid.SiteID = "12D3KooWAUHqyTnGWMqWuPoCtLKeJCahVL1xMswbJkm6yLT4REVJ"
	curiousSite grid.SiteID = "12D3KooWNPKT7qQdyFps13T1knqNpXz39mwnYTTxtomRZK8CL1PM"
)

// TestWhoMaySteer asks a site as the one that its owner allows to, and as another one: nothing is
// asked of the site itself unless its owner allows it and the question is one.
func TestWhoMaySteer(t *testing.T) {
	t.Parallel()
	a := newBare(t).Agent
	a.inForce.terms.Owner.Remote = []grid.SiteID{"damaged", adminSite}
	for _, c := range []struct {
		from           grid.SiteID
		asks, counted  string
		refused, asked string
	}{
		{adminSite, `{"do":"look"}`, "steering_look", "", "look"},
		{adminSite, `{"do":"pause","span_ms":5}`, "steering_pause", "", "pause"},
		{adminSite, `{"do":"resume"}`, "steering_resume", "", "resume"},
		{adminSite, `{"do":"erase"}`, "steering_invalid", "it understands look, pause and resume", ""},
		{adminSite, `{"do":`, "steering_invalid", "it understands look, pause and resume", ""},
		{adminSite, strings.Repeat(" ", maxSteerQuestion) + `{"do":"look"}`, "steering_invalid", "it und", ""},
		{curiousSite, `{"do":"look"}`, "steering_denied", "its owner does not allow it", ""},
		{curiousSite, `{"do":"resume"}`, "steering_denied", string(curiousSite), ""},
		{"", `{"do":"look"}`, "steering_denied", "its owner does not allow it", ""},
		{"damaged", `{"do":"look"}`, "steering_denied", "its owner does not allow it", ""},
	} {
		asked := ""
		a.OnSteering(func(_ context.Context, by grid.SiteID, q SteerQuestion) SteerAnswer {
			if by != c.from {
				t.Errorf("%s: asked for %q, want %q", c.asks, by, c.from)
			}
			asked = q.Do
			return SteerAnswer{}
		})
		answer := a.steered(t.Context(), c.from, strings.NewReader(c.asks+"\n"))
		if asked != c.asked || !strings.Contains(answer.Refused, c.refused) {
			t.Errorf("%s asks %.40s: asked %q, refused %q", c.from, c.asks, asked, answer.Refused)
		}
		if a.reports.counters()[c.counted] == 0 {
			t.Errorf("%s asks %.40s: %s is not counted", c.from, c.asks, c.counted)
		}
		if _, err := answer.OrRefusal(); (c.refused != "") != errors.Is(err, view.ErrDenied) {
			t.Errorf("%s asks %.40s: %v", c.from, c.asks, err)
		}
	}
}

// TestAnAnswerFromAfarIsPlain: what another site says of itself cannot steer the terminal on which
// it is shown.
func TestAnAnswerFromAfarIsPlain(t *testing.T) {
	t.Parallel()
	sent := SteerAnswer{Running: 7, Status: &view.AgentStatus{
		Name: "e\x1b[2Jve", Kinds: []string{"w\u009basm"}, DataQuotaBytes: 1<<62 + 1,
		Notices: []view.Notice{{Text: "a\u202eb"}}, Owner: &view.OwnerView{Why: "\r\n"},
	}}
	raw, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readSteering(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := sent
	plain := *sent.Status
	plain.Name, plain.Kinds = "e?[2Jve", []string{"w?asm"}
	plain.Notices, plain.Owner = []view.Notice{{Text: "a?b"}}, &view.OwnerView{Why: "??"}
	want.Status = &plain
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

// FuzzSteering reads an answer of whatever kind.
func FuzzSteering(f *testing.F) {
	f.Add(`{"refused":"no\u001b[2J"}`)
	f.Add(`{"status":{"name":"ben","running":[{"name":"a\u0007"}]},"running":1}`)
	f.Add(`[[[[{}]]]]`)
	f.Fuzz(func(t *testing.T, raw string) {
		answer, err := readSteering(strings.NewReader(raw))
		if err != nil {
			return
		}
		texts := []string{answer.Refused}
		if s := answer.Status; s != nil {
			texts = append(texts, s.Name, s.PausedBy, s.Version, strings.Join(s.Kinds, ""))
			for _, n := range s.Notices {
				texts = append(texts, n.Text, n.Cause, n.Action)
			}
		}
		if all := strings.Join(texts, ""); strings.ContainsFunc(all, unicode.IsControl) {
			t.Errorf("%q becomes %q", raw, all)
		}
	})
}
