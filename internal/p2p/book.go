package p2p

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

// Limits on what is remembered.
const (
	maxRemembered     = 1_024 // peers; those not seen for longest go first
	maxRememberedAddr = 8     // addresses of one peer
)

// book remembers where members were, across restarts. It is safe for concurrent
// use.
type book struct {
	file string // empty: only in memory

	mu      sync.Mutex
	entries map[peer.ID]bookEntry
	changed bool
}

type bookEntry struct {
	addrs []ma.Multiaddr
	seen  time.Time
}

// bookFile is the form on disk.
type bookFile struct {
	Version int        `json:"version"`
	Peers   []bookPeer `json:"peers"`
}

type bookPeer struct {
	ID     string   `json:"id"`
	Addrs  []string `json:"addrs"`
	SeenMS int64    `json:"seen_ms"`
}

// openBook reads the file. The book is usable even when there is an error: it
// is a help, not a promise.
func openBook(file string) (*book, error) {
	b := &book{file: file, entries: make(map[peer.ID]bookEntry)}
	if file == "" {
		return b, nil
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	var stored bookFile
	if err == nil {
		err = json.Unmarshal(raw, &stored)
	}
	if err != nil {
		return b, fmt.Errorf("read addresses of members: %w", err)
	}
	for _, p := range stored.Peers {
		id, err := peer.Decode(p.ID)
		if err != nil {
			continue
		}
		b.put(id, parseAddrs(p.Addrs), time.UnixMilli(p.SeenMS))
	}
	b.changed = false
	return b, nil
}

func parseAddrs(texts []string) []ma.Multiaddr {
	var addrs []ma.Multiaddr
	for _, text := range texts {
		if a, err := ma.NewMultiaddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// put remembers where a member is. Without an address it does nothing.
func (b *book) put(id peer.ID, addrs []ma.Multiaddr, seen time.Time) {
	if len(addrs) == 0 {
		return
	}
	addrs = slices.Clone(addrs[:min(len(addrs), maxRememberedAddr)])
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries[id] = bookEntry{addrs: addrs, seen: seen}
	b.changed = true
	if len(b.entries) <= maxRemembered {
		return
	}
	oldest, when := id, seen
	for other, e := range b.entries {
		if e.seen.Before(when) || e.seen.Equal(when) && other < oldest {
			oldest, when = other, e.seen
		}
	}
	delete(b.entries, oldest)
}

// has reports whether the peer was a member once.
func (b *book) has(id peer.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.entries[id]
	return ok
}

// remove forgets the peer.
func (b *book) remove(id peer.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.entries[id]; known {
		delete(b.entries, id)
		b.changed = true
	}
}

// addrs returns the addresses that the peer had last.
func (b *book) addrs(id peer.ID) []ma.Multiaddr {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[id].addrs
}

// ids lists the peers, the last seen first.
func (b *book) ids() []peer.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]peer.ID, 0, len(b.entries))
	for id := range b.entries {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y peer.ID) int {
		return cmp.Or(b.entries[y].seen.Compare(b.entries[x].seen), cmp.Compare(x, y))
	})
	return ids
}

// save writes the file if anything changed since the last time.
func (b *book) save() error {
	b.mu.Lock()
	if b.file == "" || !b.changed {
		b.mu.Unlock()
		return nil
	}
	b.changed = false
	stored := bookFile{Version: 1}
	for id, e := range b.entries {
		p := bookPeer{ID: id.String(), SeenMS: e.seen.UnixMilli()}
		for _, a := range e.addrs {
			p.Addrs = append(p.Addrs, a.String())
		}
		stored.Peers = append(stored.Peers, p)
	}
	b.mu.Unlock()
	slices.SortFunc(stored.Peers, func(x, y bookPeer) int { return cmp.Compare(x.ID, y.ID) })
	raw, err := json.MarshalIndent(stored, "", "  ")
	if err == nil {
		err = durable.Replace(b.file, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write addresses of members: %w", err)
	}
	return nil
}
