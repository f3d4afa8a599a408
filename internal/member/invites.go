package member

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Limits on invitations.
const (
	maxInvites    = 64                  // open at a time
	MaxUses       = 1_024               // of one invitation
	MaxInvite     = 90 * 24 * time.Hour // longest validity of one
	invitesFile   = "invites.json"
	closedKept    = 7 * 24 * time.Hour // so long a closed one is told from an unknown one
	maxInvitKept  = 512                // closed ones included
	maxInviteName = 64                 // bytes
)

// Invite is an invitation as its issuer knows it: never with its secret.
type Invite struct {
	ID      string // first characters of the secret's hash, for people
	Name    string // what it is for, for people; may be empty
	Created time.Time
	Expires time.Time
	Left    int           // uses; 0 when it was revoked
	Uses    int           // that it had when it was made
	By      []grid.SiteID // who redeemed it, the first one first
	Ask     bool          // each site that comes with it waits until it is admitted by hand

	// Refusal is why it is of no use; protocol.JoinAdmitted: it is open.
	Refusal protocol.JoinRefusal
}

// invite is an invitation on disk.
type invite struct {
	Hash      string        `json:"hash"` // SHA-256 of the secret, hexadecimal
	Name      string        `json:"name,omitempty"`
	CreatedMS int64         `json:"created_ms"`
	ExpiresMS int64         `json:"expires_ms"`
	Left      int           `json:"left"`
	UsedMS    int64         `json:"used_ms,omitempty"` // when the last use was taken
	By        []grid.SiteID `json:"by,omitempty"`      // who redeemed it
	Ask       bool          `json:"ask,omitempty"`
	Asked     []asked       `json:"asked,omitempty"` // who waits, the first one first
	// Revoked is the number of uses that were left when it was revoked; 0: it was not. Builds
	// that do not know of it find no use left, so that it stays closed for them, too.
	Revoked int `json:"revoked,omitempty"`
}

type invitesText struct {
	Version int      `json:"version"`
	Invites []invite `json:"invites"`
}

func hashOf(secret []byte) string {
	sum := sha256.Sum256(append([]byte("mrs/1/invite"), secret...))
	return hex.EncodeToString(sum[:])
}

func (i invite) open(now time.Time) bool { return i.Left > 0 && now.UnixMilli() < i.ExpiresMS }

// closedTold is the time after an invitation closed in which strangers are still let
// in to hear that it is used up or has expired.
const closedTold = time.Hour

// told reports whether it closed so recently that its holder should hear why it is
// of no use.
func (i invite) told(now time.Time) bool {
	closed := i.ExpiresMS
	if i.Left <= 0 {
		closed = min(closed, i.UsedMS)
	}
	return now.Sub(time.UnixMilli(closed)) < closedTold
}

// refusal says why an invitation cannot be redeemed at that time.
func (i invite) refusal(now time.Time) protocol.JoinRefusal {
	switch {
	case i.Revoked > 0:
		return protocol.JoinRevoked
	case i.Left <= 0:
		return protocol.JoinUsed
	case now.UnixMilli() >= i.ExpiresMS:
		return protocol.JoinExpired
	default:
		return protocol.JoinAdmitted
	}
}

func (i invite) public(now time.Time) Invite {
	return Invite{
		ID: i.Hash[:idChars], Name: i.Name, Created: time.UnixMilli(i.CreatedMS),
		Expires: time.UnixMilli(i.ExpiresMS), Left: i.Left, Uses: i.Left + i.Revoked + len(i.By),
		By: slices.Clone(i.By), Ask: i.Ask, Refusal: i.refusal(now),
	}
}

// usedBy is the invitation with one use less.
func (i invite) usedBy(site grid.SiteID, now time.Time) invite {
	if i.Left--; i.Left == 0 {
		i.UsedMS = now.UnixMilli()
	}
	i.By = append(slices.Clip(i.By), site)
	return i
}

// inviteName is a name as it is kept: one line of at most maxInviteName bytes.
func inviteName(name string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(name, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	return strings.TrimSpace(cut(strings.Join(words, " "), maxInviteName))
}

func countOpen(invites []invite, now time.Time) int {
	n := 0
	for _, i := range invites {
		if i.open(now) {
			n++
		}
	}
	return n
}

// pruned drops what was closed long ago, the oldest first when there are many.
func pruned(invites []invite, now time.Time) []invite {
	kept := slices.DeleteFunc(slices.Clone(invites), func(i invite) bool {
		return now.Sub(time.UnixMilli(i.ExpiresMS)) > closedKept
	})
	for n := 0; len(kept) > maxInvitKept && n < len(kept); {
		if kept[n].open(now) {
			n++
			continue
		}
		kept = slices.Delete(kept, n, n+1)
	}
	return kept
}

func decodeInvites(text []byte) ([]invite, error) {
	var stored invitesText
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	if stored.Version != fileVersion || len(stored.Invites) > maxInvitKept {
		return nil, fmt.Errorf(
			"version %d with %d invitations, want version %d and at most %d",
			stored.Version, len(stored.Invites), fileVersion, maxInvitKept,
		)
	}
	for _, i := range stored.Invites {
		if err := i.validate(); err != nil {
			return nil, err
		}
	}
	return stored.Invites, nil
}

func (i invite) validate() error {
	if _, err := hex.DecodeString(i.Hash); err != nil || len(i.Hash) != 2*sha256.Size {
		return fmt.Errorf("hash %q", i.Hash)
	}
	id := i.Hash[:idChars]
	switch {
	case i.Left < 0 || i.Left > MaxUses || i.ExpiresMS < 0:
		return fmt.Errorf("invitation %s: uses or expiry out of range", id)
	case i.Revoked < 0 || i.Revoked > MaxUses || i.Revoked > 0 && i.Left > 0:
		return fmt.Errorf("invitation %s: revoked with %d uses, and has %d", id, i.Revoked, i.Left)
	case i.Name != inviteName(i.Name):
		return fmt.Errorf("invitation %s: its name is longer than %d bytes, or no text in one line",
			id, maxInviteName)
	case len(i.By) > MaxUses:
		return fmt.Errorf("invitation %s: used by %d sites, want at most %d",
			id, len(i.By), MaxUses)
	}
	for _, site := range i.By {
		if err := site.Validate(); err != nil {
			return fmt.Errorf("invitation %s: used by: %w", id, err)
		}
	}
	if err := validateAsked(i.Asked); err != nil {
		return fmt.Errorf("invitation %s: %w", id, err)
	}
	return nil
}

// idChars is the length of a hash as people see it.
const idChars = 8
