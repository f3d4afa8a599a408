// Command cast records a command on a terminal of its own and writes what it printed,
// in its own time, as an animated SVG:
//
//	go run ./internal/cast -o docs/quickstart.svg -- go run ./examples/quickstart
//
// The picture is a real run: no line is typed by hand, and a command that fails leaves
// no picture. Pauses longer than -pause are shortened; what the command itself says
// about time stays as it is. The SVG holds no script, loops as pure SMIL, follows
// the reader's light or dark colours, and shows the last screen where nothing moves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

// options are the command line's.
type options struct {
	out     string
	columns int
	pause   time.Duration
	mark    string
	command []string
}

// maxBytes bounds the picture, because a page should load quickly.
const maxBytes = 100_000

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err = run(ctx, o, os.Stderr)
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cast: %v\n", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("cast", flag.ContinueOnError)
	flags.StringVar(&o.out, "o", "", "`file` to write, required")
	flags.IntVar(&o.columns, "columns", 100, "`width` of the terminal")
	flags.DurationVar(&o.pause, "pause", 1500*time.Millisecond, "the longest pause to show")
	flags.StringVar(&o.mark, "mark", "", "lines that match this `expression` stand out")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.command = flags.Args()
	if o.out == "" || len(o.command) == 0 || o.columns < 20 || o.pause <= 0 {
		return o, errors.New("want -o FILE and a command: cast -o FILE -- CMD ARGS")
	}
	return o, nil
}

// run records the command, shows it meanwhile, and writes the picture.
func run(ctx context.Context, o options, screen io.Writer) error {
	mark, err := regexp.Compile(o.mark)
	if err != nil {
		return fmt.Errorf("-mark: %w", err)
	}
	printed, err := record(ctx, o, screen)
	if err != nil {
		return err
	}
	prompt := chunk{text: "$ " + strings.Join(o.command, " ") + "\n"}
	recorded := play(append([]chunk{prompt}, shorten(printed, o.pause)...), o.columns)
	picture := recorded.render(strings.Join(o.command, " "), func(line string) bool {
		return o.mark != "" && mark.MatchString(line)
	})
	if len(picture) > maxBytes {
		return fmt.Errorf("the picture has %d bytes, want at most %d: record a command that prints less",
			len(picture), maxBytes)
	}
	return os.WriteFile(o.out, []byte(picture), 0o644) //nolint:gosec // a picture to be published
}

// record runs the command on a terminal and returns what it printed and when.
func record(ctx context.Context, o options, screen io.Writer) ([]chunk, error) {
	terminal, child, err := openTerminal(o.columns)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer func() { _ = terminal.Close() }() // only read from
	//nolint:gosec // to run what was asked for is the purpose
	cmd := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	cmd.Stdout, cmd.Stderr = child, child
	cmd.Env = append(os.Environ(), "TERM=xterm")
	err = cmd.Start()
	_ = child.Close() // the command has its own
	if err != nil {
		return nil, err
	}
	printed := read(io.TeeReader(terminal, screen), time.Now)
	if err = cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w; nothing was written", strings.Join(o.command, " "), err)
	}
	return printed, nil
}

// read collects chunks until the terminal's other side is closed, which Linux reports
// as an error rather than as an end.
func read(from io.Reader, now func() time.Time) []chunk {
	var printed []chunk
	began := now()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			printed = append(printed, chunk{now().Sub(began), string(buffer[:n])})
		}
		if err != nil {
			return printed
		}
	}
}
