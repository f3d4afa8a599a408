package owner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDisplays(t *testing.T) {
	for text, want := range map[string]display{
		":0":          {":0", "0", "/tmp/.X11-unix/X0"},
		":12.3":       {":12", "12", "/tmp/.X11-unix/X12"},
		"unix:1.0":    {":1", "1", "/tmp/.X11-unix/X1"},
		"/some/x:0.0": {"/some/x:0", "0", "/some/x:0"},
		"":            {}, ":": {}, ":-1": {}, ":x": {}, ":65536": {}, "0": {}, ":.0": {},
		"localhost:10.0": {},
		"tcp/here:0":     {}, "[::1]:0": {}, ":0/../../x": {},
	} {
		if got, ok := parseDisplay(text); got != want || ok != (want.name != "") {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
}

// record is an entry of a file of cookies.
func record(family uint16, fields ...string) (text []byte) {
	text = binary.BigEndian.AppendUint16(nil, family)
	for _, field := range fields {
		text = binary.BigEndian.AppendUint16(text, uint16(len(field)))
		text = append(text, field...)
	}
	return text
}

// A server with a cookie lets those in who know it, and the others are told what it says.
func TestCookies(t *testing.T) {
	const cookie = "0123456789abcdef"
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	server := &xserver{cookie: []byte(cookie)}
	server.start(t)
	server.rest(5 * time.Minute)
	_, err = newX11().sinceInput(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"no!\n"`) {
		t.Errorf("without a cookie: %v", err)
	}
	file := filepath.Join(t.TempDir(), "authority")
	t.Setenv("XAUTHORITY", file)
	mine := record(familyLocal, host, "0", x11CookieName, cookie)
	wrong := record(familyLocal, host, "1", x11CookieName, "another cookie!!")
	other := record(familyLocal, "x"+host, "0", x11CookieName, "another cookie!!")
	for name, text := range map[string][]byte{
		"mine":              mine,
		"after another":     append(wrong, mine...),
		"for all":           record(familyWild, "", "", x11CookieName, cookie),
		"other method":      append(record(familyWild, "", "", "XDM", cookie), mine...),
		"with one cut off":  append(bytes.Clone(mine), mine[:9]...),
		"of other machines": append(other, mine...),
	} {
		if err = os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := newX11().sinceInput(t.Context()); got != 5*time.Minute {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// A server that hangs is given up after a while, or when nobody wants to know any more, and is then
// left alone for a time.
func TestAServerThatHangs(t *testing.T) {
	server := &xserver{hangs: true}
	server.start(t)
	x := newX11()
	_, err := x.sinceInput(t.Context())
	if err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("it says %v", err)
	}
	if _, err = x.sinceInput(t.Context()); err == nil || server.asked.Load() != 1 {
		t.Errorf("asked %d times: %v", server.asked.Load(), err)
	}
	<-server.came // it was asked once
	ended, cancel := context.WithCancel(t.Context())
	x, done := newX11(), make(chan error)
	go func() { _, err := x.sinceInput(ended); done <- err }()
	<-server.came
	cancel()
	if err := <-done; err == nil || !x.rest.IsZero() {
		t.Errorf("ended: %v, asked again after %s", err, x.rest)
	}
}

// said is a connection to a server that says this, whatever it hears.
type said struct{ io.Reader }

func (said) Write(b []byte) (int, error) { return len(b), nil }

// honest is all that a server says whose input was a second ago.
func honest() []byte {
	present, idle := answer(1), answer(2)
	present[8], present[9] = 1, 144
	binary.LittleEndian.PutUint32(idle[16:], 1000)
	return append(append(hello(), present...), idle...)
}

func TestServersThatLie(t *testing.T) {
	const begun = 8 + 52 // bytes of hello
	changed := func(at int, to ...byte) []byte {
		text := honest()
		copy(text[at:], to)
		return text
	}
	for name, text := range map[string][]byte{
		"refuses with a long reason": {0, 255, 11, 0, 0, 0, 1, 0, 'n', 'o', '!', '!'},
		"wants more":                 changed(0, 2),
		"no screen":                  changed(8+20, 0),
		"a long vendor":              changed(8+16, 255, 255),
		"an empty hello":             {1, 0, 11, 0, 0, 0, 0, 0},
		"an error":                   changed(begun, 0, 9),
		"not present":                changed(begun+8, 0),
		"another number":             changed(begun+2, 7),
		"very long":                  changed(begun+4, 255, 255, 255, 0x3f),
		"a long event":               changed(begun, 35, 0, 0, 0, 1),
		"events only":                append(hello(), bytes.Repeat([]byte{34}, 100*x11Packet)...),
	} {
		_, err := askX11(said{bytes.NewReader(text)}, nil)
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want that it is not believed", name, err)
		}
	}
	if got, err := askX11(said{bytes.NewReader(honest())}, nil); got != time.Second {
		t.Errorf("honest: %s, %v", got, err)
	}
}

func FuzzXServer(f *testing.F) {
	f.Add(honest())
	f.Add([]byte{0, 255, 11, 0, 0, 0, 1, 0, 'n', 'o'})
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := askX11(said{bytes.NewReader(text)}, nil)
		if got < 0 || got >= 1<<32*time.Millisecond || err != nil && got != 0 {
			t.Errorf("%s, %v", got, err)
		}
		if err == nil && len(text) < 8+32+4+2*x11Packet {
			t.Errorf("it believes %q", text)
		}
	})
}

func FuzzCookie(f *testing.F) {
	f.Add(record(familyLocal, "here", "0", x11CookieName, "0123456789abcdef"))
	f.Add(record(familyWild, "", "", x11CookieName, "0123456789abcdef")[:30])
	f.Fuzz(func(t *testing.T, text []byte) {
		cookie := findCookie(text, "here", "0")
		if cookie != nil && (len(cookie) != cookieLength || !bytes.Contains(text, cookie)) {
			t.Errorf("%q is a cookie of %q", cookie, text)
		}
	})
}

// A real server answers, and nobody touches it.
func TestARealXServer(t *testing.T) {
	program, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("Xvfb is not installed")
	}
	numbers, given, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	ctx, cancel := context.WithCancel(t.Context())
	server := exec.CommandContext(ctx, program, "-displayfd", "3", "-noreset", "-nolisten", "tcp")
	server.ExtraFiles = []*os.File{given}
	server.Stderr = t.Output()
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) } // not killed
	server.WaitDelay = 10 * time.Second
	if err = server.Start(); err != nil {
		t.Fatal(err)
	}
	_ = given.Close()
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // interrupted
	})
	number, err := bufio.NewReader(numbers).ReadString('\n')
	if err != nil {
		t.Fatal("the X server does not begin: ", err)
	}
	t.Setenv("DISPLAY", ":"+strings.TrimSpace(number))
	t.Setenv("XAUTHORITY", filepath.Join(t.TempDir(), "none"))
	x := newX11()
	first, err := x.sinceInput(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; {
		again, err := x.sinceInput(t.Context())
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("%s, and then %s: %v", first, again, err)
		}
		if again > first {
			return
		}
	}
}

// Nothing is asked of a server that is not there.
func TestNoXServer(t *testing.T) {
	t.Setenv("DISPLAY", filepath.Join(t.TempDir(), "x")+":0")
	var failed *net.OpError
	if _, err := newX11().sinceInput(t.Context()); !errors.As(err, &failed) {
		t.Errorf("it says %v", err)
	}
}
