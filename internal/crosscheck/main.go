// Command crosscheck type-checks this module, its programs, packages and tests, for
// other systems, from source and without a C compiler:
//
//	go run ./internal/crosscheck windows/amd64 darwin/arm64
//
// go vet would compile every dependency for every system first, which takes minutes each.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: crosscheck SYSTEM/ARCHITECTURE...")
		os.Exit(2)
	}
	failed := false
	for _, target := range os.Args[1:] {
		fmt.Println("type-check for", target)
		if err := check(".", target); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check type-checks all packages of the module in dir for a target such as linux/arm64. Its
// error has each mistake, with its place.
func check(dir, target string) error {
	system, architecture, both := strings.Cut(target, "/")
	if !both || system == "" || architecture == "" {
		return errors.New("want a system and an architecture, such as linux/arm64")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
			packages.NeedImports | packages.NeedDeps | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo,
		Dir: dir, Tests: true,
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return fmt.Errorf("load packages: %w", err)
	}
	if len(loaded) == 0 {
		return errors.New("there are no packages")
	}
	var wrong []error
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, mistake := range p.Errors {
			wrong = append(wrong, mistake)
		}
	})
	return errors.Join(wrong...)
}
