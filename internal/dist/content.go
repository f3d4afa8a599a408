package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// content is a file of a package or an archive.
type content struct {
	path string // below /usr, or below an archive's folder
	mode fs.FileMode
	data []byte
	from string // a file with the data; empty: data
}

func (c content) bytes() ([]byte, error) {
	if c.from == "" {
		return c.data, nil
	}
	return os.ReadFile(c.from)
}

const (
	docDir = "share/doc/mrs/"
	zshDir = "share/zsh/site-functions/"
	// volunteer has the units and buttons, and says how to use them from an archive.
	volunteer = "examples/volunteer/"
)

//go:embed package
var extras embed.FS

// documents are what people read, the same for all targets.
func documents() ([]content, error) {
	files := []string{
		"LICENSE", "README.md", "SECURITY.md", volunteer + "README.md",
		volunteer + "siteagent.service", volunteer + "siteagent-user.service",
		volunteer + "mrs-pause.desktop", volunteer + "mrs-resume.desktop",
	}
	docs, err := filepath.Glob("docs/*.[ms][dv]*")
	if err != nil {
		return nil, err
	}
	var all []content
	for _, file := range append(files, docs...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, content{path: docDir + filepath.ToSlash(file), data: text})
	}
	return all, nil
}

// commonAnd are the files of a target without what others have licensed.
func (r *release) commonAnd(programs []program) []content {
	all := slices.Clone(r.common)
	for _, p := range programs {
		all = append(all, content{path: "bin/" + filepath.Base(p.path), mode: 0o755, from: p.path})
	}
	return all
}

// packaged turns the files of a target into those of a package: units and buttons in their places,
// manual pages compressed, and what only a package has.
func packaged(all []content) ([]content, error) {
	var out []content
	for _, c := range all {
		switch {
		case strings.HasPrefix(c.path, "share/man/"):
			small, err := compress(c.data)
			if err != nil {
				return nil, err
			}
			c.path, c.data = c.path+".gz", small
		case strings.HasSuffix(c.path, ".service"):
			c = unit(c)
		case strings.HasSuffix(c.path, ".desktop"):
			c.path = "share/applications/" + path.Base(c.path)
		}
		out = append(out, c)
	}
	for from, to := range map[string]content{
		"sysusers.conf":      {path: "lib/sysusers.d/mrs.conf"},
		"tmpfiles.conf":      {path: "lib/tmpfiles.d/mrs.conf"},
		"siteagent-system":   {path: "sbin/siteagent-system", mode: 0o755},
		"siteagent-system.8": {path: "share/man/man8/siteagent-system.8.gz"},
	} {
		text, err := extras.ReadFile("package/" + from)
		if err != nil {
			return nil, err
		}
		to.data = text
		if strings.HasSuffix(to.path, ".gz") {
			if to.data, err = compress(text); err != nil {
				return nil, err
			}
		}
		out = append(out, to)
	}
	return out, nil
}

// unit puts a unit of the walk-through in its place, with the programs where a package has them.
func unit(c content) content {
	const goOn = "; the README beside it says how to go on."
	text := strings.NewReplacer(
		"/usr/local/bin/", "/usr/bin/", "%h/.local/bin/", "/usr/bin/",
		" Copy it to\n# ~/.config/systemd/user/siteagent.service"+goOn, "",
		" Copy it\n# to /etc/systemd/system"+goOn, "",
	).Replace(string(c.data))
	kind := "system"
	if strings.HasSuffix(c.path, "-user.service") {
		kind = "user"
	}
	return content{path: "lib/systemd/" + kind + "/siteagent.service", data: []byte(text)}
}

// compress packs a manual page without a time or a name.
func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// sorted gives files in the order of their paths, each with a mode.
func sorted(all []content) []content {
	all = slices.Clone(all)
	for i := range all {
		if all[i].mode == 0 {
			all[i].mode = 0o644
		}
	}
	slices.SortFunc(all, func(a, b content) int { return strings.Compare(a.path, b.path) })
	return all
}
