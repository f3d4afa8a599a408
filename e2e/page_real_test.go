//go:build e2e

package e2e_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// link is a link to the site's page, as siteagent open prints it.
func (s *site) link(t *testing.T, flags ...string) string {
	t.Helper()
	args := append([]string{"--config", s.config, "open", "--print"}, flags...)
	out, err := exec.CommandContext(t.Context(), bin.siteagent, args...).Output()
	if err != nil {
		t.Fatalf("siteagent open: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// pageOfAgent uses the page of a real agent, with a job that runs at another one.
func pageOfAgent(t *testing.T, b *browser) {
	m := newMesh(t, oneCore, twoCores)
	link := m.sites[0].link(t)
	address, _, _ := strings.Cut(link, "/#")
	p := newTab(t, b, address, look{width: 1280})
	p.do(chromedp.Navigate(link))
	p.awaitText("Sharing: yes")
	p.awaitText("Sites: 2")
	// Once it follows the events, a job appears without being looked for.
	id := m.begin(t, []string{
		"--name", "ticking", "--cpus", "1.5", "--out", "/out/y:y.txt",
	}, "put=/out/y:result", "ticks=100")
	p.awaitText("ticking")
	m.awaitPhase(t, id, view.PhaseRunning)
	p.await("the job is seen to run",
		`document.querySelector("#jobs .phase").innerText == "running"`)
	p.do(chromedp.Click(`//a[normalize-space()="ticking"]`))
	p.press("Log")
	p.awaitText("tick 3")
	pageSteersAgent(p, m)
	p.await("the job is seen to end", `document.querySelector("#jobs .phase").innerText == "done"`)
	p.await("its result can be fetched", `document.querySelector("a.result") != null`)
	got := ask[string](p, `fetch(document.querySelector("a.result").href).then(r => r.text())`)
	p.check(got == "result", "the result is %q", got)
	p.accessible("a real agent")
	p.shoot("agent")
	p.clean("a real agent")
	pageOfGuest(t, b, m)
}

// pageSteersAgent changes a limit, pauses, and plans, and asks the agent whether it has heard.
func pageSteersAgent(p *tab, m *mesh) {
	p.t.Helper()
	first := m.sites[0]
	status := func() view.AgentStatus {
		s, err := first.client.Status(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		return s
	}
	slider := chromedp.CSS(`input[name="ceilings.cpus"]`)
	p.do(chromedp.Focus(slider), chromedp.KeyEvent(kb.ArrowLeft))
	p.awaitText("ceilings.cpus: 0.5, in force now")
	p.check(status().Ceilings.MilliCPUs == 500, "the agent gives %d thousandths of a core",
		status().Ceilings.MilliCPUs)
	p.check(strings.Contains(readFile(p.t, first.config), "0.5"), "it is not in the file")
	p.press("Pause")
	p.awaitText("Sharing: no: paused")
	p.check(status().Paused, "the agent is not paused")
	p.press("Resume")
	p.awaitText("Sharing: yes")
	p.check(!status().Paused, "the agent is still paused")
	p.press("Ask the sites now")
	p.awaitText("2 of 2 sites answered")
	p.shoot("agent-map")
}

// pageOfGuest shows a guest no more than a guest may see.
func pageOfGuest(t *testing.T, b *browser, m *mesh) {
	t.Helper()
	link := m.sites[0].link(t, "--guest")
	address, _, _ := strings.Cut(link, "/#")
	p := newTab(t, b, address, look{width: 1280})
	p.do(chromedp.Navigate(link))
	p.awaitText("guest: you can look, and change nothing")
	p.awaitText("ticking")
	p.awaitText("Sites: 2")
	p.check(ask[int](p, `document.querySelectorAll("#jobs a, .big, .wrong").length`) == 0,
		"a guest sees orders, links into jobs, or refusals")
	p.clean("a guest of a real agent")
	p.press("Sign out")
	p.awaitText("You are not signed in.")
}
