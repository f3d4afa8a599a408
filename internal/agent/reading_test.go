package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// printed writes what an attempt of the bench has printed.
func printed(t *testing.T, a lrm.Attempt, stdout, stderr string) {
	t.Helper()
	for path, text := range map[string]string{a.StdoutPath(): stdout, a.StderrPath(): stderr} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) read(ctx context.Context, q view.LogQuery) string {
	b.t.Helper()
	body, err := b.OpenLog(ctx, b.Self(), testAttempt, q)
	if err != nil {
		b.t.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		b.t.Errorf("%+v: %v", q, err)
	}
	return string(text)
}

// Of a log what was printed so far is read, from where it was asked for, and of the stream that
// was asked for.
func TestReadingALog(t *testing.T) {
	b, p, a := play(t, wasmTask())
	if got := b.read(t.Context(), view.LogQuery{Stream: "stdout"}); got != "" {
		t.Errorf("before it prints it reads %q", got)
	}
	printed(t, a, "out", "err")
	for _, c := range []struct {
		q    view.LogQuery
		want string
	}{
		{view.LogQuery{Stream: "stdout"}, "out"},
		{view.LogQuery{Stream: "stderr"}, "err"},
		{view.LogQuery{Stream: "stdout", Offset: 1}, "ut"},
		{view.LogQuery{Stream: "stdout", Offset: 3}, ""},
		{view.LogQuery{Stream: "stdout", Offset: 9}, ""},
		{view.LogQuery{Stream: "stdout", Offset: -1}, "out"},
	} {
		if got := b.read(t.Context(), c.q); got != c.want {
			t.Errorf("%+v reads %q, want %q", c.q, got, c.want)
		}
	}
	followed := make(chan string)
	go func() {
		q := view.LogQuery{Stream: "stdout", Follow: true}
		followed <- b.read(context.WithoutCancel(t.Context()), q)
	}()
	f, err := os.OpenFile(a.StdoutPath(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(" and more"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	p.end()
	if got := <-followed; got != "out and more" {
		t.Errorf("following it reads %q", got)
	}
	b.wantExit(grid.CauseExited)
	b.discard()
	if got := b.read(t.Context(), view.LogQuery{Stream: "stdout"}); got != "" {
		t.Errorf("of a discarded attempt it reads %q", got)
	}
}

// What is no plain file is not read, nor is it waited for: a job may have made a link or a pipe.
func TestLogsThatAreNoFiles(t *testing.T) {
	b, _, a := play(t, wasmTask())
	if err := os.Symlink("/etc/passwd", a.StdoutPath()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(a.StderrPath(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"stdout", "stderr"} {
		body, err := b.OpenLog(t.Context(), b.Self(), testAttempt, view.LogQuery{Stream: stream})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(body); err == nil || len(text) != 0 {
			t.Errorf("%s reads %q, %v", stream, text, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A reader that leaves ends what feeds it; an agent that ends ends its readers, whether they
// read or not.
func TestReadersThatLeave(t *testing.T) {
	t.Parallel()
	b, _, a := play(t, wasmTask())
	printed(t, a, "out", "")
	ended := make(chan error, 1)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- b.copyLog(ctx, w, testAttempt, logRequest{Stream: "stdout", Follow: true})
	}()
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("following ends with %v", err)
	}
	go func() { ended <- b.copyLog(t.Context(), w, testAttempt, logRequest{Stream: "stdout"}) }()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "copy the log") {
		t.Errorf("a reader that is gone: %v", err)
	}
	follow := view.LogQuery{Stream: "stdout", Follow: true}
	left, err := b.OpenLog(context.Background(), b.Self(), testAttempt, follow)
	if err != nil {
		t.Fatal(err)
	}
	if err = left.Close(); err != nil {
		t.Error(err)
	}
	unread, err := b.OpenLog(context.Background(), b.Self(), testAttempt, follow)
	if err != nil || unread == nil {
		t.Fatal(err)
	}
	body, err := b.OpenLog(context.Background(), b.Self(), testAttempt, follow)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	go func() {
		request := logRequest{Follow: true}
		ended <- b.copyLog(context.Background(), io.Discard, testAttempt, request)
	}()
	b.leave(errStopped)
	if rest, err := io.ReadAll(body); err != nil || len(rest) != 0 {
		t.Errorf("at the agent's end it reads %q, %v", rest, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("at the agent's end following ends with %v", err)
	}
	b.group.Wait()
}

// A request for a log is one line of bounded length that names an attempt; all else is counted
// and not answered.
func TestRequestsForLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t, newPuppet())
	count := func(event string) int64 { return b.Known().Counters[event] }
	ask := func(line string) string {
		t.Helper()
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			b.serveLog("other", there)
			_ = there.Close()
		}()
		if err := here.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(here, line) }()
		text, _ := io.ReadAll(bufio.NewReader(here))
		<-served
		_ = here.Close()
		return string(text)
	}
	known := `{"attempt":"` + testAttempt.String() + `","stream":"stdout"`
	for n, line := range []string{
		"rubbish\n", `{"attempt":"rubbish"}` + "\n", "[]\n",
		known + strings.Repeat(" ", maxLogRequest-len(known)-1) + "}\n",
	} {
		if text := ask(line); text != "" || count("log_request_invalid") != int64(n+1) {
			t.Errorf("%.30q reads %q, %d are counted", line, text, count("log_request_invalid"))
		}
	}
	for n, line := range []string{
		known + "}\n", known + strings.Repeat(" ", maxLogRequest-len(known)-2) + "}\n",
	} {
		if text := ask(line); text != "" || count("log_request_denied") != int64(n+1) {
			t.Errorf("%.30q reads %q, %d are denied", line, text, count("log_request_denied"))
		}
	}
}

// tired is a stream whose reads time out some times before its other side leaves.
type tired struct{ times int }

func (s *tired) Read([]byte) (int, error) {
	switch s.times--; {
	case s.times > 1:
		return 0, nil
	case s.times >= 0:
		return 0, os.ErrDeadlineExceeded
	default:
		return 0, io.EOF
	}
}

// Who follows a log says nothing for long: a read that times out does not mean that it left.
func TestASilentReaderIsStillThere(t *testing.T) {
	t.Parallel()
	s := &tired{times: 4}
	awaitEnd(s)
	if s.times != -1 {
		t.Errorf("it ended when %d reads were left", s.times+1)
	}
}

// An attempt's data is laid out once it is here; what goes wrong names the input.
func TestStagingThatGoesWrong(t *testing.T) {
	t.Parallel()
	const nowhere = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
	for _, c := range []struct {
		name   string
		spoil  func(b *bench)
		module grid.CID
		want   string
	}{
		{"the attempt's directory", func(b *bench) {
			if err := os.Mkdir(b.work.attemptDir(testAttempt), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "", "make the attempt's directory"},
		{"the module", func(*bench) {}, nowhere, "fetch /module"},
	} {
		b := newBench(t, newPuppet())
		c.spoil(b)
		b.order(step.Stage{
			Attempt: testAttempt, From: b.Self(), Module: grid.Input{Path: "/module", CID: c.module},
		})
		if got := await[step.Staged](b); !strings.Contains(got.Problem, c.want) || got.Local {
			t.Errorf("%s: %+v, want %q", c.name, got, c.want)
		}
		b.discard()
	}
	// Without a module there is none.
	b := newBench(t, newPuppet())
	b.order(step.Stage{Attempt: testAttempt, From: b.Self()})
	if got := await[step.Staged](b); got.Problem != "" || got.Bytes != 0 {
		t.Errorf("nothing to stage: %+v", got)
	}
	if found := b.left(t, "modules"); len(found) != 0 {
		t.Errorf("modules %q", found)
	}
	info, err := os.Stat(b.work.attemptDir(testAttempt))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory of the attempt: %v, %v", info, err)
	}
	b.discard()
}
