package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// needProcess skips where no process is used.
func needProcess(t *testing.T) {
	t.Helper()
	if Command("x") == nil {
		t.Skipf("on %s the agent takes in all content itself", runtime.GOOS)
	}
}

// What a process takes in has the name that the store gives it, and is held like all else.
func TestTheSameName(t *testing.T) {
	t.Parallel()
	needProcess(t)
	here, _ := newStore(t, nil)
	other, dir := newStore(t, nil)
	in := newIntake(nil)
	check := func(what string, c Content, want data.Ref, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.Take(t.Context(), other, c)
		if err != nil || got != want {
			t.Errorf("%s: taken in as %+v, %v; want %+v", what, got, err, want)
		}
		if held, err := other.Stat(want.CID); err != nil || held != want {
			t.Errorf("%s: held as %+v, %v", what, held, err)
		}
	}
	for _, size := range []int{0, 2<<20 + 1} {
		content := noise(size)
		f := fileOf(t, content) // its offset is at its end
		want, err := here.AddFile(t.Context(), bytes.NewReader(content))
		check("file", Content{File: f}, want, err)
		want, err = here.AddExecutable(t.Context(), bytes.NewReader(content))
		check("executable", Content{File: f, Executable: true}, want, err)
	}
	folder := tree(t)
	want, err := here.AddDir(t.Context(), folder)
	check("directory", Content{Dir: folder}, want, err)
	nothingLeft(t, dir)
}

const secret = grid.JobKey("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")

// Content of an encrypted job is encrypted by the process, files and directories alike.
func TestEncryptedContent(t *testing.T) {
	t.Parallel()
	needProcess(t)
	s, _ := newStore(t, nil)
	in := newIntake(nil)
	open := func(c Content) (data.Ref, io.Reader) {
		t.Helper()
		c.Key = secret
		ref, err := in.Take(t.Context(), s, c)
		if err != nil {
			t.Fatal(err)
		}
		body, err := s.Cat(t.Context(), ref.CID)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = body.Close() })
		plain, err := crypt.Open(secret, body)
		if err != nil {
			t.Fatal(err)
		}
		return ref, plain
	}
	content := noise(1 << 20)
	for _, executable := range []bool{false, true} {
		ref, plain := open(Content{File: fileOf(t, content), Executable: executable})
		if got, err := io.ReadAll(plain); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
		if ref.Executable != executable || ref.Bytes <= int64(len(content)) {
			t.Errorf("stored as %+v", ref)
		}
	}
	folder := tree(t)
	ref, plain := open(Content{Dir: folder})
	to := filepath.Join(t.TempDir(), "out")
	if err := crypt.Unpack(plain, to, ref.Bytes); err != nil {
		t.Fatal(err)
	}
	want, err := s.AddDir(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.AddDir(t.Context(), to); err != nil || got != want {
		t.Errorf("unpacked it is %+v, %v; want %+v", got, err, want)
	}
}

// What is wrong with the content, or lacks here, is told as the store would tell it, and is not
// the process's fault.
func TestWhatIsWrongKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	needProcess(t)
	linked := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "link")); err != nil {
		t.Fatal(err)
	}
	small := func(c *data.Config) { c.Limits.Bytes = 1 << 20 }
	quota := func(c *data.Config) { c.QuotaBytes = 4 << 20 }
	for name, tt := range map[string]struct {
		store   func(*data.Config)
		content Content
		want    error
	}{
		"over a limit": {small, Content{File: fileOf(t, noise(2<<20))}, data.ErrTooLarge},
		"over a quota": {quota, Content{File: fileOf(t, noise(5<<20))}, data.ErrQuota},
		"a link":       {nil, Content{Dir: linked}, data.ErrUnsupported},
		"no directory": {nil, Content{Dir: filepath.Join(linked, "none")}, fs.ErrNotExist},
		"for a key":    {nil, Content{Dir: linked + "/x", Key: secret}, fs.ErrNotExist},
	} {
		s, dir := newStore(t, tt.store)
		_, err := newIntake(nil).Take(t.Context(), s, tt.content)
		if !errors.Is(err, tt.want) || errors.Is(err, ErrProcess) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if name == "over a quota" && s.UsedBytes() > 4<<20 {
			t.Errorf("%d bytes are kept, the quota is 4 MiB", s.UsedBytes())
		}
		nothingLeft(t, dir)
	}
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// A process that cannot be started, dies or talks nonsense is ErrProcess, which says how it ended.
func TestProcessesThatFail(t *testing.T) {
	t.Parallel()
	needProcess(t)
	s, dir := newStore(t, nil)
	f := fileOf(t, noise(1<<20))
	for name, tt := range map[string]struct {
		command []string
		want    string
	}{
		"no command": {nil, "no command"},
		"not there":  {[]string{filepath.Join(dir, "none")}, "start it"},
		"dies":       {shell("read x; echo killed >&2; exit 7"), "exit status 7: killed"},
		"nonsense":   {shell("read x; echo hello; read x"), "do not understand"},
		"no block":   {shell(`read x; echo '{"Root":"bafk"}'`), "cid"},
	} {
		_, err := New(tt.command).Take(t.Context(), s, Content{File: f})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if name != "no block" && !errors.Is(err, ErrProcess) {
			t.Errorf("%s: %v, want %v", name, err, ErrProcess)
		}
		nothingLeft(t, dir)
	}
}

// A process that is killed in the middle leaves nothing, and the store takes the same content then.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	needProcess(t)
	s, dir := newStore(t, nil)
	f := fileOf(t, noise(5<<20))
	pid := 0
	in := newIntake(func(p int) { pid = p })
	kill := func(context.Context) {
		if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
			t.Errorf("process %d cannot be killed", pid)
		}
	}
	_, err := in.Take(t.Context(), paused{Store: s, at: kill}, Content{File: f})
	if !errors.Is(err, ErrProcess) {
		t.Errorf("the process was killed: %v", err)
	}
	nothingLeft(t, dir)
	if ref, err := in.Take(t.Context(), s, Content{File: f}); err != nil || ref.Bytes != 5<<20 {
		t.Errorf("afterwards: %+v, %v", ref, err)
	}
}

// While two processes are at work no third one is started.
func TestTwoProcessesAtATime(t *testing.T) {
	t.Parallel()
	needProcess(t)
	s, _ := newStore(t, nil)
	var begun atomic.Int32
	in := newIntake(func(int) { begun.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	arrived, ended := make(chan bool), make(chan error)
	for range atATime {
		f := fileOf(t, noise(1<<20))
		go func() {
			_, err := in.Take(ctx, paused{Store: s, at: func(building context.Context) {
				arrived <- true
				<-building.Done() // which follows ctx, a moment later
			}}, Content{File: f})
			ended <- err
		}()
		<-arrived
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	for range 20 { // one that did not wait would be started every other time
		_, err := in.Take(over, s, Content{File: fileOf(t, nil)})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a third: %v", err)
		}
	}
	if begun.Load() != atATime {
		t.Errorf("%d processes were started", begun.Load())
	}
	cancel()
	for range atATime {
		if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrProcess) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

// The end of the context ends a process that says nothing.
func TestTheContextEndsTheProcess(t *testing.T) {
	t.Parallel()
	needProcess(t)
	s, dir := newStore(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := New(shell("read order; read more"))
	in.began = func(int) { cancel() }
	ended := make(chan error, 1) // for the one end, whether or not it is waited for
	go func() {
		_, err := in.Take(ctx, s, Content{File: fileOf(t, nil)})
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrProcess) {
			t.Errorf("cancelled: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the process goes on")
	}
	nothingLeft(t, dir)
}

// A full disk is told through the pipe as one, for those that wait for space.
func TestErrorsOnTheirWay(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	long := strings.Repeat("\xff", 5*maxText)
	for _, want := range []error{
		noSpace(), data.ErrTooLarge, data.ErrUnsupported, fs.ErrNotExist, errors.New(long),
	} {
		out.Reset()
		if err := writeLine(&out, event{Failure: failureOf(want)}); err != nil {
			t.Fatal(err)
		}
		_, err := receive(&out, nil, nil)
		for _, kind := range []error{data.ErrTooLarge, data.ErrUnsupported, fs.ErrNotExist} {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%v came as %v", want, err)
			}
		}
		if durable.NoRoom(err) != durable.NoRoom(want) || data.Lacks(err) != durable.NoRoom(want) ||
			errors.Is(err, ErrProcess) || len(err.Error()) > 4*maxText {
			t.Errorf("%v came as %v", want, err)
		}
	}
}
