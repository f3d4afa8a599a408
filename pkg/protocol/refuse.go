package protocol

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Refuse says why a site makes no offer; only sent when the announcement asks
// for explanations.
type Refuse struct {
	Job     grid.JobID
	Seq     uint32
	Refusal grid.Refusal
	// Free tells, in answers to probes, what the site has free now: what needs more of it gets no
	// place there, however short it is. Once more is free within FreeHolds, the site names the probe
	// in a Vacancy. Nil: not told, as by older agents.
	Free *grid.Resources `json:",omitempty"`
}

// FreeHolds is for how long what Refuse says is free counts, unless a Vacancy comes.
const FreeHolds = 20 * time.Second

// Validate reports the first field that is out of its range.
func (m Refuse) Validate() error {
	if err := firstError(checkAnswer(m.Job, m.Seq), m.Refusal.Validate()); err != nil {
		return err
	}
	if m.Free != nil {
		return m.Free.Validate()
	}
	return nil
}

func wireRefuse(m Refuse) *wirepb.Refuse {
	w := &wirepb.Refuse{Job: string(m.Job), Seq: m.Seq, Refusal: wireRefusal(m.Refusal)}
	if m.Free != nil {
		w.Free = wireResources(*m.Free)
	}
	return w
}

func refuse(w *wirepb.Refuse) Refuse {
	m := Refuse{
		Job: grid.JobID(w.GetJob()), Seq: w.GetSeq(), Refusal: refusal(w.GetRefusal()),
	}
	if w.GetFree() != nil {
		free := resources(w.GetFree())
		m.Free = &free
	}
	return m
}
