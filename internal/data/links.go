package data

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What is remembered of links.
const (
	linkKept     = 24 * time.Hour // a measurement older than this is forgotten
	linkFresh    = time.Hour      // an older one is replaced by the next, a younger one mixed with it
	linkPeers    = 1024           // peers of which rates are remembered
	linkFile     = "links.json"
	linkMaxFile  = 1 << 20
	linkMaxBps   = 1e12 // nobody has more; a claim beyond is nonsense
	linkMinBps   = 1
	linkNewsPart = 0.05 // a change by less is not told
)

// Link holds the rates measured between this site and a peer.
type Link struct {
	DownBps int64 // towards this site, bit/s; 0 = not measured
	UpBps   int64 // away from this site, as the peer measured it, bit/s; 0 = not measured
}

// measurement is one direction of a link.
type measurement struct {
	Bps float64   `json:"bps"`
	At  time.Time `json:"at"`
}

// current reports whether the measurement counts at a time. One from the future
// comes from a clock that was wrong.
func (m measurement) current(now time.Time) bool {
	return m.Bps > 0 && now.Sub(m.At) < linkKept && now.Sub(m.At) > -time.Hour
}

// mixed is the estimate after one more measurement.
func (m measurement) mixed(bps float64, now time.Time) measurement {
	if m.current(now) && now.Sub(m.At).Abs() < linkFresh {
		bps = math.Sqrt(m.Bps * bps) // rates differ by factors
	}
	return measurement{Bps: bps, At: now}
}

// link is both directions, and what was told of them.
type link struct {
	Down measurement `json:"down,omitzero"`
	Up   measurement `json:"up,omitzero"`
	told Link
}

// links remembers the rates to and from peers, over restarts.
type links struct {
	path   string
	now    func() time.Time
	onLink func(grid.SiteID, Link) // nil = nobody listens; called without the lock

	mu    sync.Mutex
	known map[peer.ID]*link
	dirty bool
}

// openLinks reads what an earlier run measured. A file that makes no sense is
// reported and replaced: it is only a memory of measurements.
func openLinks(dir string, now func() time.Time, onLink func(grid.SiteID, Link)) (*links, error) {
	l := &links{
		path: filepath.Join(dir, linkFile), now: now, onLink: onLink, known: make(map[peer.ID]*link),
	}
	text, err := readSmall(l.path, linkMaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l.known)
	}
	if err != nil {
		l.known = make(map[peer.ID]*link)
		return l, fmt.Errorf("read %s: %w", linkFile, err)
	}
	maps.DeleteFunc(l.known, func(p peer.ID, k *link) bool {
		return p.Validate() != nil || k == nil || !sane(k.Down.Bps) || !sane(k.Up.Bps)
	})
	return l, nil
}

func sane(bps float64) bool { return bps == 0 || bps >= linkMinBps && bps <= linkMaxBps }

func readSmall(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%d bytes, more than %d", info.Size(), limit)
	}
	return os.ReadFile(path)
}

// measured enters a measurement of ours.
func (l *links) measured(p peer.ID, bps float64) {
	l.change(p, bps, func(k *link) *measurement { return &k.Down })
}

// reported enters what the peer measured of what we sent.
func (l *links) reported(p peer.ID, bps float64) {
	l.change(p, bps, func(k *link) *measurement { return &k.Up })
}

func (l *links) change(p peer.ID, bps float64, at func(*link) *measurement) {
	if bps == 0 || !sane(bps) {
		return
	}
	now := l.now()
	l.mu.Lock()
	k := l.known[p]
	if k == nil {
		l.makeRoom()
		k = &link{}
		l.known[p] = k
	}
	*at(k) = at(k).mixed(bps, now)
	l.dirty = true
	news := k.state(now)
	tell := differ(news.DownBps, k.told.DownBps) || differ(news.UpBps, k.told.UpBps)
	if tell {
		k.told = news
	}
	l.mu.Unlock()
	if tell && l.onLink != nil {
		l.onLink(grid.SiteID(p.String()), news)
	}
}

func (k *link) state(now time.Time) Link {
	var s Link
	if k.Down.current(now) {
		s.DownBps = int64(k.Down.Bps)
	}
	if k.Up.current(now) {
		s.UpBps = int64(k.Up.Bps)
	}
	return s
}

func differ(a, b int64) bool {
	return math.Abs(float64(a-b)) > linkNewsPart*float64(max(a, b))
}

// makeRoom forgets the peer measured longest ago when there are too many.
func (l *links) makeRoom() {
	if len(l.known) < linkPeers {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(l.known)), func(a, b peer.ID) int {
		return cmp.Or(l.known[a].age().Compare(l.known[b].age()), cmp.Compare(a, b))
	})
	delete(l.known, oldest)
}

func (k *link) age() time.Time {
	if k.Up.At.After(k.Down.At) {
		return k.Up.At
	}
	return k.Down.At
}

// get returns what is known of the link to a peer.
func (l *links) get(p peer.ID) Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[p]
	if k == nil {
		return Link{}
	}
	return k.state(l.now())
}

// expire tells which measurements have become too old.
func (l *links) expire() {
	now := l.now()
	changed := make(map[peer.ID]Link)
	l.mu.Lock()
	for p, k := range l.known {
		if news := k.state(now); news != k.told {
			k.told, changed[p] = news, news
		}
		if !k.Down.current(now) && !k.Up.current(now) {
			delete(l.known, p)
			l.dirty = true
		}
	}
	l.mu.Unlock()
	for p, news := range changed {
		if l.onLink != nil {
			l.onLink(grid.SiteID(p.String()), news)
		}
	}
}

// save writes what changed.
func (l *links) save() error {
	l.mu.Lock()
	if !l.dirty {
		l.mu.Unlock()
		return nil
	}
	l.dirty = false
	byName := make(map[string]*link, len(l.known)) // JSON takes an ID's bytes for its name
	for p, k := range l.known {
		byName[p.String()] = k
	}
	text, err := json.Marshal(byName)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return durable.Replace(l.path, text)
}
