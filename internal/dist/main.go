// Command dist makes what a release is made of: packages for Debian and rpm, archives for every
// system, checksums, the licences of what is linked, and a bill of materials for each program.
//
//	go run ./internal/dist -o dist linux/amd64 linux/arm64
//
// The same commit gives the same bytes: the programs are built without paths of this machine, and
// all times are the commit's. Run it at the root of the repository. Packages and bills are made by
// nfpm and cyclonedx-gomod, which tools/dist/go.mod pins; nothing else is needed but Go.
//
//	main.go      the program
//	build.go     programs, manual pages and completions
//	content.go   which file goes where
//	package.go   deb and rpm
//	archive.go   archives, checksums
//	notices.go   licences of others
//	package/     what packages have beside the programs
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("o", "dist", "`folder` to write to; it must not be there, or be empty")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: dist [-o FOLDER] [SYSTEM/ARCHITECTURE...]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// target is a system and an architecture, by Go's names.
type target struct{ system, arch string }

func (t target) String() string { return t.system + "/" + t.arch }

// here is the target that this machine runs.
func here() target { return target{runtime.GOOS, runtime.GOARCH} }

func parseTarget(text string) (target, error) {
	system, arch, found := strings.Cut(text, "/")
	if !found || system == "" || arch == "" {
		return target{}, fmt.Errorf("want SYSTEM/ARCHITECTURE, as linux/arm64, have %q", text)
	}
	return target{system, arch}, nil
}

func run(ctx context.Context, out string, names []string) error {
	var targets []target
	for _, name := range names {
		t, err := parseTarget(name)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	if len(targets) == 0 {
		targets = []target{here()}
	}
	if err := emptyFolder(out); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mrs-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := release{scratch: scratch, out: out}
	if err = r.begin(ctx); err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Println("dist for", t)
		if err = r.make(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return writeSums(out)
}

// emptyFolder makes a folder, or refuses one that has files: they might be of another commit.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	files, err := os.ReadDir(dir)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty: remove it, or name another folder with -o", dir)
	}
	return err
}

// release is one commit, for several targets.
type release struct {
	scratch string // a folder for what is made on the way
	out     string // the folder of what a release is made of
	plain   bool   // programs are built as by go build alone, whose cache tests share

	version string    // as in v1.2.3
	epoch   int64     // the commit's time, in seconds of Unix
	common  []content // manual pages, completions, documents: the same for all targets
}

// begin builds for this machine and lets the programs write what is the same for all.
func (r *release) begin(ctx context.Context) error {
	programs, err := r.build(ctx, here())
	if err != nil {
		return err
	}
	if err = r.dateBy(programs); err != nil {
		return err
	}
	pages, err := r.pages(ctx, programs)
	if err != nil {
		return err
	}
	documents, err := documents()
	r.common = append(pages, documents...)
	return err
}

// make makes everything for one target.
func (r *release) make(ctx context.Context, t target) error {
	programs, err := r.build(ctx, t)
	if err != nil {
		return err
	}
	licences, err := r.notices(ctx, t)
	if err != nil {
		return err
	}
	if err = r.bills(ctx, t, programs); err != nil {
		return err
	}
	all := append(r.commonAnd(programs), content{path: docDir + "NOTICES", data: licences})
	if err = r.archive(t, all); err != nil {
		return err
	}
	if t.system != "linux" {
		return nil
	}
	return r.packages(ctx, t, all)
}

// base is the beginning of the paths of a target's files. Names have no sign that a web page of
// releases would change.
func (r *release) base(t target) string {
	version := strings.NewReplacer("(", "", ")", "", "+", ".").Replace(r.version)
	version = strings.TrimPrefix(version, "v")
	return filepath.Join(r.out, fmt.Sprintf("mrs-%s-%s-%s", version, t.system, t.arch))
}
