package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// disk holds all that a host keeps over its agent's death, and what is wrong with it.
type disk struct {
	facts       [2]*step.Facts
	border      *step.Facts // of a gateway's border
	held        map[grid.CID]int64
	pins        map[grid.CID]map[string]bool    // for whom data is kept; none: nobody in particular
	kept        map[string][]grid.CID           // the same the other way round
	past        map[grid.JobID]step.ArchivedJob // ended jobs that left their machine
	incarnation uint64                          // the number of the last start
	line        uint64                          // of the runs on one machine; 0: none yet
	restored    uint64                          // how often it was given an earlier state
	foreign     bool                            // a backup's or another machine's, until it starts
	full        bool                            // no data can be written; facts have their own room
	broken      bool                            // nothing can be written
	slow        time.Duration                   // to write facts
	loose       [2][]looseFact                  // written and perhaps not on the medium, oldest first
	looseData   []looseData                     // the same for data
	saved       *disk                           // a backup
	boots       uint64                          // how often the machine itself was started, from 1
}

type looseFact struct {
	at   time.Duration
	fact step.Fact
	old  []byte // what it replaced
}

type looseData struct {
	at  time.Duration
	cid grid.CID
}

func newDisk() disk {
	return disk{
		facts:  [2]*step.Facts{step.NewFacts(), step.NewFacts()},
		border: step.NewFacts(), held: make(map[grid.CID]int64),
		pins: make(map[grid.CID]map[string]bool), kept: make(map[string][]grid.CID),
		past:  make(map[grid.JobID]step.ArchivedJob),
		boots: 1,
	}
}

// unsynced is the time for which a system that nobody asks keeps what is written in memory.
const unsynced = 5 * time.Second

// FillDisk leaves a site no space for data: inputs and outputs cannot be stored. Facts have
// space of their own.
func (w *World) FillDisk(id grid.SiteID) { w.hosts[id].fill(true) }

// FreeDisk ends that.
func (w *World) FreeDisk(id grid.SiteID) { w.hosts[id].fill(false) }

// lookAtDisk is the pause between two looks of an agent at how much is free.
const lookAtDisk = time.Second

// fill lets the agent see at its next look that its disk is full, or is not.
func (h *host) fill(full bool) {
	h.disk.full = full
	h.after(lookAtDisk, h.tellSpace)
}

// tellSpace tells the machines whether the disk has space. A write that finds none does so
// before the next look.
func (h *host) tellSpace() {
	for _, r := range []role{roleSite, roleBroker} {
		if h.up && h.starved[r] != h.disk.full {
			h.starved[r] = h.disk.full
			h.step(r, step.SpaceChanged{Full: h.disk.full})
		}
	}
}

// BreakDisk lets a site's next write of a fact fail, which ends its agent: nothing that
// hangs on the fact is done. Until MendDisk the agent does not start.
func (w *World) BreakDisk(id grid.SiteID) { w.hosts[id].disk.broken = true }

// MendDisk ends that.
func (w *World) MendDisk(id grid.SiteID) { w.hosts[id].disk.broken = false }

// SlowDisk makes each write of facts take so long; 0 ends that. Meanwhile the machine
// stops, and what waits for it comes together afterwards.
func (w *World) SlowDisk(id grid.SiteID, each time.Duration) { w.hosts[id].disk.slow = each }

// LoseDisk takes all that a site's agent ever wrote, while it is down. It starts again as
// a new one with the same identity.
func (w *World) LoseDisk(id grid.SiteID) {
	h := w.hosts[id]
	if h.up {
		return
	}
	fresh := newDisk()
	fresh.restored, fresh.saved, fresh.boots = h.disk.restored+1, h.disk.saved, h.disk.boots
	h.disk = fresh
}

// Backup notes what is on a site's disk now.
func (w *World) Backup(id grid.SiteID) {
	h := w.hosts[id]
	saved := h.disk.copy()
	h.disk.saved = &saved
}

// RestoreBackup gives a site that is down the state of its last Backup, as a person does
// who restores one. Without a backup it changes nothing.
func (w *World) RestoreBackup(id grid.SiteID) {
	h := w.hosts[id]
	if h.up || h.disk.saved == nil {
		return
	}
	restored, boots := h.disk.restored+1, h.disk.boots
	saved := h.disk.saved
	h.disk = saved.copy()
	h.disk.restored, h.disk.boots, h.disk.saved, h.disk.foreign = restored, boots, saved, true
}

// Retune changes a site's configuration at its next start.
func (w *World) Retune(id grid.SiteID, tune func(*site.Config, *broker.Config)) {
	w.hosts[id].spec.Tune = tune
}

// copy is the state without its troubles.
func (d *disk) copy() disk {
	c := newDisk()
	for r, facts := range d.facts {
		for _, f := range facts.All() {
			c.facts[r].Apply(f)
		}
	}
	c.held, c.past = maps.Clone(d.held), maps.Clone(d.past)
	for _, cid := range slices.Sorted(maps.Keys(d.pins)) {
		for _, owner := range slices.Sorted(maps.Keys(d.pins[cid])) {
			c.pin(cid, owner)
		}
		if c.pins[cid] == nil {
			c.pins[cid] = make(map[string]bool) // all have let it go
		}
	}
	c.incarnation, c.restored, c.boots, c.line = d.incarnation, d.restored, d.boots, d.line
	return c
}

// write puts a fact on the disk. An agent that cannot do that ends.
func (h *host) write(r role, f step.Fact) {
	if h.disk.broken {
		h.crash(0)
		return
	}
	if h.world.cfg.NoSyncFacts {
		h.disk.loosen(h.world.elapsed, r, f)
	}
	h.disk.facts[r].Apply(f)
	h.unread[r] = true
}

// loosen notes a fact that is not on the medium yet.
func (d *disk) loosen(now time.Duration, r role, f step.Fact) {
	kept := d.loose[r][:0]
	for _, l := range d.loose[r] {
		if now-l.at < unsynced {
			kept = append(kept, l)
		}
	}
	old := step.Fact{}
	for _, o := range d.facts[r].All() {
		if o.Kind == f.Kind && o.Key == f.Key {
			old = o
		}
	}
	d.loose[r] = append(kept, looseFact{at: now, fact: f, old: old.Value})
}

// store puts data on the disk.
func (h *host) store(cid grid.CID, bytes int64) {
	h.disk.held[cid] = bytes
	if h.world.cfg.NoSyncData {
		h.disk.looseData = append(h.disk.looseData, looseData{h.world.elapsed, cid})
	}
}

// pin keeps data on the disk for somebody.
func (d *disk) pin(cid grid.CID, owner string) {
	if d.pins[cid] == nil {
		d.pins[cid] = make(map[string]bool)
	}
	if !d.pins[cid][owner] {
		d.pins[cid][owner] = true
		d.kept[owner] = append(d.kept[owner], cid)
	}
}

// letGo keeps one content no longer for somebody.
func (d *disk) letGo(cid grid.CID, owner string) {
	delete(d.pins[cid], owner)
	d.kept[owner] = slices.DeleteFunc(d.kept[owner], func(c grid.CID) bool { return c == cid })
	if len(d.kept[owner]) == 0 {
		delete(d.kept, owner)
	}
}

// unpin lets go all that was kept for somebody.
func (d *disk) unpin(owner string) {
	for _, cid := range d.kept[owner] {
		delete(d.pins[cid], owner)
	}
	delete(d.kept, owner)
}

// sweep lets go of what an earlier run kept for attempts and jobs that nobody knows any more, as
// an agent does when it starts: it may have died before it did that.
func (h *host) sweep() {
	if !h.up {
		return
	}
	known := make(map[string]bool)
	for _, a := range h.site.Status().Attempts {
		known[a.ID.String()] = true
	}
	for _, owner := range h.disk.owners() {
		if !known[owner] && owner != historyPin && !h.keeps(owner) {
			h.disk.unpin(owner)
		}
	}
}

// has is the size of data that is here, and not let go by all who kept it.
func (d *disk) has(cid grid.CID) (int64, bool) {
	bytes, here := d.held[cid]
	owners, pinned := d.pins[cid]
	return bytes, here && (!pinned || len(owners) > 0)
}

// forgetLoose takes back what was written a moment ago and not synced.
func (d *disk) forgetLoose(now time.Duration) {
	for r := range d.loose {
		for _, l := range slices.Backward(d.loose[r]) {
			if now-l.at < unsynced {
				d.facts[r].Apply(step.Fact{Kind: l.fact.Kind, Key: l.fact.Key, Value: l.old})
			}
		}
		d.loose[r] = nil
	}
	for _, l := range d.looseData {
		if now-l.at < unsynced {
			delete(d.held, l.cid)
		}
	}
	d.looseData = nil
}

// boot is the input that a machine begins with. An agent notices that its state came from
// elsewhere or from an earlier time: by the machine's name, or by its own journal.
func (h *host) boot() step.Boot {
	in := step.Boot{
		Incarnation: h.disk.incarnation, Clock: h.lasting(), Line: h.disk.line,
	}
	if h.disk.restored > 0 {
		in.Nonce, in.Restored = h.nonce(), h.disk.foreign
	}
	return in
}

// nonce sets a run apart from all others of its site.
func (h *host) nonce() uint64 {
	return h.disk.restored<<32 + uint64(h.machine)<<24 + uint64(h.life)
}
