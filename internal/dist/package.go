package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// packages makes the packages of a Linux target, by nfpm.
func (r *release) packages(ctx context.Context, t target, all []content) error {
	inside, err := packaged(all)
	if err != nil {
		return err
	}
	stage := filepath.Join(r.scratch, "stage-"+t.arch)
	if err = r.stage(stage, inside); err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		recipe, err := json.Marshal(r.recipe(format, t, stage, inside)) // JSON is YAML
		if err != nil {
			return err
		}
		file := filepath.Join(stage, format+".json")
		if err = os.WriteFile(file, recipe, 0o600); err != nil {
			return err
		}
		made, err := filepath.Abs(r.base(t) + "." + format)
		if err != nil {
			return err
		}
		err = r.tool(
			ctx, "nfpm", "package", "--config", file, "--packager", format, "--target", made,
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// tool runs one of the programs that tools/dist/go.mod pins.
func (r *release) tool(ctx context.Context, name string, args ...string) error {
	args = append([]string{"-C", filepath.Join("tools", "dist"), "tool", name}, args...)
	_, err := output(ctx, with("SOURCE_DATE_EPOCH="+r.stamp()), "go", args...)
	return err
}

// stage writes the files of a package that are not on disk yet, and what is run when it is
// installed and removed.
func (r *release) stage(dir string, inside []content) error {
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		script, err := extras.ReadFile("package/" + name)
		if err != nil {
			return err
		}
		inside = append(inside, content{path: "scripts/" + name, data: script})
	}
	for _, c := range inside {
		if c.from != "" {
			continue
		}
		file := filepath.Join(dir, c.path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, c.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const description = `Share a machine with a scheduling mesh, and run batch jobs on it
A peer-to-peer mesh of machines that belong to different owners: no server,
and jobs survive when sites fail. siteagent runs one site, submit hands jobs
over, and gridsim plays experiments in simulated time.
.
Nothing is shared, and nothing starts, before its owner has made a site.`

// recipe says to nfpm what is in a package.
func (r *release) recipe(
	format string, t target, stage string, inside []content,
) map[string]any {
	script := func(name string) string { return filepath.Join(stage, "scripts", name) }
	when := time.Unix(r.epoch, 0).UTC().Format(time.RFC3339)
	var files []map[string]any
	for _, c := range sorted(inside) {
		from := c.from
		if from == "" {
			from = filepath.Join(stage, c.path)
		}
		files = append(files, map[string]any{
			"src": from, "dst": path.Join("/usr", placed(format, c.path)),
			"file_info": map[string]any{
				"mode": c.mode, "mtime": when, "owner": "root", "group": "root",
			},
		})
	}
	return map[string]any{
		"name": "mrs", "arch": t.arch, "platform": "linux", "section": "net",
		"version": packageVersion(r.version), "version_schema": "none", "mtime": when,
		"maintainer":  "The mrsmesh authors <maintainers@mrsmesh.invalid>",
		"description": description, "homepage": "https://github.com/mrsmesh/mrsmesh",
		"license": "Apache-2.0", "umask": 0o022,
		// Commands of others run under it; without it a site takes WebAssembly alone.
		"recommends": []string{"bubblewrap"},
		"contents":   files,
		"scripts": map[string]string{
			"postinstall": script("postinst"), "preremove": script("prerm"),
			"postremove": script("postrm"),
		},
		"rpm": map[string]any{"buildhost": "localhost"},
	}
}

// placed is the path of a file below /usr in packages of a format.
func placed(format, file string) string {
	name, zsh := strings.CutPrefix(file, zshDir)
	switch {
	case format != "deb":
		return file
	case zsh:
		return "share/zsh/vendor-completions/" + name
	case file == docDir+"LICENSE":
		return docDir + "copyright"
	default:
		return file
	}
}
