package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// gvisorFailed is the exit code of runsc when it, rather than its command, failed. A command
	// may end with it, too: only runsc's log tells the two apart, which no command reaches.
	gvisorFailed  = 128
	mostKeptWords = 256 << 10 // bytes of a run's log
)

// keptRun is one run of gVisor, from the command's start or from a state to the next.
type keptRun struct {
	root  string // of runsc
	code  int
	words string        // why gVisor failed, if it did
	ended chan struct{} // closed when code and words are there
	dried []chan struct{}
}

// newRun prepares the directory and the log of a run.
func newRun(dir string, number int) (*keptRun, *os.File, error) {
	r := &keptRun{
		ended: make(chan struct{}), root: filepath.Join(dir, "runsc", strconv.Itoa(number)),
	}
	if err := os.MkdirAll(r.root, 0o700); err != nil {
		return nil, nil, err
	}
	if err := unix.Mkfifo(r.log(), 0o600); err != nil {
		return nil, nil, err
	}
	log, err := os.OpenFile(r.log(), os.O_RDWR, 0)
	return r, log, err
}

// log is a pipe: what gVisor says must be heard also when the disk is full.
func (r *keptRun) log() string { return r.root + ".log" }

// crash is a file that says something once gVisor's kernel has crashed.
func (r *keptRun) crash() string { return r.root + ".crash" }

// started is a file that is there once gVisor was about to run the command.
func (r *keptRun) started() string { return r.root + ".pid" }

// start starts it with pipes that end with it. What it says goes to log.
func (r *keptRun) start(cmd *exec.Cmd, log *os.File, streams [2]*keptStream) error {
	stdin, nobody, err := os.Pipe() // nobody's file: a device of the machine could be told things
	if err != nil {
		return err
	}
	nobody.Close()
	defer stdin.Close()
	cmd.Stdin = stdin
	for i, s := range streams {
		write, err := r.connect(s)
		if err != nil {
			return err
		}
		defer write.Close()
		if i == 0 {
			cmd.Stdout = write
		} else {
			cmd.Stderr = write
		}
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	go r.await(cmd, log)
	return nil
}

// connect lets a stream take what comes through the pipe whose other end it gives.
func (r *keptRun) connect(s *keptStream) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	dry := make(chan struct{})
	r.dried = append(r.dried, dry)
	go func() {
		defer close(dry)
		defer read.Close()
		s.take(read)
	}()
	return write, nil
}

// await notes how it ends.
func (r *keptRun) await(cmd *exec.Cmd, log *os.File) {
	defer close(r.ended)
	defer log.Close()
	heard := make(chan string)
	go func() { heard <- listen(log) }()
	_ = cmd.Wait()
	_, _ = log.Write([]byte{endOfLog})
	words := <-heard
	r.code = exitFailed
	if s := cmd.ProcessState; s != nil && s.Exited() {
		r.code = s.ExitCode()
	}
	if r.code == gvisorFailed {
		r.words = failureIn(words)
	}
	if said := crashIn(r.crash(), r.code); said != "" {
		r.words = said
	}
	if _, err := os.Stat(r.started()); err != nil && r.words == "" {
		r.words = "it began nothing, and ended: " + cmd.ProcessState.String()
	}
}

const endOfLog = 0 // what no log has

// listen gives what a log says until its end.
func listen(log io.Reader) string {
	var words []byte
	block := make([]byte, 4<<10) //nolint:mnd // a page
	for {
		n, err := log.Read(block)
		said, _, over := bytes.Cut(block[:n], []byte{endOfLog})
		words = append(words, said[:min(len(said), mostKeptWords-len(words))]...)
		if over || err != nil {
			return string(words)
		}
	}
}

// failureIn finds in a log of runsc why it failed, up to the host's paths; "" if it did not.
func failureIn(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Msg, Level string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Level == "error" {
			return firstLine(said.Msg)
		}
		if _, why, fatal := strings.Cut(line, gvisorFatal); fatal {
			return firstLine(why)
		}
	}
	return ""
}

// drain waits until all that was printed is kept.
func (r *keptRun) drain() {
	for _, dry := range r.dried {
		<-dry
	}
}

// clear ends what is left of a run, and all else in the namespaces whose first process this is.
func (r *keptRun) clear() {
	_ = unix.Kill(-1, unix.SIGKILL)
	<-r.ended
	r.drain()
	for { // all children end
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = os.RemoveAll(r.root)
	_, _, _ = os.Remove(r.log()), os.Remove(r.started()), os.Remove(r.crash())
}

// keptStream has what a command prints, kept in a file up to a limit.
type keptStream struct {
	file  *os.File
	size  atomic.Int64 // bytes that are kept; the run that prints writes it
	limit int64
	full  bool
	over  chan struct{} // closed when it is full
}

// restart makes the stream hold what was printed before. Nothing prints meanwhile.
func (s *keptStream) restart(from io.Reader, size int64) error {
	if err := s.file.Truncate(0); err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.size.Store(size)
	if size == 0 {
		return nil
	}
	_, err := io.CopyN(s.file, from, size)
	return err
}

// take keeps all that is printed up to the limit, and drops the rest.
func (s *keptStream) take(from io.Reader) {
	block := make([]byte, 64<<10) //nolint:mnd // as a pipe holds
	for {
		n, err := from.Read(block)
		size := s.size.Load()
		fits := min(int64(n), s.limit-size)
		wrote, wrong := s.file.WriteAt(block[:fits], size)
		s.size.Store(size + int64(wrote))
		if (fits < int64(n) || wrong != nil) && !s.full {
			s.full = true
			close(s.over)
		}
		if err != nil {
			return
		}
	}
}
