package intake

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/data"
)

func noSpace() error { return fmt.Errorf("write data: %w", syscall.ENOSPC) }

func blockLine(size string) string {
	return `{"Block":{"Digest":"` + strings.Repeat("A", 43) + `=","Bytes":` + size + `}}` + "\n"
}

// Blocks are acknowledged together, and all of them.
func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	text := strings.Repeat(blockLine("1"), 3*window) + `{"Root":"r"}` + "\n"
	taken, told := 0, 0
	root, err := receive(strings.NewReader(text), func(data.Block) error {
		taken++
		return nil
	}, func(n int) { told += n })
	if err != nil || root != "r" || taken != 3*window || told < taken-window/2 || told > taken {
		t.Errorf("root %q, %v, %d blocks taken, %d acknowledged", root, err, taken, told)
	}
}

// What the process never says is ErrProcess, before anything of it is taken.
func TestWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "{}\n", "hello\n", blockLine("0"), blockLine("-1"), blockLine("1e99"),
		`{"Block":{"Digest":"AAAA","Bytes":1}}` + "\n", `{"Other":1}` + "\n", `{"Root":"r"}`,
		strings.Repeat("x", maxLine+1),
	} {
		_, err := receive(strings.NewReader(text), func(b data.Block) error {
			t.Errorf("%.40q: taken is %v", text, b)
			return nil
		}, func(int) {})
		if !errors.Is(err, ErrProcess) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// The process ends when more is acknowledged than it told.
func TestTooManyAcknowledgements(t *testing.T) {
	t.Parallel()
	w := newWriter(t.TempDir(), &bytes.Buffer{})
	if err := w.heed(lines(bytes.NewReader([]byte{1}))); !errors.Is(err, errLine) {
		t.Errorf("an acknowledgement of nothing: %v", err)
	}
}

// The agent's decoder takes only blocks that can be, and ends with a root or an error.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(blockLine("1") + `{"Root":"r"}` + "\n"))
	f.Add([]byte(`{"Failure":{"Kind":"disk full","Text":"full"}}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		taken, told := 0, 0
		root, err := receive(bytes.NewReader(text), func(b data.Block) error {
			if taken++; b.Bytes <= 0 {
				t.Errorf("a block of %d bytes", b.Bytes)
			}
			return nil
		}, func(n int) {
			if told += n; n < 1 || n > window {
				t.Errorf("%d blocks are acknowledged", n)
			}
		})
		if (root == "") != (err != nil) || told > taken || taken > len(text)/maxEmptyLine {
			t.Errorf("root %q, %v, %d blocks taken, %d acknowledged", root, err, taken, told)
		}
	})
}

// maxEmptyLine is less than any line of a block takes.
const maxEmptyLine = 50

// The process's decoder reads an order or says why not, and what it read it would write.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"Shelf":"/s","Dir":"/d","Limits":{"Files":1}}` + "\n"))
	f.Add([]byte(`{"Shelf":"/s","Executable":true,"Key":"k"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var o order
		if readLine(lines(bytes.NewReader(text)), &o) != nil {
			return
		}
		var out bytes.Buffer
		if err := writeLine(&out, o); err != nil && out.Len() > 0 {
			t.Errorf("%v, and %d bytes are written", err, out.Len())
		}
	})
}
