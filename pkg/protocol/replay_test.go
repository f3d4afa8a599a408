package protocol

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestReplayWindowIsAsItSays compares a small window, whose signers come and go, with a twin
// that has no ring and no sweeps: nothing is admitted twice while its signer is remembered;
// what is fresh is admitted unless it is too far behind, or comes from a new signer when the
// window is full. What Check refuses Admit refuses as well.
func TestReplayWindowIsAsItSays(t *testing.T) {
	type signer struct {
		seen    map[uint64]bool
		highest uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		const most = 3
		window, now := NewReplayWindow(most), time.UnixMilli(issuedMS)
		twin := map[grid.SiteID]*signer{}
		for range rapid.IntRange(1, 60).Draw(t, "envelopes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			e := testEnvelope()
			e.Signer = rapid.SampledFrom([]grid.SiteID{"a", "b", "c", "d", "e"}).Draw(t, "signer")
			_, known := window.signers[e.Signer]
			if !known { // nothing of it could be accepted again
				twin[e.Signer] = &signer{seen: map[uint64]bool{}}
			}
			s := twin[e.Signer]
			e.Sequence = rapid.Uint64Range(1, 3*replayBits).Draw(t, "sequence")
			if rapid.Bool().Draw(t, "near") {
				e.Sequence = s.highest + rapid.Uint64Range(1, 200).Draw(t, "ahead")
			}
			e.Validity = MaxValidity
			e.IssuedMS = now.Add(time.Duration(rapid.IntRange(-1300, 700).Draw(t, "issued")) *
				time.Second).UnixMilli()
			full := !known && len(window.signers) == most
			old := s.seen[e.Sequence] || e.Sequence+replayBits <= s.highest
			check, err := window.Check(e, now), window.Admit(e, now)
			want := check
			if fresh := e.CheckTime(now); fresh != nil || old {
				want = cmp.Or(fresh, errReplayed)
			}
			if full && errors.Is(err, errCrowded) {
				continue
			}
			if !errors.Is(check, want) || !errors.Is(err, want) {
				t.Fatalf("%s %d: Check = %v, Admit = %v, want %v", e.Signer, e.Sequence, check, err, want)
			}
			if err == nil {
				s.seen[e.Sequence], s.highest = true, max(s.highest, e.Sequence)
			}
			if len(window.signers) > most {
				t.Fatalf("%d signers", len(window.signers))
			}
		}
	})
}

// A full window looks for signers to forget when the first can have become one, and no more
// often: looking costs time for each.
func TestReplayWindowForgetsInTime(t *testing.T) {
	envelope := func(signer string, at time.Time, validity time.Duration) Envelope {
		e := testEnvelope()
		e.Signer, e.IssuedMS, e.Validity = grid.SiteID(signer), at.UnixMilli(), validity
		return e
	}
	begin := time.UnixMilli(issuedMS)
	w := NewReplayWindow(2)
	for _, c := range []struct {
		signer string
		at     time.Duration
		valid  time.Duration
		want   error
	}{
		{"short", 0, time.Second, nil},
		{"long", 0, MaxValidity, nil},
		{"new", 0, time.Second, errCrowded},
		{"new", MaxSkew, time.Second, errCrowded},
		{"new", MaxSkew + time.Second, time.Second, errCrowded}, // short may come again until now
		{"new", MaxSkew + 2*time.Second, time.Second, nil},
		{"newer", MaxSkew + 3*time.Second, time.Second, errCrowded},
		{"newer", MaxSkew + MaxValidity + time.Second, time.Second, nil}, // long is over
	} {
		now := begin.Add(c.at)
		if err := w.Admit(envelope(c.signer, now, c.valid), now); !errors.Is(err, c.want) {
			t.Errorf("%s at %s: %v, want %v", c.signer, c.at, err, c.want)
		}
		next := w.nextSweep
		if c.want == nil {
			continue
		}
		if next.Before(now) || next.After(now.Add(MaxSkew)) {
			t.Errorf("%s at %s: looks again at %s", c.signer, c.at, next.Sub(begin))
		}
		for signer, seen := range w.signers {
			if seen.forgetAt.Before(next) {
				t.Errorf("%s at %s: %s could be forgotten before", c.signer, c.at, signer)
			}
		}
	}
}

// At least one signer is heard, whatever was asked for.
func TestASmallReplayWindow(t *testing.T) {
	for _, most := range []int{-1, 0, 1} {
		w, now := NewReplayWindow(most), time.UnixMilli(issuedMS)
		other := testEnvelope()
		other.Signer = "other"
		if err := w.Admit(testEnvelope(), now); err != nil {
			t.Errorf("%d signers: %v", most, err)
		}
		if err := w.Admit(other, now); !errors.Is(err, errCrowded) {
			t.Errorf("%d signers: another one: %v", most, err)
		}
		if err := w.Admit(testEnvelope(), now); !errors.Is(err, errReplayed) {
			t.Errorf("%d signers: again: %v", most, err)
		}
	}
}
