package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// endless is a stream without end, and counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.read += len(b)
	return len(b), nil
}

// tokenCommand prints the token that it is given.
func tokenCommand(in io.Reader, args ...string) (string, error) {
	file, text := "", ""
	cmd := &cobra.Command{
		Use: "join", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			text, err = tokenText(cmd, args, file)
			return err
		},
	}
	tokenFrom(cmd, &file)
	cmd.SetIn(in)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return text, err
}

// A token is taken as an argument, from standard input or from a file; of what never ends only
// a little is read.
func TestWhereATokenComesFrom(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("mrs1.file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func() io.Reader { return strings.NewReader("mrs1.in\n") }
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"mrs1.word"}, "mrs1.word", 0},
		{[]string{"-"}, "mrs1.in\n", 0},
		{[]string{"--token-file", file}, "mrs1.file\n", 0},
		{[]string{"--token-file", file + ".none"}, "", 1},
		{[]string{"--token-file", file, "mrs1.word"}, "", 2},
		{[]string{"--token-file", file, "-"}, "", 2},
		{nil, "", 2},
		{[]string{"mrs1.one", "mrs1.two"}, "", 2},
	} {
		got, err := tokenCommand(in(), c.args...)
		if got != c.want || (err == nil) != (c.code == 0) || err != nil && exitCode(err) != c.code {
			t.Errorf("%q: %q, %v, want %q and code %d", c.args, got, err, c.want, c.code)
		}
	}
	long := &endless{}
	if got, err := tokenCommand(long, "-"); err != nil || len(got) != maxToken ||
		long.read > 4*maxToken {
		t.Errorf("of an endless token %d bytes are read, %d are kept, %v", long.read, len(got), err)
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 2*maxToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := tokenCommand(in(), "--token-file", file); err != nil || len(got) != maxToken {
		t.Errorf("of a long file %d bytes are kept, %v", len(got), err)
	}
}

// A file that others can read holds no secret any more.
func TestATokenThatOthersCanRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the modes of files do not say there who may read them")
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("mrs1.file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{
		0o600: false, 0o400: false, 0o640: true, 0o604: true,
	} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := tokenCommand(nil, "--token-file", file)
		if errors.Is(err, errTokenReadable) != refused || !refused && err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// Waiting for a token that does not come ends when the command is to end.
func TestWaitingForATokenEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	never, writer := io.Pipe()
	defer writer.Close()
	cancel()
	if _, err := unlessStopped(ctx, func() (string, error) {
		text, err := io.ReadAll(never)
		return string(text), err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
