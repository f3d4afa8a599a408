package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	rights "kernel.org/pub/linux/libs/security/libcap/cap"
)

const (
	// Arg is the hidden argument with which an executable tries, in the namespaces, whether it
	// could mount there: main calls Trial then.
	Arg = "__try-mount"

	// arrived names the variable by which a process knows that it has run itself again: its number,
	// which its children do not have.
	arrived = "MRS_OWN_MOUNTS"

	trialLimit = 10 * time.Second
)

// Enter runs this program again, in this process, with the same arguments and in a mount namespace
// of its own, and in a scope of the user's systemd where there is one. It returns where that was
// done before, when it gives up what is needed no more of what was got on the way, and where it
// cannot be done, with the reason. dir is a directory to try it in; trial is the command whose body
// is Trial, without the directory.
func Enter(ctx context.Context, dir string, trial []string) error {
	if here() {
		return giveUp()
	}
	way, err := wayIn()
	if err != nil {
		return err
	}
	trial = append(slices.Clone(trial), dir)
	if scoped := append(scope(os.Geteuid()), way...); try(ctx, append(scoped, trial...)) == nil {
		way = scoped
	} else if err = try(ctx, append(way, trial...)); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	if err = os.Setenv(arrived, strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	err = unix.Exec(way[0], slices.Concat(way, []string{self}, os.Args[1:]), os.Environ())
	return fmt.Errorf("start again by %s: %w", way[0], err)
}

// here reports whether this process has run itself again.
func here() bool { return os.Getenv(arrived) == strconv.Itoa(os.Getpid()) }

// wayIn is the beginning of the command that runs another one in the namespaces.
func wayIn() ([]string, error) {
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return nil, errors.New("unshare is missing; install the package util-linux")
	}
	way := []string{unshare, "--mount", "--propagation", "slave"}
	if os.Geteuid() != 0 {
		way = append(way, "--user", "--map-current-user", "--keep-caps")
	}
	return append(way, "--"), nil
}

// scope is the beginning of the command that runs another one in a scope of the user's systemd, in
// which it may make control groups; nothing for root, for a service, which has a group of its own,
// and where the user has no systemd. Services before systemd 248 are told by NOTIFY_SOCKET alone.
func scope(user int) []string {
	service := os.Getenv("NOTIFY_SOCKET") != "" ||
		os.Getenv("SYSTEMD_EXEC_PID") == strconv.Itoa(os.Getpid())
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	//nolint:gosec // the user's own directory
	_, missing := os.Stat(filepath.Join(runtime, "systemd", "private"))
	run, err := exec.LookPath("systemd-run")
	if user == 0 || service || runtime == "" || missing != nil || err != nil {
		return nil
	}
	return []string{
		run, "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--",
	}
}

// try runs a command line that ends well where the program could run in the same way.
func try(ctx context.Context, line []string) error {
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...) //nolint:gosec // a line of our own
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(string(bytes.ToValidUTF8(out, []byte("?")))); said != "" {
		return errors.New(said)
	}
	return fmt.Errorf("%s: %w", filepath.Base(line[0]), err)
}

// Trial mounts a file system below a directory and takes it away, and is the exit code of that.
func Trial(dir string) int {
	if err := errors.Join(giveUp(), Works(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// giveUp keeps of the rights in the user namespace the one to mount, for this process alone. Root,
// who has no such namespace, keeps its own.
func giveUp() error {
	if os.Geteuid() == 0 {
		return nil
	}
	kept := rights.NewSet()
	for _, flag := range []rights.Flag{rights.Permitted, rights.Effective} {
		if err := kept.SetFlag(flag, true, rights.SYS_ADMIN); err != nil {
			return err
		}
	}
	if err := kept.SetProc(); err != nil { // what cannot be inherited is not passed on, either
		return fmt.Errorf("give up rights: %w", err)
	}
	return nil
}
