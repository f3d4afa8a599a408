// Package protocol holds the messages of the mesh: their content, limits and
// validation, their encoding, and the names of topics and streams. It opens no
// socket. docs/protocol.md describes when each message is sent.
//
// Where to look:
//
//	protocol.go          names of topics and streams
//	messages.go          the messages between submitters and sites
//	refuse.go            why a site makes no offer, and what is free there
//	renew.go             requests for leases, and what they tell
//	promises.go          those of firm offers, and of attempts that ask first
//	saved.go             those about checkpoints, and a checkpoint's seal
//	move.go              those of a task that moves
//	testimony.go         what submitters tell each other of sites
//	run.go               the name of a run
//	behalf.go            messages said on behalf of an owner
//	certificate.go       who may act for an owner
//	standby.go           what group members say to each other
//	domain.go            what sites, submitters and a domain's controller say to each other
//	favours.go           what gateways tell the controller of linked domains
//	neighbour.go         what a gateway tells members of neighbours, and passes on
//	mandate.go           who may stand in for a gateway, and what it is handed
//	border.go            what the gateways of two domains say to each other
//	member.go            the messages and records of joining and membership
//	succession.go        that a new key of a domain takes the place of the one before
//	envelope.go          what gossip carries, and how fresh it must be
//	replay.go            each envelope is accepted once
//	encode.go            a message becomes bytes
//	decode.go            bytes become a message, validated
//	convert_messages.go  between Go's types and the wire's: the messages
//	convert_border.go    those between gateways
//	convert_saved.go     the same for those about checkpoints and moves
//	convert_write.go     their parts, written
//	convert_read.go      their parts, read
package protocol

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Digest is a SHA-256: of a requirement's encoding, or of a roster.
type Digest [32]byte

// StreamID is the libp2p protocol name of the persistent stream between two
// sites, which carries every message but gossip.
const StreamID = "/mrs/1/bid"

// LogStreamID is the libp2p protocol name of the streams that read an
// attempt's output while it runs.
const LogStreamID = "/mrs/1/log"

// SteerStreamID is the libp2p protocol name of the streams on which a site is looked at, paused
// and resumed by a site that its owner allows to.
const SteerStreamID = "/mrs/1/steer"

// DeathStreamID is the libp2p protocol name of the stream on which a site whose agent has
// died says so: an Exited with the cause CauseSiteRestart for each attempt of which nothing is
// left. The other side ends its half when it has taken all of them.
const DeathStreamID = "/mrs/1/death"

// Topic is the gossip topic of a domain's announcements and clears.
func Topic(domain grid.DomainID) string { return "/mrs/1/" + string(domain) + "/ann" }

// BehalfTopic is the gossip topic of what acting submitters announce and clear on behalf of
// owners. It is one of its own: an agent that knows no standbys would take these for forged, and
// hold it against the peers that pass them on.
func BehalfTopic(domain grid.DomainID) string { return "/mrs/1/" + string(domain) + "/behalf" }

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", grid.ErrInvalid, fmt.Sprintf(format, args...))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ForBroker reports whether a message is for the submitter's machine, on whosever behalf it is
// said; the others are for the site's, but for those of ForController.
func ForBroker(msg Message) bool {
	switch msg := msg.(type) {
	case OnBehalf:
		return ForBroker(msg.Message)
	case NeedRequirements, Bid, Refuse, Vacancy, Accepted, Declined, Renew, MayStart, Progress,
		Exited, Checkpointed, Movable, Testimony, Remap:
		return true
	default:
		return false
	}
}
