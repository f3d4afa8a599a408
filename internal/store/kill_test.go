package store

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const childEnv = "MRS_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := promiseForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// promiseForEver makes facts durable and prints the number of each when it is.
func promiseForEver(dir string) error {
	s, err := OpenWith(dir, Options{SegmentBytes: 4000}, quiet())
	if err != nil {
		return err
	}
	j, err := s.Begin(Header{Machine: "counter"})
	if err != nil {
		return err
	}
	facts, err := s.Load("counter")
	if err != nil {
		return err
	}
	for n := len(facts) / 2; ; n++ {
		key := fmt.Sprintf("%08d", n)
		if err := j.Record(time.Unix(int64(n), 0),
			step.TimerFired{Key: step.TimerKey{ID: key}}, nil); err != nil {
			return err
		}
		pair := []step.Fact{step.NewFact("first/1", key, n), step.NewFact("second/1", key, n)}
		if err := s.Apply("counter", pair); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// An agent that is killed at any instant has everything that it acknowledged,
// nothing by halves, and a journal with the cause of every fact.
func TestNothingAcknowledgedIsLostByAKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 6 {
		last := killAfter(t, dir, 1+rand.IntN(40), time.Duration(rand.IntN(3000))*time.Microsecond)
		before, err := ReadFacts(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		facts, err := s.Load("counter")
		if err != nil {
			t.Fatal(err)
		}
		if len(facts)%2 != 0 || len(facts)/2 <= last {
			t.Fatalf("round %d: %d facts after number %d was acknowledged", round, len(facts), last)
		}
		if diff := cmp.Diff(facts, before["counter"]); diff != "" {
			t.Fatalf("round %d: facts read before the next start differ:\n%s", round, diff)
		}
		half := len(facts) / 2
		for i, f := range facts {
			if want := fmt.Sprintf("%08d", i%half); f.Key != want {
				t.Fatalf("round %d: fact %d is %s, want %s", round, i, f.Key, want)
			}
		}
		closed(t, s)
		if got := recorded(t, dir); got < half {
			t.Fatalf("round %d: the journal ends before input %d; there are %d facts", round, got, half)
		}
	}
}

// killAfter starts the child, kills it some time after it has acknowledged that
// many facts, and returns the last number that it acknowledged.
func killAfter(t *testing.T, dir string, count int, more time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, lines := -1, bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if last, err = strconv.Atoi(strings.TrimSpace(lines.Text())); err != nil {
			t.Fatal(err)
		}
		if i+1 == count {
			time.AfterFunc(more, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || last < 0 {
		t.Fatalf("the child ended by itself after %d", last)
	}
	return last
}

// recorded is the number of inputs in all runs, which count on from each other.
func recorded(t *testing.T, dir string) int {
	t.Helper()
	next := 0
	for _, run := range runs(t, dir) {
		for e, err := range run.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Input != nil {
				next = max(next, int(e.Time.Unix())+1)
			}
		}
	}
	return next
}
