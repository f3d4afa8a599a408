package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// TestReaderThatGoesIsNoError runs the test's own binary as submit, into a pipe that
// nobody reads.
func TestReaderThatGoesIsNoError(t *testing.T) {
	if os.Getenv("MRS_TEST_AS_SUBMIT") != "" {
		os.Args = []string{"submit", "version"}
		main()
		t.Fatal("main returned")
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
	cmd.Env = append(os.Environ(), "MRS_TEST_AS_SUBMIT=1")
	cmd.Stdout = writer
	var said locked
	cmd.Stderr = &said
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !exit.Exited() || exit.ExitCode() != exitNoReader || said.String() != "" {
		t.Errorf("submit ended with %v and said %q; want code %d and no word", err, said.String(), exitNoReader)
	}
}
