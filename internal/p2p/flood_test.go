package p2p

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// heardFrom counts the announcements of a submitter that reached the handlers of
// each site: the lowest and the highest count.
func (w *town) heardFrom(site grid.SiteID) (least, most int) {
	for i, n := range w.nodes {
		got := 0
		for _, h := range n.heard() {
			if h.from == site {
				got++
			}
		}
		if i == 0 {
			least = got
		}
		least, most = min(least, got), max(most, got)
	}
	return least, most
}

// rejected counts the messages that cost the peer that brought them its score.
func (w *town) rejected() (sum uint64) {
	for _, n := range w.nodes {
		for _, cause := range []string{"size", "version", "domain", "signature", "format"} {
			sum += n.Count(wire.CountInvalid, cause)
		}
	}
	return sum
}

func TestOneSubmittersFloodIsCutAndPunishesNobody(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		const perSecond, burst, seconds = 20, 40, 5
		w := newTown(t, 6, attacker, stranger, func(c *Config) {
			c.Limits.SubmitterRate, c.Limits.SubmitterBurst = perSecond, burst
		})
		defer w.close()
		for i := range 10 * perSecond * seconds {
			w.publish(w.fresh(w.attacker, nil))
			if i%40 == 0 {
				n := w.nodes[i/40%len(w.nodes)]
				if err := n.Broadcast(announcement(n.Self(), 1_000_000+i/40)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second / (10 * perSecond))
		}
		time.Sleep(2 * time.Second)
		least, most := w.heardFrom(attacker.site)
		t.Logf("of %d the sites heard %d to %d", 10*perSecond*seconds, least, most)
		if least < burst || most > burst+perSecond*(seconds+2) {
			t.Errorf(
				"the sites heard %d to %d of the flooder, want %d and at most %d", least, most, burst,
				burst+perSecond*(seconds+2),
			)
		}
		if got := w.delivered(10 * perSecond * seconds / 40); got != 1 || w.rejected() != 0 {
			t.Errorf("honest delivery %.4f, %d messages punished; want all and none", got, w.rejected())
		}
	})
}

func TestWhoPassesOnAStrangersEnvelopesIsNotPunished(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 4, attacker, stranger, nil)
		defer w.close()
		for range 100 {
			w.publish(w.fresh(w.stranger, nil))
			time.Sleep(10 * time.Millisecond)
		}
		w.publish(w.fresh(w.attacker, nil))
		time.Sleep(2 * time.Second)
		if _, most := w.heardFrom(stranger.site); most > 0 {
			t.Errorf("%d envelopes of a stranger were heeded", most)
		}
		if least, most := w.heardFrom(attacker.site); least != 1 || most != 1 || w.rejected() > 0 {
			t.Errorf(
				"who passed them on was heard %d to %d times, %d messages punished; want once and none", least,
				most, w.rejected(),
			)
		}
	})
}

func TestOldEnvelopesAreNotHeardAgain(t *testing.T) {
	attacker, stranger := newForge(t), newForge(t)
	synctest.Test(t, func(t *testing.T) {
		const said = 20
		w := newTown(t, 4, attacker, stranger, func(c *Config) {
			c.Limits.SubmitterRate, c.Limits.SubmitterBurst = 0.1, 2*said
		})
		defer w.close()
		tap, err := w.topic.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		defer tap.Cancel()
		time.Sleep(5 * time.Second)
		victim := w.nodes[0]
		var captured [][]byte
		for i := range said {
			if err := victim.Broadcast(announcement(victim.Self(), i)); err != nil {
				t.Fatal(err)
			}
			raw, err := tap.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			captured = append(captured, raw.GetData())
		}
		for range 3 { // gossipsub itself knows a message again for two minutes
			time.Sleep(150 * time.Second)
			for _, raw := range captured {
				w.publish(raw)
			}
		}
		time.Sleep(2 * time.Second)
		if err := victim.Broadcast(announcement(victim.Self(), said)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if least, most := w.heardFrom(victim.Self()); least != said+1 || most != said+1 {
			t.Errorf("the victim's %d announcements were heard %d to %d times", said+1, least, most)
		}
		if w.nodes[1].Count(wire.CountInvalid, "replay") == 0 {
			t.Error("no replay is counted")
		}
	})
}

func TestLargeMessagesAreReadMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(Config{}.withDefaults())
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		read := 0
		for g.pace(ctx, newID(1), protocol.MaxMessageBytes) {
			read += protocol.MaxMessageBytes
		}
		if read == 0 || read > byteBurst+byteRate {
			t.Errorf("%d bytes are read in a row, want about %d", read, byteBurst)
		}
	})
}
