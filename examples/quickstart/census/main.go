// Command census is the program that the quickstart sends round the mesh,
// compiled to a WASI module. It counts the Go package whose files stand in /in
// and writes the result to /out/census.json. It sees nothing else of the site
// that runs it: no network, no clock, no other file.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/mrsmesh/mrsmesh/examples/quickstart/census/count"
)

func main() {
	in := flag.String("in", "/in", "`directory` of the package")
	out := flag.String("out", "/out/census.json", "`file` of the result")
	rounds := flag.Int("rounds", 1, "how many `times` to count; all must agree")
	flag.Parse()
	if err := run(*in, *out, strings.Join(flag.Args(), " "), *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "census:", err)
		os.Exit(1)
	}
}

func run(in, out, name string, rounds int) error {
	census, err := count.Directory(os.DirFS(in), name, rounds)
	if err != nil {
		return err
	}
	text, err := census.JSON()
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, text, 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	fmt.Printf(
		"%s: %d files, %d lines, %d functions\n", name, census.Files, census.Lines, census.Functions,
	)
	return nil
}
