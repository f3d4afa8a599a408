package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// rolls holds for each site the attempts that it has named in a request. What it named once
// and leaves out of a later full list it has no more.
type rolls map[grid.SiteID]*roll

// roll is one site's: ascending, without repetition.
type roll struct {
	ids   []grid.AttemptID
	bound int // when it is longer, those that have ended are looked for
}

const rollSlack = 64 // entries that may have ended before they are looked for

// enter adds attempts that the site has named, ascending. What keeps no more, by still, is
// dropped now and then, so that a roll is as long as what is under way at the site.
func (r rolls) enter(site grid.SiteID, ids []grid.AttemptID, still func(grid.AttemptID) bool) {
	if len(ids) == 0 {
		return
	}
	list := r[site]
	if list == nil {
		list = &roll{bound: rollSlack}
		r[site] = list
	}
	list.ids = merged(list.ids, ids)
	if len(list.ids) > list.bound {
		list.ids = slices.DeleteFunc(list.ids, func(id grid.AttemptID) bool { return !still(id) })
		list.bound = 2*len(list.ids) + rollSlack
	}
}

// strike takes those from the roll that are in the range of a list and not among those that
// it names, ascending, and returns them in order.
func (r rolls) strike(
	site grid.SiteID, list *protocol.Listing, named []grid.AttemptID,
) (missing []grid.AttemptID) {
	of := r[site]
	if of == nil {
		return nil
	}
	from, found := slices.BinarySearchFunc(of.ids, list.After, grid.AttemptID.Compare)
	if found {
		from++
	}
	kept := of.ids[:from]
	for _, id := range of.ids[from:] {
		for len(named) > 0 && named[0].Compare(id) < 0 {
			named = named[1:]
		}
		if list.Holds(id) && (len(named) == 0 || named[0] != id) {
			missing = append(missing, id)
			continue
		}
		kept = append(kept, id)
	}
	if of.ids = kept; len(kept) == 0 {
		delete(r, site)
	}
	return missing
}

// few are put into a roll one by one.
const few = 8

// merged joins two ascending lists. The first may be changed by that.
func merged(a, b []grid.AttemptID) []grid.AttemptID {
	if len(a) == 0 || a[len(a)-1].Compare(b[0]) < 0 {
		return append(a, b...)
	}
	if len(b) <= few {
		for _, id := range b {
			if at, found := slices.BinarySearchFunc(a, id, grid.AttemptID.Compare); !found {
				a = slices.Insert(a, at, id)
			}
		}
		return a
	}
	all := make([]grid.AttemptID, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		c := a[0].Compare(b[0])
		if c <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all = append(all, b[0])
		}
		if c >= 0 {
			b = b[1:]
		}
	}
	return append(append(all, a...), b...)
}
