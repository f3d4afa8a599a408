package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// order holds the command line.
type order struct {
	n        int
	seed     uint64
	wide     []string // packages whose tests survivors meet as well
	known    string   // the list of equivalent mutants
	packages []string
}

// score counts the mutants of one package.
type score struct {
	pkg                 string
	killed, equivalents int
	survivors           []mutant
	widely              int // survivors of the package's own tests that wider tests kill
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	known, err := readKnown(o.known)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mrs-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // made above, nothing is mounted below it
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	l := laboratory{dir: dir, root: root}
	var scores []score
	for _, pkg := range o.packages {
		s, err := l.measure(ctx, o, known, pkg)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		scores = append(scores, s)
	}
	return write(scores, o)
}

func parse(args []string) (order, error) {
	var o order
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.IntVar(&o.n, "n", 25, "how many mutants of each package")
	flags.Uint64Var(&o.seed, "seed", 1, "what draws them")
	flags.StringVar(&o.known, "known", "internal/mutants/testdata/equivalent.txt",
		"the list of equivalent mutants")
	flags.Func("wide", "a package whose tests survivors meet as well; may be repeated",
		func(pkg string) error { o.wide = append(o.wide, pkg); return nil })
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.packages = flags.Args()
	if len(o.packages) == 0 || o.n < 1 {
		return o, errors.New("want packages, as ./pkg/plan, and -n of at least 1")
	}
	return o, nil
}

// slow bounds the time of a mutant's tests, as a multiple of the unchanged ones'.
const slow = 10

// measure tries mutants of one package until n of them have compiled.
func (l laboratory) measure(
	ctx context.Context, o order, known map[string]string, pkg string,
) (score, error) {
	s := score{pkg: pkg}
	files, err := sources(ctx, pkg)
	if err != nil {
		return s, err
	}
	all, err := mutantsOf(files)
	if err != nil {
		return s, err
	}
	begin := time.Now()
	if out, err := l.goCommand(ctx, "test", "-count=1", "-vet=off", pkg); err != nil {
		return s, fmt.Errorf("its tests fail without any change: %w\n%s", err, out)
	}
	limit := slow * max(time.Since(begin), time.Second)
	r := rand.New(rand.NewPCG(o.seed, uint64(len(all)))) //nolint:gosec // the same mutants again
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, m := range all {
		if s.killed+s.equivalents+s.widely+len(s.survivors) == o.n {
			break
		}
		if err := l.count(ctx, &s, m, o, known, limit); err != nil {
			return s, err
		}
	}
	return s, nil
}

// count tries one mutant and adds it to the score.
func (l laboratory) count(
	ctx context.Context, s *score, m mutant, o order, known map[string]string, limit time.Duration,
) error {
	if _, is := known[m.String()]; is {
		s.equivalents++
		return nil
	}
	became, err := l.try(ctx, m, limit, s.pkg)
	if err != nil {
		return err
	}
	if became == survived && len(o.wide) > 0 {
		wider, err := l.try(ctx, m, slow*time.Minute, o.wide...)
		if err != nil {
			return err
		}
		if wider == killed {
			s.widely++
			return nil
		}
	}
	switch became {
	case killed:
		s.killed++
	case survived:
		s.survivors = append(s.survivors, m)
		fmt.Printf("survived: %s:%d (%s)\n  %s\n", m.file, m.line, m.kind, m)
	case stillborn: // another one takes its place
	}
	return nil
}

// sources are the files that the package's tests build here, without the tests themselves.
func sources(ctx context.Context, pkg string) ([]string, error) {
	out, err := exec.CommandContext( //nolint:gosec // G204: a package that the user names
		ctx, "go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pkg,
	).Output()
	if err != nil {
		return nil, fmt.Errorf("list its files: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.FieldsSeq(string(out)) {
		name, err := filepath.Rel(root, line)
		if err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	return files, nil
}

// write prints the table.
func write(scores []score, o order) error {
	fmt.Printf("\n%d mutants of each package, seed %d\n", o.n, o.seed)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tkilled\tby wider tests\tequivalent\tsurvived\tscore\t")
	for _, s := range scores {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.0f %%\t\n",
			s.pkg, s.killed, s.widely, s.equivalents, len(s.survivors), s.percent())
	}
	return table.Flush()
}

// percent counts the mutants that were noticed, of those that can be.
func (s score) percent() float64 {
	counted := s.killed + s.widely + len(s.survivors)
	if counted == 0 {
		return 100
	}
	return 100 * float64(s.killed+s.widely) / float64(counted)
}
