package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// linksText is the form on disk.
type linksText struct {
	Version int          `json:"version"`
	Links   []linkRow    `json:"links"`
	Invites []linkInvite `json:"invites"`
	Ended   []endedRow   `json:"ended"`

	AwaitsMS int64 `json:"awaits_ms,omitempty"` // told to deputies, see linksState
}

type linkRow struct {
	Name     grid.DomainID `json:"name"`
	Record   LinkRecord    `json:"record"`
	Invited  bool          `json:"invited"`  // by this domain
	Gateways []Gateway     `json:"gateways"` // as the other domain named them last
	Policy   LinkPolicy    `json:"policy"`
	LastMS   int64         `json:"last_ms,omitempty"`
}

type endedRow struct {
	Name   grid.DomainID  `json:"name"`
	Key    grid.DomainKey `json:"key"`
	Sites  []grid.SiteID  `json:"sites"`
	AtMS   int64          `json:"at_ms"`
	ByThem bool           `json:"by_them"`
}

func linksTextOf(s linksState) linksText {
	text := linksText{
		Version: fileVersion, Links: []linkRow{}, Invites: append([]linkInvite{}, s.invites...),
		Ended: []endedRow{}, AwaitsMS: s.awaitsMS,
	}
	for _, l := range s.links {
		row := linkRow{
			Name: l.Name, Record: l.Record, Gateways: l.Side.Gateways, Policy: l.Policy,
		}
		if !l.Last.IsZero() {
			row.LastMS = l.Last.UnixMilli()
		}
		if t, err := l.Record.read(); err == nil {
			row.Invited = t.Joiner.Key == l.Side.Key
		}
		text.Links = append(text.Links, row)
	}
	for _, e := range s.ended {
		text.Ended = append(text.Ended, endedRow{
			Name: e.Name, Key: e.Key, Sites: e.Sites, AtMS: e.At.UnixMilli(), ByThem: e.ByThem,
		})
	}
	return text
}

// decodeLinks reads the file's text and verifies the records in it.
func decodeLinks(text []byte) (linksState, error) {
	var stored linksText
	if err := json.Unmarshal(text, &stored); err != nil {
		return linksState{}, err
	}
	if stored.Version != fileVersion || len(stored.Links) > maxLinks ||
		len(stored.Invites) > maxInvitKept || len(stored.Ended) > maxEnded {
		return linksState{}, fmt.Errorf("version %d with %d links, %d invitations and %d ended, "+
			"want version %d and at most %d, %d and %d", stored.Version, len(stored.Links),
			len(stored.Invites), len(stored.Ended), fileVersion, maxLinks, maxInvitKept, maxEnded)
	}
	s := linksState{invites: stored.Invites, awaitsMS: stored.AwaitsMS}
	for _, row := range stored.Links {
		link, err := row.link()
		if err != nil {
			return linksState{}, fmt.Errorf("link with %q: %w", string(row.Name), err)
		}
		if s.find(link.Side.Key) >= 0 {
			return linksState{}, fmt.Errorf("two links with %s", link.Name)
		}
		s.links = append(s.links, link)
	}
	for _, i := range stored.Invites {
		if err := i.validate(); err != nil {
			return linksState{}, err
		}
	}
	for _, e := range stored.Ended {
		if err := errors.Join(e.Name.Validate(), e.Key.Validate()); err != nil {
			return linksState{}, err
		}
		s.ended = append(s.ended, EndedLink{
			Name: e.Name, Key: e.Key, Sites: e.Sites, At: time.UnixMilli(e.AtMS), ByThem: e.ByThem,
		})
	}
	return s, nil
}

func (row linkRow) link() (Link, error) {
	t, err := row.Record.read()
	if err == nil && row.Record.Joiner == nil {
		err = errStatement
	}
	if err == nil {
		err = errors.Join(row.Name.Validate(), row.Policy.Validate(), ValidGateways(row.Gateways))
	}
	if err != nil {
		return Link{}, err
	}
	link := Link{
		Name: row.Name, Side: t.Inviter, Since: time.UnixMilli(t.SinceMS), Policy: row.Policy,
		Record: row.Record,
	}
	if row.Invited {
		link.Side = t.Joiner
	}
	link.Side.Gateways = row.Gateways
	if row.LastMS != 0 {
		link.Last = time.UnixMilli(row.LastMS)
	}
	return link, nil
}
