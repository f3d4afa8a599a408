// Package relay lets sites behind routers be reached: a site that cannot be dialled
// holds slots at members that relay, and one that can be relays for others. Besides,
// it knows what the owner says of such routers (NAT) and what libp2p's host has to be
// told for it; hole punching is libp2p's own, and tried again here.
//
// It opens no stream of the mesh. Who is a member, and how others hear of a site's
// addresses, its caller tells by Members. The door is New, and NAT for the host.
//
//	relay.go    Config, Members, Relays: which part this site takes, and its addresses
//	slots.go    slots held at members that relay
//	service.go  relaying for others, and who may
//	nat.go      NAT, the host's options, addresses through relays
//	punch.go    Puncher: relayed connections made direct, again and again, and counted
package relay
