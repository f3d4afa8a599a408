package member

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Limits on invitations.
const (
	maxInvites   = 64                  // open at a time
	MaxUses      = 1_024               // of one invitation
	MaxInvite    = 90 * 24 * time.Hour // longest validity of one
	invitesFile  = "invites.json"
	closedKept   = 7 * 24 * time.Hour // so long a closed one is told from an unknown one
	maxInvitKept = 512                // closed ones included
)

// Invite is an invitation as its issuer knows it: never with its secret.
type Invite struct {
	ID      string // first characters of the secret's hash, for people
	Created time.Time
	Expires time.Time
	Left    int // uses
}

// invite is an invitation on disk.
type invite struct {
	Hash      string        `json:"hash"` // SHA-256 of the secret, hexadecimal
	CreatedMS int64         `json:"created_ms"`
	ExpiresMS int64         `json:"expires_ms"`
	Left      int           `json:"left"`
	UsedMS    int64         `json:"used_ms,omitempty"` // when the last use was taken
	By        []grid.SiteID `json:"by,omitempty"`      // who redeemed it
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
	case i.Left <= 0:
		return protocol.JoinUsed
	case now.UnixMilli() >= i.ExpiresMS:
		return protocol.JoinExpired
	default:
		return protocol.JoinAdmitted
	}
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
		if _, err := hex.DecodeString(i.Hash); err != nil || len(i.Hash) != 2*sha256.Size {
			return nil, fmt.Errorf("hash %q", i.Hash)
		}
		if i.Left < 0 || i.Left > MaxUses || i.ExpiresMS < 0 {
			return nil, fmt.Errorf("invitation %s: uses or expiry out of range", i.Hash[:idChars])
		}
	}
	return stored.Invites, nil
}

// idChars is the length of a hash as people see it.
const idChars = 8
