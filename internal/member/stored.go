package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// The files of the roster and of the owner's own decisions.
const (
	rosterFile = "roster.json"
	localFile  = "local.json"
)

// rosterText is the roster on disk.
type rosterText struct {
	Version int          `json:"version"`
	Records []recordText `json:"records"`
}

type recordText struct {
	Domain    grid.DomainID `json:"domain"`
	Site      grid.SiteID   `json:"site"`
	Kind      string        `json:"kind"`
	Name      string        `json:"name,omitempty"`
	SerialMS  int64         `json:"serial_ms"`
	Note      string        `json:"note,omitempty"`
	Signature []byte        `json:"signature"`
	// Successions is the same of protocol.MemberRecord.
	Successions uint32 `json:"successions,omitempty"`
}

func rosterTextOf(r Roster) rosterText {
	text := rosterText{Version: fileVersion, Records: []recordText{}}
	for _, record := range r.all() {
		text.Records = append(text.Records, recordText{
			Domain: record.Domain, Site: record.Site, Kind: record.Kind.String(), Name: record.Name,
			SerialMS: record.SerialMS, Note: record.Note, Signature: record.Signature,
			Successions: record.Successions,
		})
	}
	return text
}

// decodeRoster reads the records of a roster's file, without verifying them.
func decodeRoster(text []byte) ([]protocol.MemberRecord, error) {
	var stored rosterText
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	if stored.Version != fileVersion || len(stored.Records) > maxRecords {
		return nil, fmt.Errorf(
			"version %d with %d records, want version %d and at most %d",
			stored.Version, len(stored.Records), fileVersion, maxRecords,
		)
	}
	var records []protocol.MemberRecord
	for _, r := range stored.Records {
		record := protocol.MemberRecord{
			Domain: r.Domain, Site: r.Site, Name: r.Name, SerialMS: r.SerialMS, Note: r.Note,
			Signature: r.Signature, Successions: r.Successions,
		}
		switch r.Kind {
		case protocol.MemberAdmit.String():
			record.Kind = protocol.MemberAdmit
		case protocol.MemberBan.String():
			record.Kind = protocol.MemberBan
		}
		if err := record.Validate(); err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// readRoster takes over the roster's file. A site that trusts no key keeps the
// file and ignores it; records of another key make the file unusable.
func (r *Registry) readRoster(text []byte) error {
	records, err := decodeRoster(text)
	if err != nil {
		return err
	}
	if !r.roster.trusts() {
		return nil
	}
	r.roster, err = r.roster.restore(records)
	return err
}

// decision records what the owner of this site decided about another one.
type decision struct {
	Site    grid.SiteID `json:"site"`
	Banned  bool        `json:"banned"` // else admitted
	Name    string      `json:"name,omitempty"`
	Note    string      `json:"note,omitempty"`
	SinceMS int64       `json:"since_ms"`
}

type localText struct {
	Version int        `json:"version"`
	Sites   []decision `json:"sites"`
}

func localTextOf(local map[grid.SiteID]decision) localText {
	text := localText{Version: fileVersion, Sites: []decision{}}
	for _, site := range slices.Sorted(maps.Keys(local)) {
		text.Sites = append(text.Sites, local[site])
	}
	return text
}

func decodeLocal(text []byte) (map[grid.SiteID]decision, error) {
	var stored localText
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	if stored.Version != fileVersion || len(stored.Sites) > maxRecords {
		return nil, fmt.Errorf(
			"version %d with %d sites, want version %d and at most %d",
			stored.Version, len(stored.Sites), fileVersion, maxRecords,
		)
	}
	local := make(map[grid.SiteID]decision)
	for _, d := range stored.Sites {
		if err := d.Site.Validate(); err != nil {
			return nil, err
		}
		local[d.Site] = d
	}
	return local, nil
}

// Entry tells people what is known of one site.
type Entry struct {
	Site     grid.SiteID
	Standing Standing
	Name     string
	Note     string
	Since    time.Time
}

// Entries lists the sites that the roster or the owner speaks of, ascending by
// site; what the owner said comes before what the roster says.
func (r *Registry) Entries() []Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	sites := make(map[grid.SiteID]Entry)
	for _, record := range r.roster.all() {
		sites[record.Site] = Entry{
			Site: record.Site, Standing: r.standing(record.Site), Name: grid.Plain(record.Name),
			Note: grid.Plain(record.Note), Since: time.UnixMilli(record.SerialMS),
		}
	}
	for site, d := range r.local {
		e := Entry{
			Site: site, Standing: r.standing(site), Name: grid.Plain(d.Name),
			Note: grid.Plain(d.Note), Since: time.UnixMilli(d.SinceMS),
		}
		if e.Name == "" {
			e.Name = sites[site].Name
		}
		sites[site] = e
	}
	list := make([]Entry, 0, len(sites))
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		list = append(list, sites[site])
	}
	return list
}

// cut shortens a text for people to so many bytes of valid UTF-8.
func cut(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

// Forget removes the roster of a domain that the site has left. What its owner decided about other
// sites stays.
func Forget(dir string) error {
	for _, name := range []string{rosterFile, chainFile} {
		err := os.Remove(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget the roster: %w", err)
		}
	}
	return nil
}
