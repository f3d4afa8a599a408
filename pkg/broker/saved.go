package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// savings are the checkpoints of a task.
type savings struct {
	// counted are those that another site may go on from, the latest first: this site holds them,
	// besides the one that has taken them. A task never goes back behind the first of them while
	// it can be read.
	counted []counted
	// pulling is on its way here; its number is 0 if none is.
	pulling grid.Checkpoint
}

// counted is a checkpoint that counts.
type counted struct {
	grid.Checkpoint
	site grid.SiteID // that has taken it
	at   time.Time   // since when it counts
}

// latest is the number of the last checkpoint that counts, 0 if none does.
func (s *savings) latest() uint64 {
	if len(s.counted) == 0 {
		return 0
	}
	return s.counted[0].Number
}

// offered are the checkpoints that an award carries.
func (s *savings) offered() []grid.Checkpoint {
	var list []grid.Checkpoint
	for _, c := range s.counted {
		list = append(list, c.Checkpoint)
	}
	return list
}

// counts reports whether a content is one of those that count.
func (s *savings) counts(cid grid.CID) bool {
	return slices.ContainsFunc(s.counted, func(c counted) bool { return c.CID == cid })
}

// enter takes a checkpoint that is here, and names the contents that are not needed any more.
func (s *savings) enter(c counted) (old []grid.CID) {
	s.counted = slices.Insert(slices.Clone(s.counted), 0, c)
	for len(s.counted) > grid.MaxSaved {
		last := len(s.counted) - 1
		old = append(old, s.counted[last].CID)
		s.counted = s.counted[:last]
	}
	return old
}

// contents lists what is held.
func (s *savings) contents() []grid.CID {
	var cids []grid.CID
	for _, c := range s.counted {
		cids = append(cids, c.CID)
	}
	return cids
}

// savedBytes is an upper bound of what the checkpoints add to an award.
func (s *savings) savedBytes() int {
	size := 0
	for _, c := range s.counted {
		size += savedNumbers + len(c.CID)
	}
	return size
}

const savedNumbers = 48 // bytes of a checkpoint's numbers in an award, at most

// letGo keeps contents of a task's checkpoints no longer.
func (r *run) letGo(task grid.TaskID, cids []grid.CID) {
	if len(cids) > 0 {
		r.out.Emit(step.LetGo{Attempt: grid.AttemptID{Task: task}, CIDs: cids})
	}
}

// savedFact is a checkpoint that counts, as a part of taskFact.
type savedFact struct {
	Number   uint64      `json:"number"`
	CID      grid.CID    `json:"cid"`
	Bytes    int64       `json:"bytes"`
	WorkedMS int64       `json:"worked_ms,omitempty"`
	Percent  uint8       `json:"percent,omitempty"`
	Site     grid.SiteID `json:"site,omitempty"`
	AtMS     int64       `json:"at_ms,omitempty"`
}

func (r *run) savedFacts(s *savings) []savedFact {
	var list []savedFact
	for _, c := range s.counted {
		list = append(list, savedFact{
			Number: c.Number, CID: c.CID, Bytes: c.Bytes, WorkedMS: c.Worked.Milliseconds(),
			Percent: c.Percent, Site: c.site, AtMS: r.wallMS(c.at),
		})
	}
	return list
}

// restoreSaved reads what savedFacts wrote. What cannot be is left out: the task begins anew, or at
// the one before.
func restoreSaved(facts []savedFact) (s savings) {
	for _, f := range facts {
		c := counted{
			Checkpoint: grid.Checkpoint{
				Number: f.Number, CID: f.CID, Bytes: f.Bytes, Percent: f.Percent,
				Worked: time.Duration(f.WorkedMS) * time.Millisecond,
			},
			site: f.Site, at: step.FromMS(f.AtMS),
		}
		if grid.ValidateSaved(append(s.offered(), c.Checkpoint)) == nil {
			s.counted = append(s.counted, c)
		}
	}
	return s
}
