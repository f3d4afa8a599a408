//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// findBrowser is a browser that can be steered; the test skips where there is none.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser: install the package chromium-headless-shell to test the page")
	return ""
}

// browser is a browser that runs, and what is counted in all of its tabs.
type browser struct {
	ctx     context.Context //nolint:containedctx // chromedp keeps the browser in it
	checks  int
	failed  int
	pressed map[string]bool // labels of buttons
	seen    map[string]bool // likewise
}

// newBrowser starts one; it ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findBrowser(t)), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return &browser{ctx: ctx, pressed: map[string]bool{}, seen: map[string]bool{}}
}

// tab is a tab of the browser that shows one agent's page.
type tab struct {
	t   *testing.T
	in  *browser
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it
	url string

	mu     sync.Mutex
	errors []string // guarded by mu: what the console said
	abroad []string // guarded by mu: requests to other hosts
}

// wantAllPressed counts that no button was seen that nobody has pressed.
func (b *browser) wantAllPressed(t *testing.T) {
	t.Helper()
	for label := range b.seen {
		b.checks++
		if !b.pressed[label] {
			b.failed++
			t.Errorf("the button %q was never pressed", label)
		}
	}
}

// check counts one; it fails the test and goes on.
func (p *tab) check(ok bool, format string, args ...any) {
	p.t.Helper()
	p.in.checks++
	if !ok {
		p.in.failed++
		p.t.Errorf(format, args...)
	}
}

// look says how large a tab is, and in which colours.
type look struct {
	width  int64
	dark   bool
	height int64
}

// newTab opens a tab that notes errors and requests.
func newTab(t *testing.T, in *browser, url string, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t: t, in: in, ctx: ctx, url: url}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}}
	// The first order in a tab's context makes the tab, which lives as long as that context.
	err := errors.Join(
		chromedp.Do(ctx, chromedp.EmulateViewport(l.width, max(l.height, 900))),
		chromedp.Listen(ctx, p.hear), told(chromedp.Call(ctx, emulation.SetEmulatedMedia, media)),
		told(chromedp.Call(ctx, network.Enable, network.EnableParams{})),
		told(chromedp.Call(ctx, log.Enable, cdp.Empty{})),
	)
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return p
}

// told leaves out an answer in which nothing stands.
func told[T any](_ T, err error) error { return err }

// hear notes what must not be: errors, and requests to others.
func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, fmt.Sprintf("%+v", e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			p.errors = append(p.errors, fmt.Sprintf("console: %+v", e.Args[0]))
		}
	case *log.EventEntryAdded:
		// Answers such as 401 are shown by the page; what they say is checked there.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.errors = append(p.errors, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, p.url+"/") && !strings.HasPrefix(u, "data:") {
			p.abroad = append(p.abroad, u)
		}
	}
}

// do runs actions, which must not take long.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.shoot("failed")
		p.t.Fatalf("in the browser: %v", err)
	}
}

// leftBehind is the browser's answer to what was asked of a page that was just reloaded.
const leftBehind = "Inspected target navigated or closed"

// ask evaluates an expression, or the promise that it gives.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	for err != nil && strings.Contains(err.Error(), leftBehind) && ctx.Err() == nil {
		out, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	}
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return out
}

// await counts a check that an expression becomes true, also on the next page.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	const limit = 20 * time.Second
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-tick.C {
		holds, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && holds {
			p.check(true, "")
			return
		}
	}
	p.shoot("failed")
	p.check(false, "%s: not within %s", what, limit)
}

// awaitText counts a check that a text is shown.
func (p *tab) awaitText(text string) {
	p.t.Helper()
	p.await(text, "document.body.innerText.includes("+quoted(text)+")")
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always can be
	return string(out)
}

func quotedAll(texts []string) string {
	out, _ := json.Marshal(texts) // a list of texts always can be
	return string(out)
}

// buttons are the labels of all buttons.
func (p *tab) buttons() []string {
	p.t.Helper()
	return ask[[]string](p,
		`[...document.querySelectorAll("button")].map(b => b.innerText.trim())`)
}

// collect notes which buttons there are.
func (p *tab) collect() {
	p.t.Helper()
	for _, label := range p.buttons() {
		p.in.seen[label] = true
	}
}

// press presses the first button with that label that can be pressed, with the mouse. What was
// loaded meanwhile may have moved it away from the mouse: then again, a few times.
func (p *tab) press(label string) {
	p.t.Helper()
	p.collect()
	p.in.pressed[label] = true
	const tries = 5
	var hit string
	for range tries {
		ask[bool](p, `window.hits ??= document.addEventListener("click", e => {
			sessionStorage.hit = e.target.closest("button")?.innerText.trim() ?? e.target.tagName
		}, true) ?? true`)
		ask[string](p, `sessionStorage.hit = ""`) // it outlives a page that is left
		p.do(chromedp.Click(fmt.Sprintf(`//button[normalize-space()=%q and not(@disabled) and `+
			`not(@aria-disabled="true")]`, label)))
		if hit = ask[string](p, "sessionStorage.hit"); hit == label {
			break
		}
	}
	p.check(hit == label, "the mouse does not reach %q: it hits %q", label, hit)
	p.collect()
}

// shoot puts a picture of the whole page into the folder that MRS_PAGE_SHOTS names.
func (p *tab) shoot(name string) {
	dir := os.Getenv("MRS_PAGE_SHOTS")
	if dir == "" {
		return
	}
	const best = 100
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(best))
	if err != nil {
		p.t.Logf("no picture: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		p.t.Error(err)
	}
}

// clean counts that nothing went wrong, that nobody else was asked, and that nothing is cut off.
func (p *tab) clean(where string) {
	p.t.Helper()
	wide := ask[int](p, "document.documentElement.scrollWidth - window.innerWidth")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(len(p.errors) == 0, "%s: errors in the console: %q", where, p.errors)
	p.check(len(p.abroad) == 0, "%s: requests to others: %q", where, p.abroad)
	p.check(wide <= 0, "%s: the page is %d pixels wider than its window", where, wide)
	p.errors, p.abroad = nil, nil
}

// axePath is the checker of accessibility, where make page-tools has put it.
const axePath = "../internal/api/web/page/node_modules/axe-core/axe.min.js"

// accessible counts that axe-core finds nothing.
func (p *tab) accessible(where string) {
	p.t.Helper()
	program, err := os.ReadFile(axePath)
	if err != nil {
		p.t.Logf("%s: not checked by axe-core: run make page-tools", where)
		return
	}
	ask[bool](p, string(program)+";true")
	found := ask[[]string](p, `axe.run(document).then(r => r.violations.map(v => v.id +
		": " + v.help + ": " + v.nodes.slice(0, 3).map(n =>
			n.target + " " + n.failureSummary).join("; ")))`)
	p.check(len(found) == 0, "%s: axe-core finds:\n%s", where, strings.Join(found, "\n"))
}
