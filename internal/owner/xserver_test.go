package owner

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// xserver is an X server that knows nothing but when there was input.
type xserver struct {
	display string
	asked   atomic.Int32
	came    chan struct{} // a value for each that has asked, up to some
	input   atomic.Uint32 // milliseconds
	cookie  []byte        // nil: it is open
	hangs   bool
}

// start begins to serve for as long as the test lasts, and puts it into the environment.
func (x *xserver) start(t *testing.T) {
	t.Helper()
	x.came = make(chan struct{}, 8)
	dir, err := os.MkdirTemp("", "x") //nolint:usetesting // names of sockets have to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	x.display = filepath.Join(dir, "x") + ":0"
	listener, err := net.Listen("unix", x.display)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			x.asked.Add(1)
			select {
			case x.came <- struct{}{}:
			default: // nobody waits for that many
			}
			serving.Go(func() {
				defer conn.Close()
				if x.hangs {
					_, _ = io.Copy(io.Discard, conn) // until the other side gives up
					return
				}
				x.serve(conn)
			})
		}
	})
	t.Setenv("DISPLAY", x.display+".1")
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("XAUTHORITY", filepath.Join(t.TempDir(), "none"))
}

// hello is the answer to a client that is let in: a vendor of five letters, one format, and a
// screen whose root window is 77.
func hello() []byte {
	const length = 32 + 8 + 8 + 4
	all := make([]byte, 8+length)
	all[0], all[2], all[6], all[8+16], all[8+20], all[8+21] = 1, 11, length/4, 5, 1, 1
	all[8+32+8+8] = 77
	return all
}

// answer is one to a query of a number.
func answer(number byte) []byte {
	return append([]byte{1, 0, number}, make([]byte, 29)...)
}

func (x *xserver) serve(conn io.ReadWriter) {
	first := make([]byte, 12)
	if _, err := io.ReadFull(conn, first); err != nil {
		return
	}
	rest := make([]byte, int(first[6]+3)/4*4+int(first[8]))
	if _, err := io.ReadFull(conn, rest); err != nil {
		return
	}
	if x.cookie != nil && !bytes.HasSuffix(rest, x.cookie) {
		_, _ = conn.Write([]byte{0, 4, 11, 0, 0, 0, 1, 0, 'n', 'o', '!', '\n'})
		return
	}
	_, _ = conn.Write(hello())
	query := make([]byte, 24)
	if _, err := io.ReadFull(conn, query); err != nil || string(query[8:]) != x11Saver {
		return
	}
	const opcode, event = 144, 34
	reply := answer(1)
	reply[8], reply[9] = 1, opcode
	_, _ = conn.Write(append(append([]byte{event}, make([]byte, 31)...), reply...))
	query = query[:8]
	if _, err := io.ReadFull(conn, query); err != nil ||
		!bytes.Equal(query, []byte{opcode, 1, 2, 0, 77, 0, 0, 0}) {
		return
	}
	reply = answer(2)
	binary.LittleEndian.PutUint32(reply[16:], x.input.Load())
	_, _ = conn.Write(reply)
}

// rest says how long ago there was input.
func (x *xserver) rest(d time.Duration) {
	x.input.Store(uint32(d / time.Millisecond))
}
