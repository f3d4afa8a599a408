package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// programNames are those of the programs, and of their folders below cmd.
func programNames() []string { return []string{"gridsim", "siteagent", "submit"} }

// program is one that was built.
type program struct{ name, path string }

// build builds the programs for a target, once.
func (r *release) build(ctx context.Context, t target) ([]program, error) {
	dir := filepath.Join(r.scratch, "build", t.system+"-"+t.arch)
	// Without symbols a program is a third smaller; a panic still has names and lines.
	args := []string{"build", "-ldflags=-s -w"}
	env := with("GOOS="+t.system, "GOARCH="+t.arch)
	if !r.plain {
		// Without cgo a program needs no library of the machine that it is put on; what else would
		// change its bytes is as Go has it by default.
		args = append(args, "-trimpath", "-buildvcs=true")
		env = append(env, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=", "GOARM64=")
	}
	args = append(args, "-o", dir+string(filepath.Separator))
	var programs []program
	for _, name := range programNames() {
		args = append(args, "./cmd/"+name)
		file := name
		if t.system == "windows" {
			file += ".exe"
		}
		programs = append(programs, program{name, filepath.Join(dir, file)})
	}
	if _, err := os.Stat(dir); err == nil {
		return programs, nil
	}
	_, err := output(ctx, env, "go", args...)
	return programs, err
}

// with is the environment with some variables set.
func with(variables ...string) []string { return append(os.Environ(), variables...) }

// output runs a command with an environment and gives what it prints. Its error has what the
// command says of it.
func output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: go, or a program it built
	cmd.Env = env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said.Bytes())
	}
	return out, nil
}

// dateBy reads the release's version and time from what Go wrote into the programs.
// SOURCE_DATE_EPOCH is stronger than the commit's time.
func (r *release) dateBy(programs []program) error {
	info, err := buildinfo.ReadFile(programs[0].path)
	if err != nil {
		return err
	}
	r.version = info.Main.Version
	if epoch, given := os.LookupEnv("SOURCE_DATE_EPOCH"); given {
		if r.epoch, err = strconv.ParseInt(epoch, 10, 64); err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: want seconds of Unix, have %q", epoch)
		}
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			committed, err := time.Parse(time.RFC3339, s.Value)
			r.epoch = committed.Unix()
			return err
		}
	}
	return errors.New(
		"no time of a commit: Go finds none outside of a clone, nor in a worktree of git; " +
			"run this in a clone, or set SOURCE_DATE_EPOCH",
	)
}

// packageVersion is a version of Go as packages sort it: v1.2.3-rc.1 comes before v1.2.3.
func packageVersion(version string) string {
	if version == "(devel)" || version == "" {
		return "0~devel"
	}
	release, before, is := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if !is {
		return release
	}
	return release + "~" + strings.ReplaceAll(before, "-", ".")
}

// shells are those for which there are completions, with the place where each looks for them.
func shells() map[string]func(program string) string {
	return map[string]func(string) string{
		"bash": func(p string) string { return "share/bash-completion/completions/" + p },
		"fish": func(p string) string { return "share/fish/vendor_completions.d/" + p + ".fish" },
		"zsh":  func(p string) string { return zshDir + "_" + p },
	}
}

// pages lets the programs write their manual pages and completions.
func (r *release) pages(ctx context.Context, programs []program) ([]content, error) {
	dir, writers := filepath.Join(r.scratch, "man"), filepath.Join(r.scratch, "writers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	args := []string{"build", "-tags=manual", "-o", writers + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, "./cmd/"+p.name)
	}
	if _, err := output(ctx, with(), "go", args...); err != nil {
		return nil, err
	}
	env := r.elsewhere()
	var all []content
	for _, p := range programs {
		writer := filepath.Join(writers, filepath.Base(p.path))
		if _, err := output(ctx, env, writer, "man", dir); err != nil {
			return nil, err
		}
		for shell, place := range shells() {
			script, err := output(ctx, env, p.path, "completion", shell)
			if err != nil {
				return nil, err
			}
			all = append(all, content{path: place(p.name), data: script})
		}
	}
	pages, err := os.ReadDir(dir)
	for _, page := range pages {
		text, wrong := os.ReadFile(filepath.Join(dir, page.Name()))
		err = errors.Join(err, wrong)
		all = append(all, content{path: "share/man/man1/" + page.Name(), data: text})
	}
	return all, err
}

// elsewhere is the environment of nobody in particular: what programs say of their defaults is not
// to be about who builds them.
func (r *release) elsewhere() []string {
	return []string{
		"HOME=/home/you", "XDG_RUNTIME_DIR=/run/user/1000", "SOURCE_DATE_EPOCH=" + r.stamp(),
	}
}

func (r *release) stamp() string { return strconv.FormatInt(r.epoch, 10) }
