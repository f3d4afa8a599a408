//go:build 386 || arm

package supervise

import "golang.org/x/sys/unix"

const sysSetgroups = unix.SYS_SETGROUPS32
