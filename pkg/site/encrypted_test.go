package site

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func encrypted(s *grid.Spec) { s.Encrypted = true }

// A site says that it opens encrypted content where that is asked for, and nowhere else.
func TestWhoOpensEncryptedContentSaysSo(t *testing.T) {
	t.Parallel()
	for _, want := range []bool{true, false} {
		r := newRig(t)
		r.receive(alice, announcement(job1, alice, func(s *grid.Spec) { s.Encrypted = want }))
		if got := one[protocol.Bid](r, alice).Offer.Decrypts; got != want {
			t.Errorf("encrypted %t: it says %t", want, got)
		}
	}
}

// An award of an encrypted job brings a key, and that of another job none; else it is declined and
// nothing is fetched. The key is handed to who opens the content.
func TestAnEncryptedAwardBringsItsKey(t *testing.T) {
	t.Parallel()
	key := []byte("a key for this site")
	for name, c := range map[string]struct {
		announced, awarded func(*grid.Spec)
		key                []byte
		want               bool
	}{
		"encrypted":              {encrypted, encrypted, key, true},
		"in the clear":           {func(*grid.Spec) {}, func(*grid.Spec) {}, nil, true},
		"without a key":          {encrypted, encrypted, nil, false},
		"a key for nothing":      {func(*grid.Spec) {}, func(*grid.Spec) {}, key, false},
		"announced in the clear": {func(*grid.Spec) {}, encrypted, key, false},
		"announced as encrypted": {encrypted, func(*grid.Spec) {}, nil, false},
	} {
		r := newRig(t)
		r.receive(alice, announcement(job1, alice, c.announced))
		a := award(job1, one[protocol.Bid](r, alice).Offer, 1, 1, c.awarded)
		a.Key = c.key
		r.receive(alice, a)
		staged := only[step.Stage](r.out)
		switch {
		case !c.want && (len(staged) > 0 || len(sent[protocol.Accepted](r.out, alice)) > 0):
			t.Errorf("%s: it is taken", name)
		case c.want && (len(staged) != 1 || !slices.Equal(staged[0].Key, c.key)):
			t.Errorf("%s: staged %+v", name, staged)
		}
	}
}

// A promised place of an encrypted job outlives a restart with its key.
func TestAPromisedKeyOutlivesARestart(t *testing.T) {
	t.Parallel()
	key := []byte("a key for this site")
	r := newRig(t)
	later := func(s *grid.Spec) {
		encrypted(s)
		s.Window.At = epoch().Add(time.Hour)
	}
	r.receive(alice, announcement(job1, alice, later))
	a := award(job1, one[protocol.Bid](r, alice).Offer, 1, 1, later)
	a.Key = key
	r.receive(alice, a)
	r.step(step.Verified{Attempt: attemptID(job1, 0, 1)})
	if staged := only[step.Stage](r.out); len(staged) != 1 || !slices.Equal(staged[0].Key, key) {
		t.Fatalf("staged %+v", staged)
	}
	r = r.restart(2)
	if staged := only[step.Stage](r.out); len(staged) != 1 || !slices.Equal(staged[0].Key, key) {
		t.Errorf("after a restart staged %+v", staged)
	}
}
