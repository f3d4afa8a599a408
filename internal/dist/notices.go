package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const noticesHead = `The programs of this release contain software of others, under the licences
that follow. What is listed is linked; nothing else is.
`

// notices are the licences, notices and patent grants of all that a target's programs are linked
// from: of the modules, and of folders in them that have their own.
func (r *release) notices(ctx context.Context, t target) ([]byte, error) {
	args := []string{
		"list", "-deps", "-f",
		`{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}` + "\t" + `{{.Dir}}` + "\t" +
			`{{$.Dir}}{{end}}{{end}}`,
	}
	for _, name := range programNames() {
		args = append(args, "./cmd/"+name)
	}
	env := with("GOOS="+t.system, "GOARCH="+t.arch, "CGO_ENABLED=0")
	listed, err := output(ctx, env, "go", args...)
	if err != nil {
		return nil, err
	}
	root, err := output(ctx, env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goroot := strings.TrimSpace(string(root))
	standard := "Go's standard library\t" + goroot + "\t" + goroot + "\n"
	page, err := inPage(pageLicences)
	if err != nil {
		return nil, err
	}
	found, err := licencesOf(string(listed) + standard + page)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(noticesHead)
	for _, n := range found {
		fmt.Fprintf(&b, "\n%s\n%s: %s\n%s\n\n%s\n", strings.Repeat("=", 80), n.module, n.file,
			strings.Repeat("=", 80), bytes.TrimSpace(n.text))
	}
	return b.Bytes(), nil
}

// pageLicences has a folder for each library that is in the agent's page, with its licence; the
// page's build makes them.
const pageLicences = "internal/api/web/dist/licences"

// inPage are the lines of these libraries, as licencesOf reads them.
func inPage(dir string) (string, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the licences of the page (make page writes them): %w", err)
	}
	var lines strings.Builder
	for _, f := range folders {
		folder := filepath.Join(dir, f.Name())
		fmt.Fprintf(&lines, "%s, in the page\t%s\t%s\n", f.Name(), folder, folder)
	}
	return lines.String(), nil
}

// notice is one file of a module.
type notice struct {
	module string // with its version
	file   string // below the module's folder
	text   []byte
}

// licencesOf reads the files of the packages that lines name: module, its folder and the
// package's, each after a tab. A module without a licence is an error.
func licencesOf(lines string) ([]notice, error) {
	var all []notice
	var errs []error
	seen, has := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(lines) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) != 3 {
			continue
		}
		module, root := parts[0], parts[1]
		for dir := parts[2]; len(dir) >= len(root) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			found, err := licencesIn(module, root, dir)
			errs = append(errs, err)
			all = append(all, found...)
			has[module] = has[module] || len(found) > 0
		}
	}
	for module, licensed := range has {
		if !licensed {
			errs = append(errs, fmt.Errorf(
				"%s has no licence: it may not be passed on; use another module", module))
		}
	}
	slices.SortFunc(all, func(a, b notice) int {
		return strings.Compare(a.module+"\t"+a.file, b.module+"\t"+b.file)
	})
	return all, errors.Join(errs...)
}

// licencesIn reads such files of one folder.
func licencesIn(module, root, dir string) ([]notice, error) {
	names := regexp.MustCompile(
		`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents|authors)s?([-.].*)?$`)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []notice
	for _, f := range files {
		if f.IsDir() || !names.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		below, err := filepath.Rel(root, filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, notice{module, filepath.ToSlash(below), text})
	}
	return found, nil
}

// bills writes a bill of materials beside the packages for each program, as CycloneDX has it.
func (r *release) bills(ctx context.Context, t target, programs []program) error {
	for _, p := range programs {
		file, err := filepath.Abs(r.base(t) + "." + p.name + ".cdx.json")
		if err != nil {
			return err
		}
		err = r.tool(ctx, "cyclonedx-gomod", "bin", "-json", "-noserial", "-notimestamp",
			"-version", r.version, "-output", file, p.path)
		if err != nil {
			return err
		}
		if err = forgetTool(file); err != nil {
			return err
		}
	}
	return nil
}

// forgetTool takes out of a bill the checksums of the program that wrote it: they depend on the
// machine that it was built on.
func forgetTool(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var bill map[string]any
	if err = json.Unmarshal(text, &bill); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	about, _ := bill["metadata"].(map[string]any)
	tools, _ := about["tools"].([]any)
	if len(tools) == 0 {
		return fmt.Errorf("%s: metadata.tools is no list: see what cyclonedx-gomod writes", file)
	}
	for _, t := range tools {
		if tool, is := t.(map[string]any); is {
			delete(tool, "hashes")
		}
	}
	if text, err = json.MarshalIndent(bill, "", "  "); err != nil {
		return err
	}
	return publish(file, append(text, '\n'))
}
