// Package gossip broadcasts announcements and clears to a whole domain, over a topic of
// gossipsub, and checks what others send there. It knows only the peers on the topic: who may
// be a member, and what becomes of a message, its caller decides. Those on behalf of an owner
// have a topic of their own (protocol.BehalfTopic).
//
// A message travels in an envelope that its submitter signed. What no honest peer
// passes on costs the one that brought it its score; everything else that is not
// usable is ignored and counted (docs/protocol.md, "Hardening"). The door is Join.
package gossip
