package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// savedTask is a task that runs on, and saves its state.
func savedTask() grid.Task {
	return grid.Task{
		ID: testAttempt.Task, Kind: grid.KindWasm, Args: []string{"run=-1s", "save=20ms"},
	}
}

// takes lets the bench take a checkpoint of its running attempt.
func (b *bench) takes(number uint64) step.Saved {
	b.t.Helper()
	b.order(step.Save{Attempt: testAttempt, Number: number})
	var saved step.Saved
	eventually(b.t, "a checkpoint is taken", func() bool {
		for _, s := range list[step.Saved](b) {
			if s.Checkpoint.Number == number || s.Problem != "" {
				saved = s
				return true
			}
		}
		return false
	})
	if saved.Problem != "" {
		b.t.Fatalf("checkpoint %d: %s", number, saved.Problem)
	}
	return saved
}

// content reads what is held.
func (b *bench) content(cid grid.CID) string {
	b.t.Helper()
	r, err := b.data.Cat(b.t.Context(), cid)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil {
		b.t.Fatal(err)
	}
	return text.String()
}

// A state that a program saves becomes sealed content; two are different, and one that is let go
// is not kept.
func TestStatesBecomeCheckpoints(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.stage()
	b.begin(time.Hour, savedTask())
	if able := await[step.CanSave](b); able.Attempt != testAttempt {
		t.Fatalf("told %+v", able)
	}
	first, second := b.takes(4), b.takes(5)
	for i, c := range []grid.Checkpoint{first.Checkpoint, second.Checkpoint} {
		text := b.content(c.CID)
		seal, err := protocol.ReadSeal([]byte(text), int64(len(text)))
		if err != nil || int64(len(text)) != c.Bytes {
			t.Fatalf("%q, %d bytes: %v", text, c.Bytes, err)
		}
		want := protocol.Seal{
			Task: testAttempt.Task, Token: testAttempt.Token, Number: uint64(4 + i),
			Work: savedTask().WorkDigest(), Bytes: seal.Bytes,
		}
		if seal != want {
			t.Errorf("sealed %+v, want %+v", seal, want)
		}
		b.wantPin(c.CID, pin{true, true}, "taken")
	}
	b.order(step.LetGo{Attempt: testAttempt, CIDs: []grid.CID{first.Checkpoint.CID}})
	b.wantPin(first.Checkpoint.CID, pin{}, "let go")
	b.wantPin(second.Checkpoint.CID, pin{true, true}, "the other")
	b.order(step.StopAttempt{Attempt: testAttempt})
	b.wantExit(grid.CauseStopped)
	b.order(step.Save{Attempt: testAttempt, Number: 6}) // too late: nobody answers
	b.discard()
}

// A program that says why it saves no state is not waited for: the site learns of it.
func TestAStateThatCannotBeSaved(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.stage()
	task := savedTask()
	task.Args = []string{"run=-1s"}
	b.begin(time.Hour, task)
	b.order(step.Save{Attempt: testAttempt, Number: 1})
	problem := filepath.Join(b.work.attemptDir(testAttempt), "work", "ckpt", "problem")
	var told []step.Saved
	eventually(t, "the site learns why", func() bool {
		// Again and again, since what was there before the order is removed with it.
		_ = os.WriteFile(problem, []byte("a file is open\n"), 0o600)
		told = list[step.Saved](b)
		return len(told) > 0
	})
	if told[0].Problem != "a file is open" || told[0].Attempt != testAttempt {
		t.Errorf("told %+v", told[0])
	}
}

// A job that wants no checkpoints gets no directory.
func TestNoCheckpointsAreTaken(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	b.stage()
	task := savedTask()
	task.Checkpoint.Off = true
	task.Args = []string{"run=300ms", "save=20ms"}
	b.begin(time.Hour, task)
	b.wantExit(grid.CauseExited)
	if told := list[step.CanSave](b); len(told) > 0 {
		t.Errorf("told %+v", told)
	}
	dir := filepath.Join(b.work.attemptDir(testAttempt), "work", "ckpt")
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is there")
	}
}

// sealed stores a state with a seal.
func (b *bench) sealed(text string, number uint64, change func(*protocol.Seal)) grid.Checkpoint {
	b.t.Helper()
	seal := protocol.Seal{
		Task: testAttempt.Task, Token: 1, Number: number, Work: savedTask().WorkDigest(),
		Bytes: int64(len(text)),
	}
	change(&seal)
	all, err := protocol.AppendSeal([]byte(text), seal)
	if err != nil {
		b.t.Fatal(err)
	}
	ref := b.store(b.t, string(all))
	return grid.Checkpoint{Number: number, CID: ref.CID, Bytes: ref.Bytes}
}

func asItIs(*protocol.Seal) {}

// spoiled are checkpoints that are not what they are said to be, number 9 of the task.
func (b *bench) spoiled() map[string]struct {
	c    grid.Checkpoint
	want grid.Reason
} {
	const text = "5000\n"
	type spoilt = struct {
		c    grid.Checkpoint
		want grid.Reason
	}
	plain, cut := b.store(b.t, "5000\nno seal"), b.content(b.sealed(text, 9, asItIs).CID)
	short := b.store(b.t, cut[:len(cut)-3])
	return map[string]spoilt{
		"no checkpoint": {
			grid.Checkpoint{Number: 9, CID: plain.CID, Bytes: plain.Bytes}, grid.ReasonSavedDamaged,
		},
		"cut short": {
			grid.Checkpoint{Number: 9, CID: short.CID, Bytes: short.Bytes}, grid.ReasonSavedDamaged,
		},
		"other length": {
			b.sealed(text, 9, func(s *protocol.Seal) { s.Bytes++ }), grid.ReasonSavedDamaged,
		},
		"other task": {
			b.sealed(text, 9, func(s *protocol.Seal) { s.Task.Index++ }), grid.ReasonSavedForeign,
		},
		"other program": {
			b.sealed(text, 9, func(s *protocol.Seal) { s.Work = "other" }), grid.ReasonSavedForeign,
		},
		"replayed": {
			b.sealed(text, 9, func(s *protocol.Seal) { s.Number = 3 }), grid.ReasonSavedOld,
		},
	}
}

// An attempt goes on from the latest checkpoint that is whole; the others are named.
func TestAnAttemptGoesOnFromAState(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	good := b.sealed("60000\n", 8, asItIs)
	for name, bad := range b.spoiled() {
		t.Run(name, func(t *testing.T) {
			b.mu.Lock()
			b.heard = nil
			b.mu.Unlock()
			b.order(step.Stage{
				Attempt: testAttempt, From: b.Self(), Work: savedTask().WorkDigest(),
				Saved: []grid.Checkpoint{bad.c, good},
			})
			staged := await[step.Staged](b)
			want := fmt.Sprint([]step.RefusedCheckpoint{{Number: 9, Reason: bad.want}})
			if staged.Problem != "" || staged.Saved != 8 || fmt.Sprint(staged.Refused) != want {
				t.Errorf("staged %+v, want 8 laid out and %s refused", staged, want)
			}
			task := savedTask()
			task.Args = []string{"run=1m", "save=1h"} // over when it goes on from 60 s
			b.begin(time.Hour, task)
			b.wantExit(grid.CauseExited)
			b.order(step.Discard{Attempt: testAttempt})
			eventually(t, "it is gone", func() bool { return len(b.left(t, "attempts")) == 0 })
		})
	}
}

// A checkpoint that nobody has is none, and the program begins anew.
func TestACheckpointThatIsNowhere(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	const nowhere = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
	b.order(step.Stage{
		Attempt: testAttempt, From: b.Self(), Work: savedTask().WorkDigest(),
		Saved: []grid.Checkpoint{{Number: 2, CID: nowhere, Bytes: 7}},
	})
	staged := await[step.Staged](b)
	if staged.Problem != "" || staged.Saved != 0 || len(staged.Refused) != 1 ||
		staged.Refused[0].Reason != grid.ReasonSavedMissing {
		t.Errorf("staged %+v", staged)
	}
	b.discard()
}

// The submitter's agent keeps a checkpoint that it has pulled and looked at, and no other.
func TestCheckpointsArePulled(t *testing.T) {
	t.Parallel()
	site, b := mates(t)
	pull := func(c grid.Checkpoint) step.Pulled {
		t.Helper()
		site.gives(b, c.CID)
		return b.pull(step.Pull{
			Attempt: testAttempt, Checkpoint: c, Work: savedTask().WorkDigest(), From: site.Self(),
		})
	}
	good := site.sealed(strings.Repeat("state", 100_000), 9, asItIs)
	want := step.Pulled{Attempt: testAttempt, Number: 9, CID: good.CID}
	if got := pull(good); got != want {
		t.Errorf("pulled %+v, want %+v", got, want)
	}
	b.wantPin(good.CID, pin{true, true}, "pulled")
	b.order(step.LetGo{Attempt: grid.AttemptID{Task: testAttempt.Task}, CIDs: []grid.CID{good.CID}})
	b.wantPin(good.CID, pin{}, "let go")
	for name, bad := range site.spoiled() {
		if got := pull(bad.c); got.Reason != bad.want {
			t.Errorf("%s: %+v, want %s", name, got, bad.want)
		}
		b.wantPin(bad.c.CID, pin{}, name)
	}
	big := site.sealed(strings.Repeat("state", 1_000_000), 9, asItIs)
	big.Bytes = 1000
	if got := pull(big); got.Reason != grid.ReasonSavedDamaged {
		t.Errorf("larger than said: %+v", got)
	}
}
