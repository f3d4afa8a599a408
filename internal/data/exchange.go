package data

import (
	"context"
	"sync"
	"time"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/client"
	bsmsg "github.com/ipfs/boxo/bitswap/message"
	"github.com/ipfs/boxo/bitswap/network"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/exchange"
	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"golang.org/x/time/rate"
)

// protocolPrefix stands before bitswap's own stream name, so that members of the
// mesh and nodes of the public network never talk to each other.
const protocolPrefix = protocol.ID("/mrs/1")

const (
	messageBytes     = 512 << 10            // of blocks in one message, about
	outstandingBytes = 16 << 20             // under way to one peer
	serverWorkers    = 8                    // readers of blocks, and senders
	findDelay        = 5 * time.Millisecond // before a session asks who holds its first block
	// Between two such questions later: each is a local look-up, and starts a session
	// whose first block came after its first question.
	refindDelay = 100 * time.Millisecond
	minDontHave = 10 * time.Second // a holder is given this long before another is asked too
	maxDontHave = 30 * time.Second // and at most this long
	limitBurst  = maxBlockBytes    // of a rate cap
	bitsPerByte = 8
)

// swap is bitswap over the host: it serves members and opens sessions.
type swap struct {
	bs    exchange.SessionExchange
	s     *Store
	peers *network.ConnectEventManager // what bitswap believes of its connections
	gate  *gate

	upLimit   *rate.Limiter
	downLimit *rate.Limiter

	mu       sync.RWMutex
	fetchers map[*fetcher]struct{} // to be told who does not hold what
}

func newSwap(s *Store) *swap {
	x := &swap{
		s: s, peers: network.NewConnectEventManager(), gate: newGate(s),
		upLimit: newLimiter(s.cfg.UploadBps), downLimit: newLimiter(s.cfg.DownloadBps),
		fetchers: make(map[*fetcher]struct{}),
	}
	net := &cappedNetwork{
		BitSwapNetwork: bsnet.NewFromIpfsHost(s.host, bsnet.Prefix(protocolPrefix),
			bsnet.SupportedProtocols([]protocol.ID{bsnet.ProtocolBitswap}),
			bsnet.WithConnectEventManager(x.peers)),
		limit: x.upLimit, metrics: s.metrics,
	}
	timeouts := client.DefaultDontHaveTimeoutConfig()
	timeouts.DontHaveTimeout, timeouts.MaxTimeout = maxDontHave, maxDontHave
	timeouts.MinTimeout = minDontHave
	// The lifetime is that of the store and ends by Close, not by a context.
	x.bs = bitswap.New(context.Background(), net, holderFinder{}, s.blocks,
		bitswap.WithPeerBlockRequestFilter(x.allow),
		bitswap.WithTracer(x),
		bitswap.WithTargetMessageSize(messageBytes),
		bitswap.MaxOutstandingBytesPerPeer(outstandingBytes),
		bitswap.EngineBlockstoreWorkerCount(serverWorkers),
		bitswap.TaskWorkerCount(serverWorkers),
		bitswap.ProviderSearchDelay(findDelay),
		bitswap.RebroadcastDelay(refindDelay),
		bitswap.WithoutDuplicatedBlockStats(),
		bitswap.WithClientOption(client.WithDefaultProviderQueryManager(false)),
		bitswap.WithClientOption(client.WithDontHaveTimeoutConfig(timeouts)),
		// Only the named holders are asked, never all connected peers.
		bitswap.WithClientOption(client.BroadcastControlEnable(true)),
		bitswap.WithClientOption(client.BroadcastControlMaxPeers(0)),
	)
	for _, p := range s.host.Network().Peers() {
		x.meet(p)
	}
	return x
}

// meet tells bitswap that a peer is connected and may be asked. Bitswap only hears
// of connections made while it runs, and does not ask a peer again of which it
// once found that it did not answer.
func (x *swap) meet(p peer.ID) { x.peers.Connected(p) }

func (x *swap) close() error {
	x.s.host.RemoveStreamHandler(protocolPrefix + bsnet.ProtocolBitswap)
	return x.bs.Close()
}

// allow is the gate: blocks are for members, and for those that trade them, and of these for such
// as may have the data that the block is of.
func (x *swap) allow(p peer.ID, c cid.Cid) bool {
	known := x.s.cfg.Allow(p) || x.s.cfg.Trades != nil && x.s.cfg.Trades(p)
	if known && x.s.cfg.Serves == nil {
		return true
	}
	if known {
		allowed, here := x.gate.lets(p, c)
		if allowed || !here {
			return allowed
		}
	}
	x.s.metrics.denied.Inc()
	return false
}

// session asks the given holders, and nobody else, until ctx ends.
func (x *swap) session(ctx context.Context, holders []peer.ID) exchange.Fetcher {
	return x.bs.NewSession(context.WithValue(ctx, holdersKey{}, holders))
}

func (x *swap) watch(f *fetcher) (unwatch func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fetchers[f] = struct{}{}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.fetchers, f)
	}
}

// MessageReceived times the blocks that came, and passes on which ones a peer
// says it does not hold.
func (x *swap) MessageReceived(p peer.ID, msg bsmsg.BitSwapMessage) {
	bytes := 0
	for _, b := range msg.Blocks() {
		bytes += len(b.RawData())
	}
	x.s.meter.arrived(p, bytes, time.Now())
	lacks := msg.DontHaves()
	if len(lacks) == 0 {
		return
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for f := range x.fetchers {
		f.onLacks(p, lacks)
	}
}

// MessageSent is of no interest.
func (x *swap) MessageSent(peer.ID, bsmsg.BitSwapMessage) {}

// holdersKey is the key under which a session's context names its holders.
type holdersKey struct{}

// holderFinder tells bitswap who holds a block: the holders that the caller of
// the fetch named. There is no other routing.
type holderFinder struct{}

// FindProvidersAsync gives the holders named in the session's context.
func (holderFinder) FindProvidersAsync(ctx context.Context, _ cid.Cid, _ int) <-chan peer.AddrInfo {
	holders, _ := ctx.Value(holdersKey{}).([]peer.ID)
	out := make(chan peer.AddrInfo, len(holders))
	for _, p := range holders {
		out <- peer.AddrInfo{ID: p}
	}
	close(out)
	return out
}

// cappedNetwork keeps what is sent to all members together below the owner's cap.
// Only the server sends messages this way; requests are not capped.
type cappedNetwork struct {
	network.BitSwapNetwork
	limit   *rate.Limiter
	metrics storeMetrics
}

// SendMessage waits for its turn and sends.
func (n *cappedNetwork) SendMessage(
	ctx context.Context, p peer.ID, msg bsmsg.BitSwapMessage,
) error {
	size := msg.Size()
	if err := waitLimit(ctx, n.limit, size); err != nil {
		return err
	}
	n.metrics.sentBytes.Add(float64(size))
	return n.BitSwapNetwork.SendMessage(ctx, p, msg)
}

// newLimiter caps at a rate in bit/s; 0 is no cap.
func newLimiter(bps int64) *rate.Limiter { return rate.NewLimiter(bytesPerSecond(bps), limitBurst) }

func bytesPerSecond(bps int64) rate.Limit {
	if bps == 0 {
		return rate.Inf
	}
	return rate.Limit(float64(bps) / bitsPerByte)
}

// Cap changes the caps on sending and receiving, in bit/s; 0 is none. What waits for
// its turn already waits by the old one.
func (s *Store) Cap(uploadBps, downloadBps int64) {
	s.swap.upLimit.SetLimit(bytesPerSecond(uploadBps))
	s.swap.downLimit.SetLimit(bytesPerSecond(downloadBps))
}

// waitLimit waits until n bytes are within the cap.
func waitLimit(ctx context.Context, l *rate.Limiter, n int) error {
	for n > 0 {
		part := min(n, limitBurst)
		if err := l.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
