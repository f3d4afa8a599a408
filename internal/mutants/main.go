package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	reached  bool     // mutants meet only the tests that reach their line
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
	l := laboratory{dir: dir, root: root, least: 10 * time.Second}
	var scores []score
	var failed []error
	for _, pkg := range o.packages {
		s, err := l.measure(ctx, o, known, pkg)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // the others are measured nevertheless
			failed = append(failed, fmt.Errorf("%s: %w", pkg, err))
		default:
			scores = append(scores, s)
			fmt.Printf("%s: %d killed of %d, %.0f %%\n", pkg, s.noticed(), s.counted(), s.percent())
		}
	}
	return errors.Join(append(failed, write(scores, o))...)
}

func parse(args []string) (order, error) {
	var o order
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.IntVar(&o.n, "n", 25, "how many mutants of each package")
	flags.Uint64Var(&o.seed, "seed", 1, "what draws them")
	flags.StringVar(&o.known, "known", "internal/mutants/testdata/equivalent.txt",
		"the list of equivalent mutants")
	flags.BoolVar(&o.reached, "reached", false, "mutants meet only the tests that reach their line")
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

// measure tries mutants of one package.
func (l laboratory) measure(
	ctx context.Context, o order, known map[string]string, pkg string,
) (score, error) {
	s := score{pkg: pkg}
	drawn, err := l.draw(ctx, o, pkg)
	if err != nil {
		return s, err
	}
	var on []*tests
	for _, p := range append([]string{pkg}, o.wide...) {
		t, err := l.ready(ctx, o, p, pkg, drawn)
		if err != nil {
			return s, err
		}
		on = append(on, t)
	}
	for i, m := range drawn {
		if _, is := known[m.String()]; is {
			s.equivalents++
			continue
		}
		if err := l.count(ctx, &s, m, i+1, on); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ready prepares a package's tests for the mutants of one, which may be another.
func (l laboratory) ready(
	ctx context.Context, o order, testing, pkg string, drawn []mutant,
) (*tests, error) {
	t, err := l.prepare(ctx, testing)
	if err != nil || len(t.names) == 0 {
		return t, err
	}
	if o.reached {
		if t.reach, err = l.reached(ctx, t, pkg); err != nil {
			return nil, err
		}
	}
	t.program, err = l.buildTogether(ctx, t, pkg, drawn)
	return t, err
}

// draw chooses as many mutants of a package as were asked for, all of which compile.
func (l laboratory) draw(ctx context.Context, o order, pkg string) ([]mutant, error) {
	files, err := sources(ctx, pkg)
	if err != nil {
		return nil, err
	}
	all, err := mutantsOf(files)
	if err != nil {
		return nil, err
	}
	c, err := newChecker(ctx, pkg, files)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(o.seed, uint64(len(all)))) //nolint:gosec // the same mutants again
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var drawn []mutant
	for _, m := range all {
		if len(drawn) == o.n {
			break
		}
		text, err := os.ReadFile(m.file)
		if err != nil {
			return nil, err
		}
		if c.compiles(m.file, m.apply(text)) {
			drawn = append(drawn, m)
		}
	}
	return drawn, nil
}

// count tries one mutant on a package's own tests and on wider ones, and adds it to the
// score.
func (l laboratory) count(
	ctx context.Context, s *score, m mutant, number int, on []*tests,
) error {
	for i, t := range on {
		became, err := l.try(ctx, t, m, number)
		switch {
		case err != nil:
			return err
		case became == survived:
		case i > 0:
			s.widely++
			return nil
		default:
			s.killed++
			return nil
		}
	}
	s.survivors = append(s.survivors, m)
	fmt.Printf("survived: %s:%d (%s)\n  %s\n", m.file, m.line, m.kind, m)
	return nil
}

// list asks the go command about a package.
func list(ctx context.Context, pkg, format string) ([]string, error) {
	out, err := exec.CommandContext( //nolint:gosec // G204: a package that the user names
		ctx, "go", "list", "-f", format, pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// sources are the files that the package's tests build here, without the tests themselves.
func sources(ctx context.Context, pkg string) ([]string, error) {
	paths, err := list(ctx, pkg, `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`)
	if err != nil {
		return nil, err
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, path := range paths {
		name, err := filepath.Rel(root, path)
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
	all := score{pkg: "all together"}
	for _, s := range scores {
		s.row(table)
		all.killed, all.widely = all.killed+s.killed, all.widely+s.widely
		all.equivalents += s.equivalents
		all.survivors = append(all.survivors, s.survivors...)
	}
	all.row(table)
	return table.Flush()
}

func (s score) row(table io.Writer) {
	fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t\n",
		s.pkg, s.killed, s.widely, s.equivalents, len(s.survivors), s.percent())
}

// noticed counts the mutants that some test killed.
func (s score) noticed() int { return s.killed + s.widely }

// counted counts the mutants that can be noticed.
func (s score) counted() int { return s.noticed() + len(s.survivors) }

// percent is the share of the mutants that were noticed, of those that can be.
func (s score) percent() float64 {
	if s.counted() == 0 {
		return 100
	}
	return 100 * float64(s.noticed()) / float64(s.counted())
}
