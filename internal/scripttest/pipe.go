package scripttest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// asProgram tells the test's own binary that it plays the program.
const asProgram = "MRS_TEST_AS_PROGRAM"

// NobodyReads runs a program's main function in a process of its own, with a standard
// output that nobody reads, and wants it to end by itself, with the code or with 0, and
// silently.
func NobodyReads(t *testing.T, main func(), code int, args ...string) {
	t.Helper()
	if os.Getenv(asProgram) != "" {
		os.Args = args
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
	var said bytes.Buffer
	//nolint:gosec // G204: ourselves
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), writer, &said
	err = cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || !exit.Exited() || exit.ExitCode() != code) || said.Len() > 0 {
		t.Errorf(
			"%v ended with %v and said %q; want code %d or 0 and no word", args, err, said.String(), code,
		)
	}
}
