package standby

import (
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// heartbeats counts those of a world from now on, and what nobody in calm sends.
func heartbeats(w *world) (beats, votes *int) {
	beats, votes = new(int), new(int)
	w.drops = func(_, _ *host, payload any) bool {
		switch m := raftMessage(payload); {
		case m.GetType() == pb.MsgHeartbeat:
			*beats++
		case asksVote(m):
			*votes++
		}
		return false
	}
	return beats, votes
}

// A group that has nothing to do sends a tenth of the heartbeats, and nobody misses the others. The
// first job ends that.
func TestAGroupWithoutJobsRests(t *testing.T) {
	w := newWorld(11, 3, 2)
	w.rests = true
	w.begin()
	w.leader()
	w.run(5 * time.Second)
	beats, votes := heartbeats(w)
	const span = time.Minute
	w.run(span)
	usual := 2 * int(span/w.cfg.Heartbeat)
	if rare := 2 * int(span/w.cfg.Rest); *beats > rare+4 || *beats < rare-4 || *votes > 0 {
		t.Errorf("%d heartbeats in %s and %d votes, want %d and none", *beats, span, *votes, rare)
	}
	w.rests = false // the machine is told of a job by its driver, and has it for long
	leader := w.leader()
	leader.input(func(now time.Time) { leader.give(now, Rest{}) })
	*beats = 0
	w.run(span)
	if *beats < usual-10 || *votes > 0 {
		t.Errorf("with a job %d heartbeats and %d votes, want %d and none", *beats, *votes, usual)
	}
}

// A leader that dies in its rest is missed later, but not for good; one that has acknowledged a
// job is missed as soon as ever. Where a heartbeat is lost in a rest nobody is elected.
func TestWhoIsMissedInARest(t *testing.T) {
	const soon = 1400 * time.Millisecond
	for seed := range uint64(30) {
		missed := func(prepare func(w *world)) time.Duration {
			w := newWorld(seed, 3, 2)
			w.rests = true
			w.begin()
			w.leader()
			w.run(5*time.Second + w.between(0, 2*time.Second))
			prepare(w)
			m, died := w.leader(), w.now
			m.crash()
			if !w.runUntil(20*time.Second, func() bool { return w.acting() != nil }) {
				t.Fatalf("seed %d: nobody acts", seed)
			}
			return w.now - died
		}
		rest := Default(1).Rest
		if took := missed(func(*world) {}); took > soon+2*rest || took < soon {
			t.Errorf("seed %d: idle, another acts after %s", seed, took)
		}
		took := missed(func(w *world) {
			w.user.tasks = 1
			w.user.submit(0)
			if !w.runUntil(time.Second, func() bool { return w.user.accepted[0] }) {
				t.Fatalf("seed %d: not accepted", seed)
			}
		})
		if took > soon {
			t.Errorf("seed %d: after a job was accepted another acts after %s", seed, took)
		}
	}
	w := newWorld(3, 3, 2)
	w.rests = true
	w.begin()
	w.leader()
	w.run(5 * time.Second)
	_, votes := heartbeats(w)
	count, lost := w.drops, 0
	w.drops = func(from, to *host, payload any) bool {
		drop := raftMessage(payload).GetType() == pb.MsgHeartbeat && lost == 0
		if drop {
			lost++
		}
		return count(from, to, payload) || drop
	}
	w.run(10 * time.Second)
	if lost != 1 || *votes > 0 {
		t.Errorf("%d heartbeats were lost, %d votes are asked for", lost, *votes)
	}
}

// Nobody waits for longer than a leader of the own settings could ask for.
func TestALeaderCannotAskForMuchPatience(t *testing.T) {
	disk := Founded(0, nil, 1, 2, 3)
	g, err := New(Default(1), noon, &disk)
	if err != nil {
		t.Fatal(err)
	}
	g.Step(noon, Woken{})
	data, err := proto.Marshal(&pb.Message{
		Type: pb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(9)), RejectHint: new(uint64(1 << 60)),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Step(noon, Received{From: 2, Data: data})
	c := g.cfg
	most := noon.Add(2*c.Rest - c.Heartbeat + c.ElectionTimeout + c.ElectionSpread)
	if g.votes.campaign.After(most) {
		t.Errorf("it campaigns at %s, want %s at the latest", g.votes.campaign, most)
	}
}
