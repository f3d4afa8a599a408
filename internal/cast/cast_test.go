package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestShorten(t *testing.T) {
	got := shorten([]chunk{
		{time.Second, "a"},
		{time.Second + frame/2, "b"}, // too close to be told apart
		{time.Minute, "c"},
		{time.Minute + 2*frame, "d"},
	}, 3*time.Second)
	third := 4*time.Second + frame/2 // the pause before c counts from b, which was joined to a
	want := []chunk{{time.Second, "ab"}, {third, "c"}, {third + 2*frame, "d"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(chunk{})); diff != "" {
		t.Errorf("shortened (-want +got):\n%s", diff)
	}
}

func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		name, printed string
		want          []string
	}{
		{"lines", "one\r\ntwo\n", []string{"one", "two"}},
		{"progress is drawn again", "1 of 9\r\x1b[K2 of 9\r\x1b[K\x1b[1mdone\x1b[0m\n", []string{"done"}},
		{"a shorter line leaves the rest", "abcdef\rxy\n", []string{"xycdef"}},
		{"erase from here", "abcdef\rxy\x1b[K\n", []string{"xy"}},
		{"wrapped", "0123456789ab\nc", []string{"0123456789", "ab", "c"}},
		{"tab", "a\tb", []string{"a       b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			screen := terminal{columns: 10}
			screen.write(tt.printed[:1])
			screen.write(tt.printed[1:]) // sequences may be cut anywhere
			var got []string
			for row := range screen.lines {
				got = append(got, screen.line(row))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlay(t *testing.T) {
	f := play([]chunk{
		{0, "$ go\n"}, {time.Second, "1 of 2"}, {3 * time.Second, "\r\x1b[K2 of 2\n"},
	}, 80)
	end := 3*time.Second + reading
	want := []still{
		{0, "$ go", 0, end},
		{1, "1 of 2", time.Second, 3 * time.Second},
		{1, "2 of 2", 3 * time.Second, end},
	}
	if diff := cmp.Diff(want, f.stills, cmp.AllowUnexported(still{})); diff != "" {
		t.Errorf("stills (-want +got):\n%s", diff)
	}
	if f.rows != 2 || f.columns != 6 || f.end != end {
		t.Errorf("a film of %d rows, %d columns and %s", f.rows, f.columns, f.end)
	}
}

// The picture is well-formed, has no script, and without animation shows the last screen.
func TestRender(t *testing.T) {
	f := play([]chunk{
		{0, "$ a <b>\n"}, {time.Second, "old & gone"}, {2 * time.Second, "\r\x1b[Knew\n"},
	}, 80)
	picture := f.render("a <b>", func(line string) bool { return line == "new" })
	var visible []string
	hidden := false
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, picture)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "script" {
				t.Error("the picture has a script")
			}
			hidden = strings.Contains(attributes(e), "visibility=hidden")
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" && !hidden {
				visible = append(visible, text)
			}
		}
	}
	want := []string{"Recording of a <b>", style, "$ a <b>", "new"}
	if diff := cmp.Diff(want, visible); diff != "" {
		t.Errorf("visible without animation (-want +got):\n%s", diff)
	}
	times := `values="hidden;visible;hidden" keyTimes="0.0000;0.1250;0.2500"`
	if !strings.Contains(picture, times) {
		t.Errorf("no %s in\n%s", times, picture)
	}
}

func attributes(e xml.StartElement) string {
	var all []string
	for _, a := range e.Attr {
		all = append(all, a.Name.Local+"="+a.Value)
	}
	return strings.Join(all, " ")
}

func TestRecord(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("recordings are made on Linux")
	}
	out := filepath.Join(t.TempDir(), "cast.svg")
	// This test's own program lists its tests: a command that is always there.
	o := options{
		out: out, columns: 80, pause: time.Second,
		command: []string{os.Args[0], "-test.list", "TestRecord"},
	}
	var screen bytes.Buffer
	if err := run(t.Context(), o, &screen); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range []string{string(picture), screen.String()} {
		if !strings.Contains(have, "TestRecord") {
			t.Errorf("the command's output is missing in\n%s", have)
		}
	}
}

func TestAFailedCommandLeavesNoPicture(t *testing.T) {
	out := filepath.Join(t.TempDir(), "cast.svg")
	o := options{
		out: out, columns: 80, pause: time.Second, command: []string{os.Args[0], "-no-such-flag"},
	}
	if err := run(t.Context(), o, io.Discard); err == nil {
		t.Error("no error of a command that failed")
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a picture was left: %v", err)
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-o", "x.svg", "-columns", "90", "--", "go", "version"})
	if err != nil || o.out != "x.svg" || o.columns != 90 || len(o.command) != 2 {
		t.Errorf("options %+v, %v", o, err)
	}
	for _, args := range [][]string{
		{}, {"-o", "x.svg"}, {"go", "version"}, {"-o", "x.svg", "-pause", "0s", "go"},
	} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
