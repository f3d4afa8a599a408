package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal: what is written to child can be read from
// terminal.
func openTerminal(columns int) (terminal, child *os.File, err error) {
	terminal, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	if child, err = openChild(terminal, columns); err != nil {
		_ = terminal.Close() // the first error is the one to tell
	}
	return terminal, child, err
}

func openChild(terminal *os.File, columns int) (*os.File, error) {
	fd := int(terminal.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, os.NewSyscallError("unlock the terminal", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, os.NewSyscallError("number of the terminal", err)
	}
	size := unix.Winsize{Row: 50, Col: uint16(columns)}
	if err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size); err != nil {
		return nil, os.NewSyscallError("size of the terminal", err)
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
}
