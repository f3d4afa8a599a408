// Package gate holds this domain's links with others: one stream to the gateway of each, on which
// messages go both ways. A peer of a linked domain is no member. It may open this stream, and
// nothing that is said on it is for the mesh itself.
//
// Who speaks for a domain proves it anew at each start of a stream, by a card: the domain's key
// signs the speaker's peer ID, where its gateways are, whom it is for, and a number that the other
// side has drawn for this conversation. So a card is of no use to another peer, for another
// domain, or a second time.
//
//	gates.go    Gates: who is a neighbour, sending, what changes with the links
//	door.go     one link: its one stream, dialled again and again
//	session.go  a stream in use: the queue out, messages in
//	card.go     cards, made and judged, and what both sides say at the start
//	invite.go   both sides of an invitation to a link
//	frame.go    what is said before messages are
package gate
