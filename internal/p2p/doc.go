// Package p2p joins sites into a mesh: one libp2p host, one gossip topic for a
// domain, and one persistent, length-prefixed stream in each direction between
// every two members. It moves protocol.Message values and judges nobody's job.
//
// # Admission
//
// A connection means nothing. The side that opens a stream says Hello first, the
// other side answers with its own Hello, and both judge what they read: a common
// protocol version, the same domain, the list of members, and clocks at most
// protocol.MaxSkew apart. The answer carries the reason of a refusal. Where a list of
// members is given, strangers are turned away before that, when their connection
// is complete: they are told with libp2p's code for a gated connection.
//
// Besides the list, members are admitted and banned by internal/member, whose
// roster this package carries between peers. While an invitation is open there, a
// few strangers are let in as guests (package join), for a moment and for the join stream
// alone.
//
// # Reach
//
// A site that cannot be dialled holds slots at members that relay (package relay), and
// names its addresses through them in its Hello. A relayed connection is
// made direct by hole punching; remote then moves its stream, so that nobody is
// gone in between. What else finds members is optional: mdns, and a routing
// table that is asked when a member is not reached (finder).
//
// # Links
//
// The gateway of a linked domain is no member. The gater lets it in, and what it opens but the
// streams of package gate is refused: it has no owner here, gossip and relays pass it over, and
// nothing that it says concerns the roster. Blocks of data are exchanged with it (Trades). Of this
// domain's members it hears of the deputies alone, which may lead it to the gateway (doors).
//
// # Queues
//
// Every queue is bounded and says what happens when it is full:
//
//   - to a peer: Limits.QueueMessages and Limits.QueueBytes; Send then fails.
//     When the peer cannot be dialled, or takes nothing for Timing.Write, the whole
//     queue is dropped and counted: the messages are stale.
//   - from a peer's stream: no queue at all. While OnMessage runs nothing more is
//     read, so the sender feels the pressure, and gives the stream up at its
//     own write deadline.
//   - from gossip: Limits.GossipMessages and Limits.GossipBytes; what comes on top
//     is ignored and counted.
//
// # Hostile peers
//
// The guard keeps an account for each peer, beyond its connections: streams,
// repeated Hellos, addresses of others that it names, messages and their bytes.
// Gossip is judged by package gossip: what no honest peer passes on costs the one
// that brought it its score, everything else is ignored. docs/protocol.md has the
// table of attacks, bounds and tests.
//
// The same accounts hold a budget of work for each peer. What can wait is read more slowly, the
// rest is refused unread, and a peer that goes on is kept out for some minutes.
//
// # Goroutines
//
// Each known peer is owned by one goroutine (remote.run), which alone dials it,
// opens the stream to it, writes to it and decides that it is gone. Streams
// opened by peers are read in goroutines of their own. Close waits for all.
//
// # Files
//
// The rooms below have one door each: gossip.Join, relay.New, join.New and join.Redeem,
// death.Main, gate.New; what they share is in wire.
//
//	mesh.go     Mesh: New, Close, who is a peer now
//	config.go   Config, Timing, Limits and their presets
//	rooms.go    the doors of the rooms below, opened; Broadcast
//	host.go     the libp2p host: limits, transports, which address is dialled first
//	listen.go   addresses listened on; a port that is taken
//	remote.go   the owner of one peer: its life from the first dial to its loss
//	dial.go     connecting, and the exchange of Hellos on the way out
//	stream.go   writing to a peer, and reading what it sends
//	send.go     Send, and how a peer comes to have an owner
//	hello.go    Hello: what is said, and how it is judged
//	testimony.go  what submitters say of sites is signed
//	runs.go     two machines with one site's identity: the newer run is the site
//	members.go  addresses of members: told, learnt, tried; who refuses connections
//	deaths.go   what a site whose agent has died says of its attempts
//	roster.go   who may be a member; records of members passed on; bans carried out
//	border.go   linked domains: sending to them, and what their gateways may not do
//	doors.go    deputies through which linked domains reach a gateway
//	gater.go    strangers turned away at the connection
//	guard.go    what one peer may make this site do
//	budget.go   what one peer may cost, by kind
//	meter.go    streams counted as peers open them
//	parting.go  peers that cost too much, kept out for a time
//	book.go     addresses remembered over restarts
//	find.go     mDNS, and members asked for the addresses of others
//	move.go     streams moved from relayed to direct connections; Reach
//	mend.go     peers that gossip lost, brought back
//	asked.go    streams on which a site is asked for a log, or steered from afar
package p2p
