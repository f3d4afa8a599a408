package standby

import (
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// What other members may not say is not shown to raft.
func TestMessagesThatAreRefused(t *testing.T) {
	good := func() *pb.Message {
		return &pb.Message{
			Type: pb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(5)),
			Index: new(uint64(1)), LogTerm: new(uint64(1)),
			Entries: []*pb.Entry{{Index: new(uint64(2)), Term: new(uint64(5))}},
		}
	}
	s := newSolo(t)
	read := func(m *pb.Message) error {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.read(Received{From: 2, Data: data})
		return err
	}
	if err := read(good()); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for name, change := range map[string]func(*pb.Message){
		"another sender":    func(m *pb.Message) { m.From = new(uint64(3)) },
		"another receiver":  func(m *pb.Message) { m.To = new(uint64(3)) },
		"no term":           func(m *pb.Message) { m.Term = nil },
		"a proposal":        func(m *pb.Message) { m.Type = pb.MsgProp.Enum() },
		"a call for votes":  func(m *pb.Message) { m.Type = pb.MsgHup.Enum() },
		"a question":        func(m *pb.Message) { m.Type = pb.MsgReadIndex.Enum() },
		"forget the leader": func(m *pb.Message) { m.Type = pb.MsgForgetLeader.Enum() },
		"responses":         func(m *pb.Message) { m.Responses = []*pb.Message{{}} },
		"a gap":             func(m *pb.Message) { m.Entries[0].Index = new(uint64(3)) },
		"falling terms":     func(m *pb.Message) { m.LogTerm = new(uint64(6)) },
		"a later term":      func(m *pb.Message) { m.Entries[0].Term = new(uint64(6)) },
		"a short context": func(m *pb.Message) {
			m.Type, m.Context = pb.MsgHeartbeatResp.Enum(), []byte("abc")
		},
		"a table that is none": func(m *pb.Message) {
			m.Type, m.Entries, m.Snapshot = pb.MsgSnap.Enum(), nil, &pb.Snapshot{Data: []byte("[")}
		},
	} {
		m := good()
		change(m)
		if err := read(m); !errors.Is(err, errBadMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, data := range [][]byte{[]byte("no message"), make([]byte, s.cfg.MaxMessage+1)} {
		if _, err := s.read(Received{From: 2, Data: data}); !errors.Is(err, errBadMessage) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

// FuzzStep gives a member of three what another one may send: no panic leaves Step, and the
// member keeps its invariants or ends.
func FuzzStep(f *testing.F) {
	for _, kind := range fromPeers() {
		data, err := proto.Marshal(&pb.Message{
			Type: kind.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(3)),
			Index: new(uint64(1)), LogTerm: new(uint64(1)), Commit: new(uint64(1)),
			Entries: []*pb.Entry{
				{Index: new(uint64(2)), Term: new(uint64(3)), Data: batch{term: 3}.encode()},
			},
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, []byte{}, uint16(0))
		f.Add(data, data, uint16(1500))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, wait uint16) {
		disk := Founded(0, nil, 1, 2, 3)
		g, err := New(Default(1), noon, &disk)
		if err != nil {
			t.Fatal(err)
		}
		now := noon
		for _, in := range []Input{
			Woken{},
			Received{From: 2, Data: first},
			Woken{},
			Received{From: 2, Data: second},
			Woken{},
			Received{From: 3, Data: first},
		} {
			ended := false
			queue := []Input{in}
			for ; len(queue) > 0; queue = queue[1:] {
				for _, e := range g.Step(now, queue[0]) {
					if save, is := e.(Save); is && save.Sync {
						queue = append(queue, Saved{Number: save.Number})
					}
					_, over := e.(Ended)
					ended = ended || over
				}
			}
			if err := g.Check(); err != nil && !ended {
				t.Error(err)
			}
			now = now.Add(time.Duration(wait) * time.Millisecond)
		}
	})
}
