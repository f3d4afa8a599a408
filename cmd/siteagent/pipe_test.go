package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// TestReaderThatGoesIsNoError runs the test's own binary as siteagent, into a pipe that
// nobody reads.
func TestReaderThatGoesIsNoError(t *testing.T) {
	if os.Getenv("MRS_TEST_AS_SITEAGENT") != "" {
		os.Args = []string{"siteagent", "--help"}
		main()
		os.Exit(0)
	}
	if runtime.GOOS == "windows" {
		t.Skip("pipes of Windows have no SIGPIPE")
	}
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = reader.Close(); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$") //nolint:gosec // G204: ourselves
	cmd.Env = append(os.Environ(), "MRS_TEST_AS_SITEAGENT=1")
	cmd.Stdout = writer
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !exit.Exited() || exit.ExitCode() != exitNoReader) || said.Len() > 0 {
		t.Errorf("siteagent ended with %v and said %q; want code 0 or %d and no word", err, said.String(), exitNoReader)
	}
}
