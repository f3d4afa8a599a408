package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// checkEvery bounds how late the end of a lease is noticed after the machine was
// suspended where there is no alarm: timers stop then, the lease does not.
const checkEvery = 100 * time.Millisecond

// supervisor watches over one runner. All fields belong to the goroutine of run.
type supervisor struct {
	spec     Spec
	own      lrm.Identity // this process
	runner   *runner
	warm     *warm // kept from the attempt before, or for the next one; nil: none
	recorder *lrm.Recorder
	onDisk   func() error // waits for the record's last start or end; nil: there is none
	out      *json.Encoder
	commands <-chan command
	term     <-chan os.Signal
	told     bool // to terminate

	lease     lrm.BootTime
	suspended bool // the agent wants it frozen
	frozen    bool
	meter     meter
	heldTill  time.Time     // it pauses for its share of the processors until then; zero: it does not
	since     time.Time     // when it last began to run, zero while it does not
	ran       time.Duration // before since
	verdict   *Report       // why it was killed, nil = it was not
}

func (s *supervisor) begin() { s.since = time.Now() }

func (s *supervisor) pauseClock() {
	if !s.since.IsZero() {
		s.ran += time.Since(s.since)
		s.since = time.Time{}
	}
}

// wallLeft is the run time that the attempt has left; false means no limit.
func (s *supervisor) wallLeft() (time.Duration, bool) {
	if s.spec.Limits.WallTime == 0 {
		return 0, false
	}
	left := s.spec.Limits.WallTime - s.ran
	if !s.since.IsZero() {
		left -= time.Since(s.since)
	}
	return left, true
}

// watch enforces until the runner is gone.
func (s *supervisor) watch() runnerEnd {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wake := newAlarm()
	defer wake.close()
	for set := lrm.BootTime(0); ; {
		s.enforce()
		timer.Reset(s.nextCheck())
		if !s.frozen && s.lease != set {
			set = s.lease
			wake.set(set)
		}
		select {
		case <-wake.ring():
		case c, ok := <-s.commands:
			s.obey(c, ok)
		case <-s.term:
			s.told = true
			s.kill(grid.CauseStopped, "the supervisor was told to terminate")
		case <-s.runner.overflow:
			s.kill(grid.CauseOutput, outputText(s.spec.Limits))
		case over := <-s.runner.exceeded:
			s.kill(over.Cause, over.Text)
		case on := <-s.runner.prepares:
			s.tellPreparing(on)
		case end := <-s.runner.ended:
			return end
		case <-timer.C:
		}
	}
}

func (s *supervisor) tellPreparing(on bool) {
	event := lrm.Prepared
	if on {
		event = lrm.Preparing
	}
	s.tell(message{Event: event, At: lrm.BootNow()})
}

func (s *supervisor) obey(c command, agentLives bool) {
	switch {
	case !agentLives:
		s.commands = nil
		s.kill(grid.CauseSiteRestart, "the site's agent died")
	case c.Attempt != s.spec.Attempt: // which has ended
	case c.Stop != nil:
		s.kill(grid.CauseStopped, *c.Stop)
	case c.Suspend != nil:
		s.suspended = *c.Suspend
	case c.Lease != nil:
		s.lease = *c.Lease
	}
}

// enforce brings the runner into the state that lease and limits ask for.
func (s *supervisor) enforce() {
	if s.verdict != nil {
		return
	}
	if left, bounded := s.wallLeft(); bounded && left <= 0 {
		s.kill(grid.CauseTimeLimit, fmt.Sprintf("ran longer than %s", s.spec.Limits.WallTime))
		return
	}
	stand := s.suspended || lrm.BootNow() >= s.lease
	switch {
	case stand && !s.frozen:
		s.freeze()
	case !stand && s.frozen:
		s.resume()
	}
	if !s.frozen && s.verdict == nil && s.spec.MeterCPU {
		s.share(time.Now())
	}
}

// nextCheck is the time until lease or limit can end.
func (s *supervisor) nextCheck() time.Duration {
	next := checkEvery
	if s.frozen || s.verdict != nil {
		return next // only a command or the end changes anything
	}
	next = min(next, s.lease.Sub(lrm.BootNow()))
	if left, bounded := s.wallLeft(); bounded {
		next = min(next, left)
	}
	if s.spec.MeterCPU {
		next = min(next, s.meter.nextLook(time.Now(), s.heldTill))
	}
	return max(next, 0)
}

func (s *supervisor) freeze() {
	if err := s.runner.freeze(); err != nil {
		// What cannot be frozen must not run on.
		s.kill(grid.CauseSandbox, "freeze: "+err.Error())
		return
	}
	s.frozen, s.heldTill = true, time.Time{}
	s.pauseClock()
	s.note(lrm.RecordFrozen)
	s.tell(message{Event: lrm.Frozen, At: lrm.BootNow()})
}

func (s *supervisor) resume() {
	s.note(lrm.RecordResumed)
	s.begin()
	if err := s.runner.resume(); err != nil {
		s.kill(grid.CauseSandbox, "resume: "+err.Error())
		return
	}
	s.frozen = false
	s.meter.forget()
	s.tell(message{Event: lrm.Resumed, At: lrm.BootNow()})
}

func (s *supervisor) note(event lrm.RecordEvent) {
	if err := s.recorder.Append(lrm.Record{Event: event}); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
}

// kill ends the runner; the first reason counts.
func (s *supervisor) kill(cause grid.ExitCause, text string) {
	if s.verdict != nil {
		return
	}
	s.verdict = &Report{Cause: cause, Text: lrm.ExitText(text)}
	s.runner.kill()
}

// judge says why the attempt ended.
func (s *supervisor) judge(end runnerEnd) Ending {
	e := Ending{Wall: s.ran}
	switch {
	case s.verdict != nil:
		e.Report = *s.verdict
	case end.lost != nil:
		e.Report = sandboxFailure(end.lost)
	case end.overflowed:
		e.Report = Report{Cause: grid.CauseOutput, Text: outputText(s.spec.Limits)}
	case s.spec.Reports && end.report != nil:
		e.Report = *end.report
	case s.spec.Reports:
		// The program's own end always comes with a report; this is the site's
		// doing, such as a lack of memory of the whole machine.
		e.Report = Report{
			Cause: grid.CauseSandbox, Text: "the runner ended without a report: " + end.text,
		}
		e.Broken = true
	case end.signal != 0:
		e.Report = Report{Cause: grid.CauseSignal, Code: end.signal, Text: end.text}
	default:
		e.Report = Report{Cause: grid.CauseExited, Code: end.code}
	}
	e.Told = end.told && s.verdict == nil
	return e
}

func outputText(l lrm.Limits) string {
	return "printed more than " + grid.FormatBytes(l.OutputBytes) + " to one stream"
}

func diskText(l lrm.Limits) string {
	return "wrote more than " + grid.FormatBytes(l.DiskBytes)
}
