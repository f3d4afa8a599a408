//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
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
	writeFile(t, filepath.Join(m.work, "hush-file"), "hush-content")
	id := m.begin(t, []string{
		"--name", "ticking", "--cpus", "1.5", "--out", "/out/hush-output:hush-target.txt",
		"--env", "HUSH_NAME=hush-value", "--input", "hush-file:/in/hush-input",
	}, "print=hush-log", "put=/out/hush-output:result", "ticks=100")
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
	pageOfGuest(t, b, m, id)
	pageAfterRounds(t, b, m)
}

// pageAfterRounds opens the page after a job that finds no capacity was announced again and again:
// the answers to the rounds of before are there.
func pageAfterRounds(t *testing.T, b *browser, m *mesh) {
	t.Helper()
	first := m.begin(t, []string{"--name", "filling", "--cpus", "1.9"}, "ticks=600")
	m.awaitPhase(t, first, view.PhaseRunning)
	second := m.begin(t, []string{"--name", "asked-again", "--cpus", "1.9"}, "ticks=1")
	eventually(t, patience, "three rounds of the waiting job are over", func() bool {
		table, err := m.sites[0].client.Offers(t.Context(), second)
		return err == nil && table.Round > 3 && len(table.Rows) > 0
	})
	link := m.sites[0].link(t)
	address, _, _ := strings.Cut(link, "/#")
	p := newTab(t, b, address, look{width: 1280})
	p.do(chromedp.Navigate(link))
	p.do(chromedp.Click(`//a[normalize-space()="asked-again"]`))
	p.await("the rounds of before are there", roundSlider+`?.max >= 2`)
	p.do(chromedp.Focus(chromedp.CSS("#round")), chromedp.KeyEvent(kb.Home))
	p.await("the first round is shown",
		roundSlider+`.getAttribute("aria-valuetext").startsWith("round 1 of ")`)
	p.shoot("agent-rounds")
	m.submit(t, "cancel", string(first), string(second)).want(t, 0)
	p.clean("rounds of a real agent")
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

// pageOfGuest shows a guest no more than a guest may see, of the site and of a job.
func pageOfGuest(t *testing.T, b *browser, m *mesh, id grid.JobID) {
	t.Helper()
	link := m.sites[0].link(t, "--guest")
	address, _, _ := strings.Cut(link, "/#")
	p := newTab(t, b, address, look{width: 1280})
	p.do(chromedp.Navigate(link))
	p.awaitText("guest: you can look, and change nothing")
	p.awaitText("ticking")
	p.awaitText("Sites: 2")
	p.do(chromedp.Click(`//a[normalize-space()="ticking"]`))
	p.awaitText("done, 100 %")
	p.await("the map is there", `document.querySelector(".map path.site") != null`)
	p.await("its task is there", `document.querySelectorAll("#job tbody tr").length > 0`)
	p.check(ask[int](p, `document.querySelectorAll(".big, .wrong, a.result").length`) == 0,
		"a guest sees orders, results, or refusals")
	p.wantHushed(id)
	p.shoot("agent-guest")
	p.clean("a guest of a real agent")
	p.press("Sign out")
	p.awaitText("You are not signed in.")
}

// guestsAnswers asks for all of some paths, and gives the answers one below the other.
const guestsAnswers = `Promise.all(%s.map(path => fetch("/api/v1" + path).then(
	async r => path + " " + r.status + " " + await r.text()))).then(all => all.join("\n"))`

// wantHushed counts that no answer that a guest can get, on any path of the interface, has a word
// of the job's command, environment, files or output. All of these begin with hush.
func (p *tab) wantHushed(id grid.JobID) {
	p.t.Helper()
	spec := readFile(p.t, "../internal/api/openapi.yaml")
	filled := strings.NewReplacer("{id}", string(id), "{site}", "a", "{name}", "a", "{cid}", "b")
	var paths []string
	for _, found := range regexp.MustCompile(`(?m)^  (/\S+):$`).FindAllStringSubmatch(spec, -1) {
		paths = append(paths, filled.Replace(found[1]))
	}
	paths = append(paths, "/tasks/"+string(id)+".0/logs", "/jobs?prefix="+string(id)+"&limit=1")
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == "/events" })
	text := ask[string](p, fmt.Sprintf(guestsAnswers, quotedAll(paths)))
	shown := strings.Count(text, fmt.Sprintf(" %d ", http.StatusOK))
	p.check(len(paths) > 40 && shown >= 9, "of %d paths a guest is shown %d", len(paths), shown)
	p.check(!strings.Contains(strings.ToLower(text), "hush"), "a guest is told %s", text)
	p.check(strings.Contains(text, string(id)+`.0"`), "a guest is told nothing of it: %s", text)
	page := ask[string](p, "document.documentElement.outerHTML")
	p.check(!strings.Contains(strings.ToLower(page), "hush"), "the page of a guest has %s", page)
	events := ask[string](p, `fetch("/api/v1/events?after=0").then(async r => {
		const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
		for (let text = "";;) {
			const { value } = await reader.read();
			text += value;
			if (text.includes("data: ")) { void reader.cancel(); return text; }
		}
	})`)
	p.check(!strings.Contains(strings.ToLower(events), "hush"), "a guest follows %s", events)
}
