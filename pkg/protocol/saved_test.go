package protocol

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func testSeal() Seal {
	return Seal{
		Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: 7}, Token: 3, Number: 4, Work: "w",
		Bytes: 5,
	}
}

// tailOf is the end of a checkpoint, as a reader has it.
func tailOf(all []byte) []byte { return all[max(0, len(all)-MaxSealBytes):] }

func TestASealIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SliceOfN(rapid.Byte(), 0, 2*MaxSealBytes).Draw(t, "state")
		want := Seal{
			Task:   grid.TaskID{Job: drawJob(t), Index: rapid.Uint32().Draw(t, "index")},
			Token:  grid.Token(rapid.Uint64().Draw(t, "token")),
			Number: rapid.Uint64().Draw(t, "number"),
			Work:   rapid.StringMatching("[0-9a-f]{64}").Draw(t, "work"), Bytes: int64(len(state)),
		}
		all, err := AppendSeal(bytes.Clone(state), want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(all, state) {
			t.Fatal("the state is not in front")
		}
		if got, err := ReadSeal(tailOf(all), int64(len(all))); err != nil || got != want {
			t.Fatalf("read %+v, %v, want %+v", got, err, want)
		}
		cut := rapid.IntRange(0, len(all)-1).Draw(t, "cut")
		if got, err := ReadSeal(tailOf(all[:cut]), int64(cut)); !errors.Is(err, ErrNoSeal) {
			t.Fatalf("cut to %d of %d bytes: %+v, %v", cut, len(all), got, err)
		}
	})
}

func TestASealThatIsNone(t *testing.T) {
	all, err := AppendSeal([]byte("state"), testSeal())
	if err != nil {
		t.Fatal(err)
	}
	long := testSeal()
	long.Work = string(make([]byte, MaxSealBytes))
	got, err := AppendSeal([]byte("state"), long)
	if !errors.Is(err, ErrTooLarge) || len(got) != 5 {
		t.Errorf("a seal too long: %q, %v", got, err)
	}
	change := func(at int) []byte {
		bad := bytes.Clone(all)
		bad[at] ^= 0xff
		return bad
	}
	for name, raw := range map[string][]byte{
		"mark": change(len(all) - 1), "length": change(len(all) - sealTail), "text": change(5),
		"state too short": all[1:], "state too long": append([]byte("x"), all...), "nothing": nil,
	} {
		if s, err := ReadSeal(tailOf(raw), int64(len(raw))); !errors.Is(err, ErrNoSeal) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestWhyASealIsNotTheOneThatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Seal)
		want   grid.Reason
	}{
		"the same":      {func(*Seal) {}, grid.ReasonNone},
		"other attempt": {func(s *Seal) { s.Token = 9 }, grid.ReasonNone},
		"other job":     {func(s *Seal) { s.Task.Job = "aaaaaaaaaaaaaaaa" }, grid.ReasonSavedForeign},
		"other task":    {func(s *Seal) { s.Task.Index = 8 }, grid.ReasonSavedForeign},
		"other program": {func(s *Seal) { s.Work = "v" }, grid.ReasonSavedForeign},
		"older":         {func(s *Seal) { s.Number = 3 }, grid.ReasonSavedOld},
		"newer":         {func(s *Seal) { s.Number = 5 }, grid.ReasonSavedOld},
	} {
		s := testSeal()
		if c.change(&s); s.Against(testSeal()) != c.want {
			t.Errorf("%s: %s, want %s", name, s.Against(testSeal()), c.want)
		}
	}
}

func FuzzReadSeal(f *testing.F) {
	all, err := AppendSeal([]byte("state"), testSeal())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all, int64(len(all)))
	f.Add([]byte(sealMark), int64(0))
	f.Fuzz(func(t *testing.T, tail []byte, total int64) {
		s, err := ReadSeal(tail, total)
		if err == nil && (s.Bytes < 0 || s.Bytes > total) && total >= 0 {
			t.Errorf("%d bytes of %d", s.Bytes, total)
		}
	})
}
