package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// timed is a stream that notes its deadlines and may refuse them.
type timed struct {
	io.Reader
	read, write []time.Time
	refuse      int // the deadline after so many; below 0: none
}

func (s *timed) Write(b []byte) (int, error) { return len(b), nil }

func (s *timed) SetReadDeadline(at time.Time) error {
	s.read = append(s.read, at)
	return s.answer()
}

func (s *timed) SetWriteDeadline(at time.Time) error {
	s.write = append(s.write, at)
	return s.answer()
}

func (s *timed) answer() error {
	s.refuse--
	if s.refuse == -1 {
		return errRefused
	}
	return nil
}

var errRefused = errors.New("refused")

func frame(t *testing.T) []byte {
	t.Helper()
	raw, err := protocol.AppendFrame(nil, protocol.Cancel{Job: "aaaaaaaaaaaaaaab"})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A message that is there immediately needs no deadline. One that has begun to come gets its time,
// from its first byte on, and what follows it waits without limit again.
func TestTheTimeOfAMessage(t *testing.T) {
	good := frame(t)
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			parts []int // of the message, as they come
			want  int   // deadlines, the last of which lifts the first
		}{
			"whole":             {[]int{len(good)}, 0},
			"a byte ahead":      {[]int{1, len(good) - 1}, 2},
			"nearly the length": {[]int{protocol.FrameHeaderBytes - 1, len(good)}, 2},
			"the length":        {[]int{protocol.FrameHeaderBytes, len(good)}, 2},
			"all but a byte":    {[]int{len(good) - 1, 1}, 2},
		} {
			var in []io.Reader
			rest := good
			for _, n := range c.parts {
				in = append(in, bytes.NewReader(rest[:min(n, len(rest))]))
				rest = rest[min(n, len(rest)):]
			}
			s := &timed{Reader: io.MultiReader(in...), refuse: -1}
			r := NewReader(s, time.Minute)
			if _, err := r.Next(len(good)); err != nil || r.Size != len(good)-protocol.FrameHeaderBytes {
				t.Errorf("%s: %d bytes, %v", name, r.Size, err)
			}
			if len(s.read) != c.want {
				t.Errorf("%s: %d deadlines, want %d", name, len(s.read), c.want)
			}
			if c.want == 2 && (!s.read[0].Equal(time.Now().Add(time.Minute)) || !s.read[1].IsZero()) {
				t.Errorf("%s: deadlines %v, want a minute and none", name, s.read)
			}
			for n := range c.want {
				r := NewReader(&timed{
					Reader: io.MultiReader(
						bytes.NewReader(good[:c.parts[0]]), bytes.NewReader(good[c.parts[0]:])), refuse: n,
				}, time.Minute)
				if _, err := r.Next(len(good)); !errors.Is(err, errRefused) {
					t.Errorf("%s: without deadline %d: %v", name, n, err)
				}
			}
		}
		whole := &timed{Reader: io.MultiReader(
			bytes.NewReader(good[:1]), bytes.NewReader(good[1:])), refuse: -1}
		if _, err := NewTimedReader(whole).Next(len(good)); err != nil || len(whole.read) != 0 {
			t.Errorf("the caller's deadline was moved: %v, %v", whole.read, err)
		}
		out := &timed{refuse: -1}
		if n, err := (DeadlineWriter{out, time.Second}).Write(good); err != nil || n != len(good) ||
			len(out.write) != 1 || !out.write[0].Equal(time.Now().Add(time.Second)) {
			t.Errorf("wrote %d bytes with the deadlines %v, %v", n, out.write, err)
		}
		if _, err := (DeadlineWriter{&timed{}, 0}).Write(good); !errors.Is(err, errRefused) {
			t.Errorf("without a deadline: %v", err)
		}
	})
}

// A frame may be as large as the reader says, and not empty.
func TestTheSizeOfAFrame(t *testing.T) {
	good := frame(t)
	size := len(good) - protocol.FrameHeaderBytes
	for most, want := range map[int]error{size: nil, size - 1: protocol.ErrTooLarge} {
		_, err := NewReader(&timed{Reader: bytes.NewReader(good), refuse: -1}, time.Second).Next(most)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes of at most %d: %v, want %v", size, most, err, want)
		}
	}
	empty := &timed{Reader: bytes.NewReader(make([]byte, 8)), refuse: -1}
	_, err := NewReader(empty, time.Second).Next(size)
	if !errors.Is(err, protocol.ErrTooLarge) || !strings.Contains(err.Error(), "frame of 0 bytes") {
		t.Errorf("an empty frame: %v", err)
	}
}

// What is not usable is counted by its cause; what was read to its end can be left out.
func TestCausesOfWhatIsNotUsable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		skip bool
	}{
		{protocol.ErrTooLarge, causeSize, false},
		{protocol.ErrUnknownMessage, causeVersion, true},
		{protocol.ErrMalformed, CauseFormat, true},
		{grid.ErrInvalid, CauseFormat, true},
		{io.ErrUnexpectedEOF, causeFrame, false},
	} {
		err := fmt.Errorf("read: %w", c.err)
		if CauseOf(err) != c.want || Skippable(err) != c.skip {
			t.Errorf("%v: %q, skippable: %t", err, CauseOf(err), Skippable(err))
		}
	}
}

// What is counted is told by family and label, here and in the registry.
func TestCounters(t *testing.T) {
	c := NewCounters(obs.NewRegistry())
	if c.Get(CountIn, "Cancel") != 0 || len(c.Labels(CountIn)) != 0 {
		t.Error("something is counted before it happened")
	}
	c.Inc(CountIn, NameOf(protocol.Cancel{}))
	c.Add(CountIn, "Cancel", 4)
	c.Inc(CountIn, "Lease")
	c.Inc(CountOut, "Lease")
	if diff := cmp.Diff(map[string]uint64{"Cancel": 5, "Lease": 1}, c.Labels(CountIn)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.Get(CountIn, "Cancel"); got != 5 {
		t.Errorf("%d are counted, want 5", got)
	}
	for family, v := range c.families {
		v.With("x").Inc()
		if family == "" {
			t.Error("a family without a name")
		}
	}
	if n := len(c.families); n != 15 {
		t.Errorf("%d families are shown", n)
	}
}

// keyOfAnotherKind writes a key that no site may have.
func keyOfAnotherKind(t *testing.T, file string) {
	t.Helper()
	other, _, err := crypto.GenerateSecp256k1Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := crypto.MarshalPrivateKey(other)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A key of another kind, of no kind, or in a place that cannot be looked at is no identity;
// one that is there is never replaced.
func TestWhatIsNoIdentity(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	keyOfAnotherKind(t, file)
	if _, err := LoadIdentity(file); err == nil || !strings.Contains(err.Error(), "an ed25519 key") {
		t.Errorf("a key of another kind: %v", err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(file); err == nil || !strings.Contains(err.Error(), "not a key") ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("no key: %v", err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIdentity(file); !errors.Is(err, errKeyReadable) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for _, path := range []string{filepath.Join(file, "below"), filepath.Join(dir, "none", "key")} {
		if _, err := LoadIdentity(path); err == nil {
			t.Errorf("%s holds an identity", path)
		}
	}
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Save(file); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
	if back, err := PeerOf(id.Site()); err != nil || SiteOf(back) != id.Site() ||
		id.String() != string(id.Site()) || fmt.Sprintf("%v", id) != string(id.Site()) {
		t.Errorf("%s is the peer %s, %v", id.Site(), back, err)
	}
	if _, err := PeerOf("nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("no site: %v", err)
	}
}

// A pause lasts as long as it is to, unless it is woken or all ends.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		if !Pause(ctx, time.Minute, nil) || time.Since(began) != time.Minute {
			t.Errorf("paused %s", time.Since(began))
		}
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		began = time.Now()
		if !Pause(ctx, time.Minute, wake) || time.Since(began) != 0 {
			t.Errorf("woken after %s", time.Since(began))
		}
		done := 0
		Later(ctx, time.Minute, func() { done++ })
		time.AfterFunc(time.Second, cancel)
		began = time.Now()
		if Pause(ctx, time.Minute, nil) || time.Since(began) != time.Second {
			t.Errorf("ended after %s", time.Since(began))
		}
		Later(ctx, time.Minute, func() { done++ })
		close(wake)
		if Pause(ctx, 0, wake) {
			t.Error("woken after all has ended")
		}
		if done != 1 {
			t.Errorf("%d were done later, want the one before the end", done)
		}
	})
	b := Backoff{Low: time.Second, High: time.Minute}
	low, high := time.Hour, time.Duration(0)
	for range 2000 { // so that nearly all of the upper half is drawn
		b.Reset()
		d := b.Next(false)
		low, high = min(low, d), max(high, d)
	}
	if low < time.Second/2 || low > 520*time.Millisecond || high > time.Second ||
		high < 980*time.Millisecond {
		t.Errorf("pauses from %s to %s, want the upper half of a second", low, high)
	}
}
