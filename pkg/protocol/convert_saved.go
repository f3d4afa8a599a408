package protocol

import "github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"

// setSaved sets the body for the messages about checkpoints and moves; it reports false for all
// others.
func setSaved(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Checkpointed:
		w.Body = &wirepb.Wire_Checkpointed{Checkpointed: &wirepb.Checkpointed{
			Attempt: wireAttempt(m.Attempt), Checkpoint: wireCheckpoint(m.Checkpoint),
		}}
	case Held:
		w.Body = &wirepb.Wire_Held{Held: &wirepb.Held{
			Attempt: wireAttempt(m.Attempt), Number: m.Number, Reason: uint32(m.Reason),
		}}
	case Move:
		move := &wirepb.Move{Attempt: wireAttempt(m.Attempt), Stop: m.Stop}
		w.Body = &wirepb.Wire_Move{Move: move}
	case Movable:
		w.Body = &wirepb.Wire_Movable{Movable: &wirepb.Movable{
			Attempt: wireAttempt(m.Attempt), Reason: uint32(m.Reason), Saves: m.Saves, Next: m.Next,
			Begun: m.Begun,
		}}
	default:
		return false
	}
	return true
}

// aboutSaved is the counterpart of setSaved.
func aboutSaved(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Checkpointed:
		return Checkpointed{
			Attempt:    attempt(b.Checkpointed.GetAttempt()),
			Checkpoint: checkpoint(b.Checkpointed.GetCheckpoint()),
		}
	case *wirepb.Wire_Held:
		return Held{
			Attempt: attempt(b.Held.GetAttempt()), Number: b.Held.GetNumber(),
			Reason: reason(b.Held.GetReason()),
		}
	case *wirepb.Wire_Move:
		return Move{Attempt: attempt(b.Move.GetAttempt()), Stop: b.Move.GetStop()}
	case *wirepb.Wire_Movable:
		return Movable{
			Attempt: attempt(b.Movable.GetAttempt()), Reason: reason(b.Movable.GetReason()),
			Saves: b.Movable.GetSaves(), Next: b.Movable.GetNext(), Begun: b.Movable.GetBegun(),
		}
	default:
		return nil
	}
}
