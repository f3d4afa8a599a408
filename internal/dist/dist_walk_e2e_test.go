//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// serviceManager takes the place of systemctl --user for a user of the installed package: systemd
// does not look for units and programs in the folder, and need not be the init of this machine. It
// starts and stops what the package's unit names. ROOT, and HOME of the user, are in its
// environment.
const serviceManager = `#!/bin/sh
shift
unit=$ROOT/usr/lib/systemd/user/siteagent.service
wants=$HOME/.config/systemd/user/default.target.wants
case "$1 $2" in
"is-system-running ") echo running ;;
"enable --now")
	mkdir -p "$wants" && ln -s "$unit" "$wants/siteagent.service"
	start=$(sed -n "s|^ExecStart=/|$ROOT/|p" "$unit")
	timeout 240 $start >/dev/null 2>&1 &
	echo $! >"$ROOT/service.pid"
	until "$ROOT/usr/bin/siteagent" status >/dev/null 2>&1; do
		kill -0 "$(cat "$ROOT/service.pid")" || exit 1
		sleep 0.1
	done
	;;
"disable --now")
	kill "$(cat "$ROOT/service.pid")" 2>/dev/null
	rm "$ROOT/service.pid" "$wants/siteagent.service" && rmdir "$wants"
	;;
esac
`

// checkWalk goes from an empty account to a shared machine with the installed programs, and back,
// without an editor: join with its service, status, leave. The account is afterwards as before.
func checkWalk(t *testing.T, r root) {
	t.Log("a stand-in for systemctl --user starts what the unit names: systemd itself is not asked")
	bin := t.TempDir()
	manager := filepath.Join(bin, "systemctl")
	if err := os.WriteFile(manager, []byte(serviceManager), 0o700); err != nil {
		t.Fatal(err)
	}
	runs := func(home, name string, args ...string) *exec.Cmd {
		cmd := r.program(t, home, name, args...)
		cmd.Env = append(cmd.Env, "ROOT="+r.dir, "XDG_DATA_DIRS="+filepath.Join(r.dir, "usr/lib"),
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		return cmd
	}
	must := func(home, name string, args ...string) (out, notes string) {
		t.Helper()
		cmd := runs(home, name, args...)
		var said, noted bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &noted
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %q: %v: %s%s", name, args, err, said.String(), noted.String())
		}
		return said.String(), noted.String()
	}
	friend, mine := shortHome(t), shortHome(t)
	_, notes := must(friend, "siteagent", "init", "--name", "friend")
	if !strings.Contains(notes, "start the site with: systemctl --user enable --now siteagent\n") {
		t.Errorf("init does not say how the package's site is started: %s", notes)
	}
	host := runs(friend, "siteagent", "run")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill(); _ = host.Wait() })
	token := ""
	for limit := time.Now().Add(time.Minute); token == ""; time.Sleep(100 * time.Millisecond) {
		out, err := runs(friend, "siteagent", "invite").Output()
		if token = strings.TrimSpace(string(out)); err != nil && time.Now().After(limit) {
			t.Fatalf("the site that invites does not answer: %v", err)
		}
	}
	before := filesBelow(t, mine)
	out, _ := must(mine, "siteagent", "join", "--name", "mine", "--give", "50%", "--service", token)
	if !strings.HasPrefix(out, "my offers arrive: yes") {
		t.Errorf("joined, and it says %s", out)
	}
	out, _ = must(mine, "siteagent", "status")
	if !strings.Contains(out, "mine, in domain home with 1") {
		t.Errorf("the service shares nothing: %s", out)
	}
	link, _ := must(mine, "siteagent", "open", "--print")
	page := checkPage(t, strings.TrimSpace(link), "mine")
	_, notes = must(mine, "siteagent", "leave", "--purge")
	if !strings.Contains(notes, "sudo apt purge mrs") {
		t.Errorf("it does not say how the programs go: %s", notes)
	}
	if after := filesBelow(t, mine); !slices.Equal(before, after) {
		t.Errorf("left, and there is %q, before there was %q", after, before)
	}
	if answer, err := http.Get(page); err == nil {
		_ = answer.Body.Close()
		t.Errorf("left, and %s is still served: %s", page, answer.Status)
	}
	checkMachineWalk(t, r, runs, func() string {
		again, _ := must(friend, "siteagent", "invite")
		return strings.TrimSpace(again)
	})
}

// checkPage opens the page by a link as a browser does: the code that stands behind the # is traded
// for a session, by whose cookie the page's files and the agent's state of that name come. It signs
// out, and returns the page's address.
func checkPage(t *testing.T, link, name string) string {
	t.Helper()
	base, code, found := strings.Cut(link, "/#open=")
	jar, err := cookiejar.New(nil)
	if err != nil || !found {
		t.Fatalf("siteagent open --print says %q (%v)", link, err)
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	csrf := ""
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(
			t.Context(), method, base+path, strings.NewReader(body),
		)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		request.Header.Set("X-Mrs-Csrf", csrf)
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	want := func(method, path, body string, status int, part string) string {
		t.Helper()
		have, text := ask(method, path, body)
		if have != status || !strings.Contains(text, part) {
			t.Fatalf("%s %s = %d %s, want %d and %s", method, path, have, text, status, part)
		}
		return text
	}
	want("GET", "/", "", 200, "/assets/page.js")
	want("GET", "/assets/page.js", "", 200, "csrf")
	want("GET", "/api/v1/status", "", 401, "")
	text := want("POST", "/api/v1/session", `{"code":"`+code+`"}`, 200, `"guest":false`)
	var session struct{ Csrf string }
	if err := json.Unmarshal([]byte(text), &session); err != nil || session.Csrf == "" {
		t.Fatalf("the session is %s (%v)", text, err)
	}
	csrf = session.Csrf
	want("GET", "/api/v1/status", "", 200, `"name":"`+name+`"`)
	want("DELETE", "/api/v1/session", "", 204, "")
	want("GET", "/api/v1/status", "", 401, "")
	return base + "/"
}

// checkMachineWalk joins and leaves with siteagent-system, the command of the site that is a
// service of the machine. Its script is the package's, with its paths moved into a folder; who runs
// it and as whom are left out, which only root could do.
func checkMachineWalk(
	t *testing.T, r root, runs func(home, name string, args ...string) *exec.Cmd,
	invite func() string,
) {
	t.Helper()
	home := shortHome(t)
	text, err := os.ReadFile(filepath.Join(r.dir, "usr/sbin/siteagent-system"))
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/var/lib/mrs", home+"/lib", "/run/mrs", home+"/run",
		"/etc/mrs", home+"/etc", "/usr/bin/siteagent", r.dir+"/usr/bin/siteagent",
		`$(id -u)`, "0", "runuser -u mrs -- ", "").Replace(string(text))
	script := filepath.Join(home, "siteagent-system")
	if err := os.WriteFile(script, []byte(here), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "etc"} { // the package's, for the service
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before := filesBelow(t, home)
	start := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		cmd := runs(home, "siteagent", args...)
		cmd.Path, cmd.Args[0] = script, script
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &said
	}
	must := func(want string, args ...string) {
		t.Helper()
		cmd, said := start(args...)
		if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), want) {
			t.Fatalf("siteagent-system %q: %v: %s, want %s", args, err, said, want)
		}
	}
	must("my offers arrive: yes", "join", "--name", "machine", "--give", "50%", invite())
	service, said := start("run")
	for limit := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		cmd, out := start("status")
		if cmd.Wait() == nil && strings.Contains(out.String(), "machine, in domain home with 2") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the service of the machine shares nothing: %s", said)
		}
	}
	must("removed what was made for this site", "leave", "--purge")
	if err := service.Wait(); err != nil {
		t.Errorf("the service of the machine ended with %v: %s", err, said)
	}
	if after := filesBelow(t, home); !slices.Equal(before, after) {
		t.Errorf("left, and there is %q, before there was %q", after, before)
	}
}

// shortHome is an empty home whose name is short enough for a socket's.
func shortHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	return home
}

// filesBelow are the paths in a folder.
func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
