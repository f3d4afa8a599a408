package site

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// numbered is a job of a flood.
func numbered(i int) grid.JobID { return grid.JobID(fmt.Sprintf("zz%014s", letters(i))) }

func letters(i int) string {
	text := ""
	for range 6 {
		text = string(rune('a'+i%26)) + text
		i /= 26
	}
	return "aaaaaaaa" + text
}

// One submitter announces far more jobs than a site remembers. What others
// announced before is still answered from the cache, and the cache has space for more.
func TestAFloodOfJobsEvictsNobodyElses(t *testing.T) {
	const entries = 64
	r := newRig(t, func(c *Config) { c.CacheEntries = entries })
	for job, from := range map[grid.JobID]grid.SiteID{job1: alice, job2: bob, job3: self} {
		r.receive(from, announcement(job, from))
	}
	for i := range 40 * entries {
		r.receive("mallory", announcement(numbered(i), "mallory"))
		if i%97 == 0 {
			r.advance(time.Second)
		}
	}
	for job, from := range map[grid.JobID]grid.SiteID{job1: alice, job2: bob, job3: self} {
		again := announcement(job, from)
		r.receive(from, protocol.Reannounce{
			Job: job, Seq: 2, Submitter: from, Digest: protocol.DigestOf(again.Req), Count: 1,
			TTL: time.Second,
		})
		if asked := sent[protocol.NeedRequirements](r.out, from); len(asked) > 0 {
			t.Errorf("the requirement of %s is gone", from)
		}
		if bids := sent[protocol.Bid](r.out, from); len(bids) != 1 {
			t.Errorf("%s gets %d offers, want 1", from, len(bids))
		}
	}
	if own := r.m.Status().Cached; own > entries/shares+3 {
		t.Errorf("%d requirements are cached, want the flooder's %d and 3", own, entries/shares)
	}
	r.receive("carol", announcement("dddddddddddddddd", "carol"))
	if len(sent[protocol.Bid](r.out, "carol")) != 1 {
		t.Error("who comes later gets no offer")
	}
}

// The flooder cannot take others' jobs over either, whatever it clears or awards.
func TestAFloodOfOrdersOfOthersJobsChangesNothing(t *testing.T) {
	r := newRig(t)
	attempts := r.accepted(job1, alice, 1)
	before := string(r.m.Snapshot())
	for seq := range uint32(100) {
		for _, msg := range []protocol.Message{
			protocol.Clear{Job: job1, Submitter: "mallory", Kind: protocol.ClearEnded},
			protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearEnded},
			protocol.Cancel{Job: job1},
			protocol.Fence{Below: []grid.AttemptID{{Task: attempts[0].Task, Token: 99}}},
			protocol.ExitAck{Attempts: attempts},
			announcement(job1, "mallory", func(s *grid.Spec) { s.Need.MilliCPUs = int64(1 + seq) }),
		} {
			r.receive("mallory", msg)
		}
	}
	if after := string(r.m.Snapshot()); after != before {
		t.Errorf("the facts became %s, want %s", after, before)
	}
}
