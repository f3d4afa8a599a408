package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// holder is one site that is said to have the data. The fetcher's goroutine owns it.
type holder struct {
	site grid.SiteID
	id   peer.ID
	bad  bool  // not a peer at all, or this host itself
	up   bool  // reached in this round
	err  error // why it did not deliver
}

func newHolders(self peer.ID, sites []grid.SiteID) []*holder {
	var out []*holder
	seen := make(map[grid.SiteID]bool)
	for _, site := range sites {
		if seen[site] || len(out) == grid.MaxHolders {
			continue
		}
		seen[site] = true
		h := &holder{site: site}
		var err error
		if h.id, err = peer.Decode(string(site)); err != nil {
			h.bad, h.err = true, fmt.Errorf("not a peer id: %w", err)
		} else if h.id == self {
			h.bad, h.err = true, errors.New("it is this site, which does not hold all of it")
		}
		out = append(out, h)
	}
	return out
}

// holdersError says what was wrong with each holder.
func holdersError(holders []*holder) error {
	if len(holders) == 0 {
		return fmt.Errorf("%w: none was named", errNoHolder)
	}
	texts := make([]string, 0, len(holders))
	for _, h := range holders {
		text := "did not deliver"
		if h.err != nil {
			text = h.err.Error()
		}
		texts = append(texts, fmt.Sprintf("%s: %s", h.site, text))
	}
	return fmt.Errorf("%w: %s", errNoHolder, strings.Join(texts, "; "))
}

// reached is the end of an attempt to connect to a holder.
type reached struct {
	h   *holder
	err error
}

// lack is a peer's word that it does not hold blocks, or does not give them to us.
type lack struct {
	p    peer.ID
	cids []cid.Cid
}

// connect reaches the holders at the same time and returns when the first is
// there; false when none can be reached. The others go on until ctx ends and
// report over the channel.
func (f *fetcher) connect(ctx context.Context) (<-chan reached, bool) {
	results := make(chan reached, len(f.holders))
	waiting := 0
	for _, h := range f.holders {
		if h.up = false; h.bad {
			continue
		}
		h.err = nil
		waiting++
		id := h.id
		f.workers.Go(func() {
			limited, cancel := context.WithTimeout(ctx, f.s.cfg.ConnectTimeout)
			defer cancel()
			err := f.s.host.Connect(limited, peer.AddrInfo{ID: id})
			if err == nil {
				f.s.swap.meet(id)
			}
			results <- reached{h: h, err: err}
		})
	}
	for ; waiting > 0; waiting-- {
		r := <-results
		if f.onReached(r); r.h.up {
			return results, true
		}
	}
	return results, false
}

func (f *fetcher) onReached(r reached) {
	if r.h.up = r.err == nil; !r.h.up {
		r.h.err = fmt.Errorf("cannot be reached: %w", r.err)
	}
}

// peers are the holders that can be asked.
func (f *fetcher) peers() []peer.ID {
	ids := make([]peer.ID, 0, len(f.holders))
	for _, h := range f.holders {
		if !h.bad {
			ids = append(ids, h.id)
		}
	}
	return ids
}

func (f *fetcher) connected(h *holder) bool {
	return !h.bad && f.s.host.Network().Connectedness(h.id) == network.Connected
}

// worthAnother reports whether a holder may still deliver: one that was reached.
func (f *fetcher) worthAnother() bool {
	return slices.ContainsFunc(f.holders, func(h *holder) bool { return h.up })
}

// onLacks is called from bitswap's goroutines.
func (f *fetcher) onLacks(p peer.ID, cids []cid.Cid) {
	select {
	case f.lacks <- lack{p: p, cids: cids}:
	default:
	}
}

// noteLack notes who lacks what of the blocks that are asked for.
func (f *fetcher) noteLack(l lack) {
	for _, c := range l.cids {
		d, err := digestOf(c)
		if _, asked := f.pending[d]; err != nil || !asked {
			continue
		}
		if f.lacking[d] == nil {
			f.lacking[d] = make(map[peer.ID]bool)
		}
		f.lacking[d][l.p] = true
	}
}

// hopeless is errLack if a block that is asked for is lacked by every holder that
// is connected, while none is still on the way.
func (f *fetcher) hopeless() error {
	for d, lacks := range f.lacking {
		if slices.ContainsFunc(f.holders, func(h *holder) bool { return f.mayHave(h, lacks) }) {
			continue
		}
		for _, h := range f.holders {
			if lacks[h.id] {
				h.err = fmt.Errorf("does not hold block %s, or does not serve this site", f.pending[d].c)
			}
		}
		return errLack
	}
	return nil
}

// mayHave reports whether a holder may still deliver what others lack.
func (f *fetcher) mayHave(h *holder, lacks map[peer.ID]bool) bool {
	gone := h.bad || (!f.connected(h) && (h.up || h.err != nil))
	return !gone && !lacks[h.id]
}

// lost is errRound if no holder is connected any more.
func (f *fetcher) lost() error {
	if slices.ContainsFunc(f.holders, f.connected) {
		return nil
	}
	f.blame(errors.New("the connection was lost"))
	return errRound
}

// blame notes why the holders that had been reached do not deliver.
func (f *fetcher) blame(err error) {
	for _, h := range f.holders {
		if h.up {
			h.err = err
		}
	}
}
