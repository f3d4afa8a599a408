package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
)

// maxToken is more than a token can have; member.ParseToken refuses what is as long.
const maxToken = 16 << 10

// tokenFrom adds the flag by which a command takes its token from a file.
func tokenFrom(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "token-file", "", "read the token from this file")
}

// tokenText is the token that a command was given: as its argument, from standard input where
// that is -, or from a file. Of what is too long for a token only the beginning is read. The
// error says what was wanted, unless something cannot be read.
func tokenText(cmd *cobra.Command, args []string, file string) (string, error) {
	switch {
	case cmd.Flags().Changed("token-file") && len(args) > 0:
		return "", usageError{fmt.Errorf("%s: a token and --token-file: want one of the two",
			cmd.Name())}
	case cmd.Flags().Changed("token-file"):
		return unlessStopped(cmd.Context(), func() (string, error) { return tokenOf(file) })
	case len(args) != 1:
		return "", usageError{fmt.Errorf("%s: want one token, - to read it from standard input, "+
			"or --token-file FILE", cmd.Name())}
	case args[0] == "-":
		return unlessStopped(cmd.Context(), func() (string, error) {
			text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxToken))
			if err != nil {
				err = fmt.Errorf("read the token from standard input: %w", err)
			}
			return string(text), err
		})
	default:
		return args[0], nil
	}
}

// unlessStopped waits for what read gives, or for ^C: reading from a terminal or a pipe does not
// end with the context.
func unlessStopped(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// errTokenReadable says that others than the owner may read a token.
var errTokenReadable = errors.New("others can read the token")

// tokenOf reads the token in a file, which only its owner may be able to read.
func tokenOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	mode := info.Mode()
	says := mode.IsRegular() && runtime.GOOS != "windows" // there modes say nothing
	if says && mode.Perm()&0o077 != 0 {
		return "", fmt.Errorf("--token-file: %w in %s (mode %04o); run chmod 600 on it, and if "+
			"they may have done so ask for a new invitation", errTokenReadable, name, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return string(text), nil
}
