//go:build e2e

package main

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// TestPackage makes the package for this machine, installs it below a folder, shares a site with
// what is in it, and removes it again, until nothing is left.
func TestPackage(t *testing.T) {
	deb := makePackage(t)
	root := newRoot(t)
	before := root.files(t)
	said := root.dpkg(t, "--install", deb)
	if !strings.Contains(said, "nothing is shared yet") ||
		!strings.Contains(said, "siteagent join") {
		t.Errorf("installed, and it does not say what to do next: %s", said)
	}
	t.Run("pages", func(t *testing.T) { checkPages(t, root) })
	t.Run("completions", func(t *testing.T) { checkCompletions(t, root) })
	t.Run("units", func(t *testing.T) { checkUnits(t, root) })
	t.Run("site", func(t *testing.T) { checkSite(t, root) })
	t.Run("walk", func(t *testing.T) { checkWalk(t, root) })

	root.dpkg(t, "--remove", "mrs")
	if left := added(before, root.files(t)); len(left) != 0 {
		t.Errorf("removed, and there is still %q", left)
	}
	root.dpkg(t, "--install", deb)
	// What its owner has to decide about stays, and is named; settings go with a purge.
	key := filepath.Join(root.dir, "var/lib/mrs/identity.key")
	settings := filepath.Join(root.dir, "etc/mrs/siteagent.yaml")
	for _, file := range []string{key, settings} {
		if err := os.WriteFile(file, []byte("anything"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said = root.dpkg(t, "--remove", "mrs")
	if _, err := os.Stat(settings); err != nil {
		t.Errorf("removed, not purged, and the settings are gone: %v", err)
	}
	said += root.dpkg(t, "--purge", "mrs")
	if !strings.Contains(said, "/var/lib/mrs stays") {
		t.Errorf("it does not say what stays: %s", said)
	}
	left := added(before, root.files(t))
	want := []string{"var/lib/mrs", "var/lib/mrs/identity.key", "etc/passwd: mrs", "etc/group: mrs"}
	if !slices.Equal(left, want) { // with the user to whom the files belong
		t.Errorf("purged, and there is still %q, want %q", left, want)
	}
}

// makePackage makes all that a release is made of, for this machine.
func makePackage(t *testing.T) (deb string) {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	t.Setenv("SOURCE_DATE_EPOCH", "1764288000")
	r := release{scratch: t.TempDir(), out: t.TempDir(), plain: true}
	if err := r.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.make(t.Context(), here()); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{
		".deb", ".rpm", ".tar.gz", ".siteagent.cdx.json", ".submit.cdx.json", ".gridsim.cdx.json",
	} {
		if _, err := os.Stat(r.base(here()) + end); err != nil {
			t.Error(err)
		}
	}
	return r.base(here()) + ".deb"
}

// TestPackagesAreTheSame makes packages of the same files twice, in different folders.
func TestPackagesAreTheSame(t *testing.T) {
	var sums []string
	for range 2 {
		t.Run("", func(t *testing.T) {
			r, all := anyRelease(t)
			if err := r.packages(t.Context(), target{"linux", "arm64"}, all); err != nil {
				t.Fatal(err)
			}
			if err := writeSums(r.out); err != nil {
				t.Fatal(err)
			}
			sum, err := os.ReadFile(filepath.Join(r.out, sumsFile))
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, string(sum))
		})
	}
	if len(sums) != 2 || sums[0] != sums[1] || strings.Count(sums[0], "\n") != 2 {
		t.Errorf("two times the same gives %q", sums)
	}
}

// root is a folder with a package database of its own, and a user of each kind.
type root struct {
	dir  string
	wrap []string // before dpkg
}

func newRoot(t *testing.T) root {
	t.Helper()
	r := root{dir: t.TempDir()}
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed: on a system of another kind install its package dpkg")
	}
	if os.Getuid() != 0 {
		fakeroot, err := exec.LookPath("fakeroot")
		if err != nil {
			t.Skip("only root may install: run this as root, or install the package fakeroot")
		}
		r.wrap = []string{fakeroot}
	}
	for file, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n",
		"etc/shadow": "root:*:1::::::\n", "etc/gshadow": "root:*::\n", "etc/.pwd.lock": "",
		"etc/passwd-": "", "etc/group-": "", "etc/shadow-": "", "etc/gshadow-": "",
		"var/lib/dpkg/status": "", "var/lib/dpkg/info/format": "1\n",
	} {
		path := filepath.Join(r.dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(r.dir, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// dpkg runs dpkg for the folder. Its scripts run outside of it, and are told where it is.
func (r root) dpkg(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{
		"--root=" + r.dir, "--log=" + filepath.Join(r.dir, "var/lib/dpkg/log"),
		"--force-script-chrootless", "--force-depends",
	}, args...)
	args = append(append(slices.Clone(r.wrap), "dpkg"), args...)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

// files are the paths in the folder, but those of the package database, and lines of users in it.
func (r root) files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(r.dir, func(path string, _ fs.DirEntry, err error) error {
		below, _ := filepath.Rel(r.dir, path)
		if !strings.HasPrefix(below, "var/lib/dpkg/") {
			all = append(all, below)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"etc/passwd", "etc/group"} {
		text, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(line, ":")
			all = append(all, file+": "+name)
		}
	}
	return all
}

// added are the paths that were not there before.
func added(before, now []string) []string {
	return slices.DeleteFunc(now, func(path string) bool { return slices.Contains(before, path) })
}

// program is the command that runs an installed program for a user who has nothing else. It is
// killed when it takes longer than all of the test may.
func (r root) program(t *testing.T, home, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(r.dir, "usr/bin", name), args...)
	cmd.Dir = home
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + home,
		"MRS_OWNER_YIELD=false", "MRS_OWNER_BATTERY=true", "MRS_API_LISTEN=",
		"MRS_LISTEN=/ip4/127.0.0.1/tcp/0",
	}
	return cmd
}

// checkPages compares the manual pages with the commands that --help names.
func checkPages(t *testing.T, r root) {
	pages := 0
	var walk func(program string, path []string)
	walk = func(program string, path []string) {
		name := strings.Join(append([]string{program}, path...), "-")
		if _, err := os.Stat(filepath.Join(r.dir, "usr/share/man/man1", name+".1.gz")); err != nil {
			t.Errorf("no manual page: %v", err)
		}
		pages++
		help, err := r.program(t, t.TempDir(), program, append(path, "--help")...).Output()
		if err != nil {
			t.Fatalf("%s %v --help: %v", program, path, err)
		}
		_, commands, _ := strings.Cut(string(help), "Available Commands:\n")
		commands, _, _ = strings.Cut(commands, "\n\n")
		for line := range strings.Lines(commands) {
			if verb := strings.Fields(line); len(verb) > 0 && verb[0] != "help" {
				walk(program, append(slices.Clone(path), verb[0]))
			}
		}
	}
	for _, program := range programNames() {
		walk(program, nil)
	}
	if pages < 60 {
		t.Errorf("%d commands were found", pages)
	}
}

// checkCompletions lets each shell that is here read its completions.
func checkCompletions(t *testing.T, r root) {
	for shell, place := range map[string]string{
		"bash": "bash-completion/completions/NAME", "zsh": "zsh/vendor-completions/_NAME",
		"fish": "fish/vendor_completions.d/NAME.fish",
	} {
		path, missing := exec.LookPath(shell)
		for _, program := range programNames() {
			file := filepath.Join(r.dir, "usr/share", strings.ReplaceAll(place, "NAME", program))
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
			if missing != nil {
				t.Logf("%s cannot be tried: %s is not installed", file, shell)
				continue
			}
			args := []string{"-n", file}
			if shell == "bash" {
				try := `source "$1"; complete -p "$2"`
				args = []string{"--norc", "-ec", try, "try", file, program}
			}
			if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", file, err, out)
			}
		}
	}
}

// checkUnits lets systemd read the units, with the programs and users that are here.
func checkUnits(t *testing.T, r root) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: install the package systemd")
	}
	for _, kind := range []string{"system", "user"} {
		text, err := os.ReadFile(filepath.Join(r.dir, "usr/lib/systemd", kind, "siteagent.service"))
		if err != nil {
			t.Fatal(err)
		}
		here := strings.NewReplacer("/usr/bin/", filepath.Join(r.dir, "usr/bin")+"/", "User=mrs",
			"User=daemon", "Group=mrs", "Group=daemon").Replace(string(text))
		file := filepath.Join(t.TempDir(), "siteagent.service")
		if err = os.WriteFile(file, []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(
			analyze, "verify", "--"+kind, "--man=no", "--recursive-errors=no", file,
		)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("siteagent.service:")) {
			t.Errorf("%s: %v: %s", kind, err, out)
		}
	}
}

// checkSite makes a site with the installed programs, lets it run a job and stops it. The agent is
// told where the service manager listens.
func checkSite(t *testing.T, r root) {
	home := shortHome(t)
	must := func(name string, args ...string) string {
		t.Helper()
		out, wrong := r.program(t, home, name, args...).CombinedOutput()
		if wrong != nil {
			t.Fatalf("%s %q: %v: %s", name, args, wrong, out)
		}
		return string(out)
	}
	must("siteagent", "init", "--name", "attic", "--domain", "home")
	heard := listen(t, filepath.Join(home, "notify"))
	run := r.program(t, home, "siteagent", "run")
	var log bytes.Buffer
	run.Stderr = &log
	run.Env = append(run.Env, "NOTIFY_SOCKET="+filepath.Join(home, "notify"),
		"WATCHDOG_USEC=300000")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	heard(t, "READY=1")
	heard(t, "WATCHDOG=1")
	module := filepath.Join(home, "hello.wasm")
	hello := localmesh.Program{Stdout: "hello from a package\n"}.Module()
	if err := os.WriteFile(module, hello, 0o600); err != nil {
		t.Fatal(err)
	}
	out := must("submit", "run", "--name", "greeting", "--wasm", module, "--runtime", "5s")
	if !strings.Contains(out, "hello from a package\n") {
		t.Errorf("the job printed %s", out)
	}
	out = must("submit", "__completeNoDesc", "logs", "gr")
	if !strings.HasPrefix(out, "greeting\n") {
		t.Errorf("a shell is offered %q", out)
	}
	must("siteagent", "config", "reload")
	heard(t, "RELOADING=1")
	heard(t, "READY=1")
	must("siteagent", "stop")
	heard(t, "STOPPING=1")
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v: %s", err, log.String())
	}
	version := must("siteagent", "--version")
	if !regexp.MustCompile(`^siteagent version \S+`).MatchString(version) {
		t.Errorf("version %q", version)
	}
}

// listen takes the place of the service manager. What is heard waits until a line comes.
// What comes meanwhile is read, so that nobody waits to say it.
func listen(t *testing.T, socket string) (heard func(*testing.T, string)) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const most = 1 << 14 // far more than come in the time of the test
	lines := make(chan string, most)
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := conn.Read(buf)
			if err != nil {
				return // it is closed
			}
			lines <- string(buf[:n])
		}
	}()
	return func(t *testing.T, line string) {
		t.Helper()
		limit := time.After(time.Minute)
		for {
			select {
			case text := <-lines:
				if strings.HasPrefix(text, line) {
					return
				}
			case <-limit:
				t.Fatalf("the service manager does not hear %s", line)
			}
		}
	}
}
