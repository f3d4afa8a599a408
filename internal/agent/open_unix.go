//go:build unix

package agent

import "golang.org/x/sys/unix"

// plainFileOnly opens no link, and does not wait where a pipe stands.
const plainFileOnly = unix.O_NOFOLLOW | unix.O_NONBLOCK
