package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// anyRelease is a release whose programs are not programs.
func anyRelease(t *testing.T) (*release, []content) {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	r := &release{
		scratch: t.TempDir(), out: t.TempDir(), version: "v1.2.3-rc.1", epoch: 1_764_288_000,
	}
	var programs []program
	for _, name := range programNames() {
		file := filepath.Join(r.scratch, name)
		if err := os.WriteFile(file, []byte("program "+name), 0o700); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program{name, file})
		page := content{path: "share/man/man1/" + name + ".1", data: []byte("page")}
		r.common = append(r.common, page)
		for _, place := range shells() {
			r.common = append(r.common, content{path: place(name), data: []byte("completion")})
		}
	}
	texts, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	r.common = append(r.common, texts...)
	return r, append(r.commonAnd(programs), content{path: docDir + "NOTICES", data: []byte("all")})
}

// listed are the paths and modes that nfpm is told for a format.
func listed(t *testing.T, r *release, format string, inside []content) map[string]float64 {
	t.Helper()
	text, err := json.Marshal(r.recipe(format, target{"linux", "arm64"}, r.scratch, inside))
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		Version    string
		Recommends []string
		Depends    []string
		Scripts    map[string]string
		Contents   []struct {
			Src, Dst string
			Info     struct {
				Mode         float64
				Owner, Mtime string
			} `json:"file_info"`
		}
	}
	if err = json.Unmarshal(text, &recipe); err != nil {
		t.Fatal(err)
	}
	if recipe.Version != "1.2.3~rc.1" || !slices.Equal(recipe.Recommends, []string{"bubblewrap"}) ||
		len(recipe.Depends) != 0 || len(recipe.Scripts) != 3 {
		t.Errorf("%s: %+v", format, recipe)
	}
	files := map[string]float64{}
	for _, c := range recipe.Contents {
		if _, err := os.Stat(c.Src); err != nil {
			t.Errorf("%s: %v", c.Dst, err)
		}
		if c.Info.Owner != "root" || c.Info.Mtime != "2025-11-28T00:00:00Z" {
			t.Errorf("%s: %+v", c.Dst, c.Info)
		}
		files[c.Dst] = c.Info.Mode
	}
	return files
}

// A package has all that a person looks for after its installation, in the distribution's places.
func TestPackageLists(t *testing.T) {
	r, all := anyRelease(t)
	inside, err := packaged(all)
	if err != nil {
		t.Fatal(err)
	}
	if err = r.stage(r.scratch, inside); err != nil {
		t.Fatal(err)
	}
	common := []string{
		"lib/systemd/system/siteagent.service", "lib/systemd/user/siteagent.service",
		"lib/sysusers.d/mrs.conf", "lib/tmpfiles.d/mrs.conf",
		"share/man/man8/siteagent-system.8.gz",
		"share/applications/mrs-pause.desktop", "share/applications/mrs-resume.desktop",
		"share/doc/mrs/NOTICES", "share/doc/mrs/README.md", "share/doc/mrs/docs/share.md",
	}
	for _, p := range programNames() {
		common = append(common, "bin/"+p, "share/man/man1/"+p+".1.gz",
			"share/bash-completion/completions/"+p, "share/fish/vendor_completions.d/"+p+".fish")
	}
	for format, own := range map[string][]string{
		"deb": {"share/zsh/vendor-completions/_submit", "share/doc/mrs/copyright"},
		"rpm": {"share/zsh/site-functions/_submit", "share/doc/mrs/LICENSE"},
	} {
		files := listed(t, r, format, inside)
		for _, name := range append(own, common...) {
			want := 0o644
			if path.Dir(name) == "bin" {
				want = 0o755
			}
			if mode, there := files["/usr/"+name]; !there || int(mode) != want {
				t.Errorf("%s: %s: mode %o, want %o", format, name, int(mode), want)
			}
		}
		if int(files["/usr/sbin/siteagent-system"]) != 0o755 {
			t.Errorf("%s: siteagent-system cannot be run", format)
		}
		for name := range files {
			if !strings.HasPrefix(name, "/usr/") {
				t.Errorf("%s: %s is not the package's to have", format, name)
			}
		}
	}
}

// The units of a package start the programs of the package, and say nothing of copying.
func TestUnitsOfAPackage(t *testing.T) {
	_, all := anyRelease(t)
	inside, err := packaged(all)
	if err != nil {
		t.Fatal(err)
	}
	units := 0
	for _, c := range inside {
		if !strings.HasSuffix(c.path, ".service") {
			continue
		}
		units++
		text := string(c.data)
		if !strings.Contains(text, "\nExecStart=/usr/bin/siteagent ") ||
			strings.Contains(text, "local") || strings.Contains(text, "README") {
			t.Errorf("%s:\n%s", c.path, text)
		}
	}
	if units != 2 {
		t.Errorf("%d units", units)
	}
}

// A shell can read what is run when a package is installed and removed.
func TestScriptsCanBeRead(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh on this system")
	}
	for _, name := range []string{"postinst", "prerm", "postrm", "siteagent-system"} {
		out, err := exec.Command(sh, "-n", filepath.Join("package", name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// The same files give the same archive, and the checksums are those of what is there.
func TestArchivesAreTheSame(t *testing.T) {
	r, all := anyRelease(t)
	var archives [][]byte
	for range 2 {
		slices.Reverse(all) // the order in which files come does not count
		if err := r.archive(target{"linux", "amd64"}, all); err != nil {
			t.Fatal(err)
		}
		packed, err := os.ReadFile(filepath.Join(r.out, "mrs-1.2.3-rc.1-linux-amd64.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, packed)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same files differ")
	}
	if err := os.WriteFile(filepath.Join(r.out, "zero"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(r.out); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, sumsFile))
	empty := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  zero\n"
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(sums, []byte("\n")) != 2 || !strings.HasSuffix(string(sums), empty) {
		t.Errorf("checksums %s", sums)
	}
	if err := emptyFolder(r.out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files is taken: %v", err)
	}
}

func TestPackageVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":                  "1.2.3",
		"v1.2.3-rc.1":             "1.2.3~rc.1",
		"v0.0.0-20260102-abc":     "0.0.0~20260102.abc",
		"v1.2.4-0.2026-abc+dirty": "1.2.4~0.2026.abc+dirty",
		"(devel)":                 "0~devel",
	} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// A bill keeps what it says of a program, and says of its tool only the name.
func TestForgetTool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bill.json")
	text := `{"metadata":{"component":{"hashes":[1]},` +
		`"tools":[{"name":"x","hashes":[2]}]}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := forgetTool(file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err = json.Compact(&b, got); err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"component":{"hashes":[1]},"tools":[{"name":"x"}]}}`
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
	if err = os.WriteFile(file, []byte(`{"metadata":{"tools":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err = forgetTool(file); err == nil || !strings.Contains(err.Error(), "metadata.tools") {
		t.Errorf("a bill of another form: %v", err)
	}
}

// Licences are looked for in a module and in the folders of it that are linked; a module without
// one is refused.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{
		"a/LICENSE", "a/NOTICE.txt", "a/license.go", "a/in/vendored/COPYING", "a/other/LICENSE",
		"b/deep/copyright.go",
	} {
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := func(module, below string) string {
		root := filepath.Join(dir, module)
		return module + " v1\t" + root + "\t" + filepath.Join(root, below) + "\n"
	}
	found, err := licencesOf(line("a", "in/vendored") + line("a", "in"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, n := range found {
		files = append(files, n.module+": "+n.file)
	}
	want := []string{"a v1: LICENSE", "a v1: NOTICE.txt", "a v1: in/vendored/COPYING"}
	if !slices.Equal(files, want) {
		t.Errorf("%q, want %q", files, want)
	}
	page, err := inPage("../../" + pageLicences)
	if err != nil {
		t.Fatal(err)
	}
	found, err = licencesOf(page)
	if err != nil || !slices.ContainsFunc(found, func(n notice) bool {
		return strings.HasPrefix(n.module, "preact@") && strings.Contains(string(n.text), "MIT")
	}) {
		t.Errorf("the page's licences: %v, %v; want that of preact", found, err)
	}
	if _, err = inPage(filepath.Join(dir, "none")); err == nil {
		t.Error("a page without licences is accepted")
	}
	_, err = licencesOf(line("b", "deep"))
	if err == nil || !strings.Contains(err.Error(), "b v1 has no") {
		t.Errorf("a module without a licence: %v", err)
	}
}
