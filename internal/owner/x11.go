package owner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	x11Limit = 2 * time.Second // for an answer of an X server
	// x11Rest is from a question without an answer to the next one: servers log whom they refuse.
	x11Rest = time.Minute
)

// x11 asks an X server of this machine when there was input last. It belongs to one goroutine.
type x11 struct {
	display
	alone bool // where there is no logind, it is that of all who are there

	rest  time.Time // it is not asked before
	fault error     // why
}

// newX11 is about the server that the environment names, if it does.
func newX11() *x11 {
	at, ok := parseDisplay(os.Getenv("DISPLAY"))
	return &x11{
		display: at,
		// The server of a Wayland session, and the one of macOS, know of a part of the input only.
		alone: ok && os.Getenv("WAYLAND_DISPLAY") == "" && runtime.GOOS != "darwin",
	}
}

// sinceInput is the time since the last input. Each question has a connection of its own, so that
// none keeps the server from ending.
func (x *x11) sinceInput(ctx context.Context) (time.Duration, error) {
	if time.Now().Before(x.rest) {
		return 0, x.fault
	}
	asking, cancel := context.WithTimeout(ctx, x11Limit)
	defer cancel()
	input, err := x.ask(asking)
	if err == nil {
		return input, nil
	}
	err = fmt.Errorf("ask the X server %s for its idle time: %w", x.name, err)
	if ctx.Err() == nil {
		x.rest, x.fault = time.Now().Add(x11Rest), err
	}
	return 0, err
}

// display names an X server of this machine.
type display struct {
	name   string // of the server, without a screen; "": there is none
	number string
	socket string
}

// ask ends with the context.
func (d display) ask(ctx context.Context) (time.Duration, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	input, err := askX11(conn, cookieFor(d.number))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, errors.New("no answer in time")
	}
	return input, err
}

// parseDisplay reads what DISPLAY or logind name, such as ":0" or "unix:0.0" or "/folder/socket:0".
// Servers of other machines are none.
func parseDisplay(text string) (display, bool) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return display{}, false
	}
	host := text[:colon]
	number, _, _ := strings.Cut(text[colon+1:], ".")
	if _, err := strconv.ParseUint(number, 10, 16); err != nil {
		return display{}, false
	}
	switch {
	case host == "" || host == "unix":
		return display{":" + number, number, "/tmp/.X11-unix/X" + number}, true
	case host[0] == '/':
		return display{host + ":" + number, number, host + ":" + number}, true
	default:
		return display{}, false
	}
}
