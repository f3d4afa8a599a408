package death

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Arg is the hidden argument with which an executable runs itself again to tell of deaths:
// main calls Main then, before anything else.
const Arg = "__tell-deaths"

const (
	tellTime  = 3 * time.Second // for all of it: an agent that starts again has the same key
	exitWrong = 1
	exitUsage = 2
)

// Main tells what the notes say. Its arguments are the file with the site's key and the
// directory of the notes. It returns the exit code.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "tell deaths: want the file of a key and a directory")
		return exitUsage
	}
	// A service manager ends all that is left of the agent, and this ends soon by itself.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	if err := Tell(ctx, args[0], args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "tell deaths:", err)
		return exitWrong
	}
	return 0
}

// Tell tells the submitters what the notes in dir say, and removes these.
func Tell(ctx context.Context, keyFile, dir string) error {
	if _, err := os.Stat(keyFile); err != nil {
		return fmt.Errorf("read identity: %w", err) // none is made here
	}
	id, err := wire.LoadIdentity(keyFile)
	if err != nil {
		return err
	}
	h, err := libp2p.New(libp2p.Identity(id.Key()), libp2p.NoListenAddrs,
		libp2p.EnableRelay(), libp2p.Ping(false), libp2p.UserAgent("mrsmesh"), libp2p.DisableMetrics(),
		libp2p.SwarmOpts(swarm.WithDialRanker(swarm.NoDelayDialRanker)),
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(libp2pquic.NewTransport))
	if err != nil {
		return fmt.Errorf("make a host: %w", err)
	}
	defer func() { _ = h.Close() }() // it only told
	notes, err := take(dir)
	var mu sync.Mutex
	var group sync.WaitGroup
	for to, of := range notes {
		group.Go(func() {
			if wrong := tellOne(ctx, h, to, of); wrong != nil {
				mu.Lock()
				defer mu.Unlock()
				err = errors.Join(err, fmt.Errorf("%s: %w", to, wrong))
			}
		})
	}
	group.Wait()
	return err
}

// tellOne tells one submitter of all its attempts, and waits until it has taken it.
func tellOne(ctx context.Context, h host.Host, to grid.SiteID, notes []Note) error {
	frames, target, err := compose(to, notes)
	if err != nil {
		return err
	}
	ctx = network.WithAllowLimitedConn(ctx, "death")
	if err = h.Connect(ctx, target); err != nil {
		return err
	}
	stream, err := h.NewStream(ctx, target.ID, protocol.DeathStreamID)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Reset() }()
	if until, ok := ctx.Deadline(); ok {
		if err = stream.SetDeadline(until); err != nil {
			return err
		}
	}
	if _, err = stream.Write(frames); err != nil {
		return err
	}
	if err = stream.CloseWrite(); err != nil {
		return err
	}
	if _, err = stream.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("it was not taken: %w", err)
	}
	return nil
}

// compose makes what is said to a submitter, and where it is reached.
func compose(to grid.SiteID, notes []Note) ([]byte, peer.AddrInfo, error) {
	id, err := wire.PeerOf(to)
	if err != nil {
		return nil, peer.AddrInfo{}, err
	}
	target := peer.AddrInfo{ID: id}
	var frames []byte
	for _, n := range notes {
		exit := grid.Exit{Cause: grid.CauseSiteRestart, Text: "the site's agent died"}
		frames, err = protocol.AppendFrame(frames, protocol.Exited{Attempt: n.Attempt, Exit: exit})
		if err != nil {
			return nil, target, err
		}
		for _, text := range n.Addrs {
			a, err := ma.NewMultiaddr(text)
			if err == nil && len(target.Addrs) < MaxAddrs && !ma.Contains(target.Addrs, a) {
				target.Addrs = append(target.Addrs, a)
			}
		}
	}
	return frames, target, nil
}
