package data

import (
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// keep is the store's own goroutine, until Close.
func (s *Store) keep() {
	links := time.NewTicker(linksEvery)
	defer links.Stop()
	for {
		select {
		case <-s.stop:
			s.saveLinks()
			return
		case <-links.C:
			s.links.expire()
			s.saveLinks()
		case <-s.wake:
		}
		if s.damage.Swap(false) {
			s.checkRoots()
		}
		if s.compact.Swap(false) {
			if err := s.compactLog(); err != nil {
				s.cfg.Log.Warn("root index not rewritten", "error", err)
			}
		}
		s.tell()
	}
}

// linksEvery is the interval at which old measurements of links are dropped and new
// ones are saved.
const linksEvery = 5 * time.Minute

func (s *Store) saveLinks() {
	if err := s.links.save(); err != nil {
		s.cfg.Log.Warn("measurements of links are not saved", "error", err)
	}
}

// wakeKeeper never blocks: one wake-up does everything there is to do.
func (s *Store) wakeKeeper() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// onDamage is told of a block that turned out bad.
func (s *Store) onDamage(d digest) {
	s.cfg.Log.Warn("damaged block removed", "digest", hex.EncodeToString(d[:]))
	s.metrics.damaged.Inc()
	s.damage.Store(true)
	s.wakeKeeper()
}

// checkRoots makes every held root partial of which a block is missing.
func (s *Store) checkRoots() {
	s.mu.Lock()
	held := make([]grid.CID, 0, len(s.roots))
	for id, r := range s.roots {
		if !r.Partial {
			held = append(held, id)
		}
	}
	s.mu.Unlock()
	for _, id := range held {
		s.checkRoot(id)
	}
}

// checkRoot makes a held root partial when a block of it is missing.
func (s *Store) checkRoot(id grid.CID) {
	c, err := parseCID(id)
	if err != nil {
		return
	}
	s.gcMu.RLock()
	defer s.gcMu.RUnlock()
	blocks, stored, missing, err := s.walkLocal(c)
	short := stored != s.storedBytes(id) // a block was cut short
	for d := range blocks {
		if err == nil && !missing && (short || s.blocks.doubtful(d)) {
			_, damaged := s.blocks.get(d) // removes it then
			missing = damaged != nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roots[id]
	if !ok || r.Partial {
		return
	}
	if err == nil && !missing {
		return
	}
	s.cfg.Log.Warn("data is no longer whole", "cid", string(id))
	if err := s.setPartialLocked(id); err != nil {
		s.cfg.Log.Error("root index not written", "error", err)
	}
}

// storedBytes returns the size of the root's blocks when it became held.
func (s *Store) storedBytes(id grid.CID) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.roots[id]; ok {
		return r.Stored
	}
	return 0
}

// changeLocked notes that a root became held or is no longer; mu is held.
func (s *Store) changeLocked(c grid.CID, held bool) {
	if before, untold := s.changes[c]; untold && before != held {
		delete(s.changes, c) // there and back: nothing to tell
	} else {
		s.changes[c] = held
	}
	s.wakeKeeper()
}

// tell tells the listener what changed since the last time.
func (s *Store) tell() {
	s.mu.Lock()
	var added, removed []grid.CID
	for _, c := range slices.Sorted(maps.Keys(s.changes)) {
		if s.changes[c] {
			added = append(added, c)
		} else {
			removed = append(removed, c)
		}
	}
	clear(s.changes)
	s.mu.Unlock()
	if s.cfg.OnChange != nil && len(added)+len(removed) > 0 {
		s.cfg.OnChange(added, removed)
	}
}

// storeMetrics holds the store's counters.
type storeMetrics struct {
	sentBytes, receivedBytes       obs.Counter
	collectedBytes, collectedRoots obs.Counter
	damaged                        obs.Counter
	fetches                        obs.CounterVec
	denied, refused                obs.Counter
	probes                         obs.CounterVec
}

func newStoreMetrics(r *obs.Registry, s *Store) storeMetrics {
	r.GaugeFunc("data_used_bytes", "Bytes of blocks on disk.", func() float64 {
		return float64(s.UsedBytes())
	})
	return storeMetrics{
		sentBytes:      r.Counter("data_sent_bytes_total", "Bytes of data messages sent to members."),
		receivedBytes:  r.Counter("data_received_bytes_total", "Bytes of blocks fetched from members."),
		collectedBytes: r.Counter("data_collected_bytes_total", "Bytes of blocks removed to make room."),
		collectedRoots: r.Counter("data_collected_roots_total",
			"Files and directories removed to make room."),
		damaged: r.Counter("data_damaged_blocks_total", "Blocks whose content did not match their name."),
		fetches: r.CounterVec("data_fetches_total", "Fetches by their end.", "result"),
		probes:  r.CounterVec("data_probes_total", "Measurements of links by their end.", "result"),
		denied: r.Counter("data_denied_requests_total",
			"Requests for blocks by peers that are no members."),
		refused: r.Counter("data_refused_shares_total",
			"Data not kept because its submitter has its share."),
	}
}
