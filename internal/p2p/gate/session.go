package gate

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// session is a stream on which both sides have proved who they are.
type session struct {
	stream network.Stream
	site   grid.SiteID // at the other end
	byUs   bool        // this side opened it
	deputy bool        // the other end speaks under a mandate
	began  time.Time
	// edition is of the deputies that the own card names. When there are others by the time that
	// the stream is in use, the card is shown anew.
	edition int
	ended   chan struct{} // closed when nothing is read from it any more
}

func newSession(stream network.Stream, byUs, deputy bool) *session {
	return &session{
		stream: stream, site: wire.SiteOf(stream.Conn().RemotePeer()), byUs: byUs, deputy: deputy,
		began: time.Now(), ended: make(chan struct{}),
	}
}

// carry lets messages go both ways until the stream ends.
func (d *door) carry(ctx context.Context, s *session) {
	stop := context.AfterFunc(ctx, func() { _ = s.stream.Reset() })
	defer stop()
	if s.edition != d.g.currentEdition() {
		d.changed()
	}
	d.g.cfg.Go(func() {
		defer close(s.ended)
		d.hear(ctx, s)
	})
	d.write(s)
	_ = s.stream.Reset()
	<-s.ended
	d.leave(s)
}

// write writes what is queued until the stream ends.
func (d *door) write(s *session) {
	out := bufio.NewWriterSize(
		wire.DeadlineWriter{Stream: s.stream, Limit: d.g.cfg.Timing.Write}, wire.BufferBytes,
	)
	for {
		select {
		case <-s.ended:
			return
		case frame := <-d.queue:
			d.queued.Add(-int64(len(frame)))
			_, err := out.Write(frame)
			if err == nil && len(d.queue) == 0 {
				err = out.Flush()
			}
			if err != nil {
				d.g.cfg.Counts.Inc(wire.CountDropped, queueBorder)
				d.g.cfg.Log.Info("stream to a linked domain is lost",
					"domain", string(d.name), "error", err)
				return
			}
		}
	}
}

// hear reads messages until the stream ends, no faster than a member's.
func (d *door) hear(ctx context.Context, s *session) {
	in := wire.NewReader(s.stream, d.g.cfg.Timing.Read)
	for d.g.cfg.Pace(ctx, s.stream.Conn().RemotePeer(), in.Size) {
		message, err := in.Next(protocol.MaxMessageBytes)
		switch {
		case err == nil && !protocol.ForBorder(message):
			d.g.cfg.Counts.Inc(wire.CountInvalid, wire.CauseFormat)
		case err == nil:
			if d.holds(s) {
				d.g.cfg.Counts.Inc(wire.CountIn, wire.NameOf(message))
				d.g.cfg.OnMessage(d.site, message)
			}
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF),
			errors.Is(err, network.ErrReset):
			return
		default:
			d.g.cfg.Counts.Inc(wire.CountInvalid, wire.CauseOf(err))
			d.g.cfg.Log.Info("a linked domain's message is not usable",
				"domain", string(d.name), "error", err)
			if !wire.Skippable(err) {
				return // where the next message begins is lost
			}
		}
	}
}
