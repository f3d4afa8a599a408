package p2p

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Of two runs with one identity the newer one is the site, also after it has gone. The older one
// is refused, and told by whom and why.
func TestOfTwoRunsTheNewerIsTheSite(t *testing.T) {
	for name, numbers := range map[string][2]uint64{
		"started later": {1, 2}, "with the same number": {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			id := newForge(t)
			synctest.Test(t, func(t *testing.T) {
				world := newSimulated()
				old, other := world.host(t, 0, libp2p.Identity(id.key)), world.host(t, 1)
				again := world.host(t, 2, libp2p.Identity(id.key))
				world.net.Start()
				defer world.net.Close()
				told := make(chan protocol.Run, 1)
				start := func(h host.Host, number, nonce uint64) node {
					cfg := Config{
						Host: h, Domain: "lab", Incarnation: number, Nonce: nonce, Line: nonce,
						AcceptAnyone: true,
					}
					if h != other {
						cfg.Bootstrap = []string{other.Addrs()[0].String() + "/p2p/" + other.ID().String()}
					}
					rec := &recorder{}
					handlers := rec.handlers()
					if h == old {
						handlers.OnNewerRun = func(newer protocol.Run) { told <- newer }
					}
					m, err := New(t.Context(), cfg, handlers, nil)
					if err != nil {
						t.Fatal(err)
					}
					return node{m, rec}
				}
				witness, first := start(other, 1, 1), start(old, numbers[0], 5)
				known := func(nonce uint64) func() bool {
					return func() bool {
						f, ok := witness.facts(id.site)
						return ok && f.Run.Nonce == nonce && f.Run.Line == nonce
					}
				}
				eventually(t, "the first run is the site", known(5))
				second := start(again, numbers[1], 6)
				eventually(t, "the second run is the site", known(6))
				eventually(t, "the first run is told", func() bool { return len(told) > 0 })
				if newer := <-told; newer.Number != numbers[1] || newer.Nonce != 6 {
					t.Errorf("told of %+v, want of the second run", newer)
				}
				_ = first.Close() // as it does when it is told
				_ = old.Close()
				stay := func() { <-time.After(time.Minute) } // of the bubble's clock
				stay()
				before := witness.count()
				for _, way := range []struct{ from, to node }{{witness, second}, {second, witness}} {
					if err := way.from.Send(way.to.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
						t.Error(err)
					}
				}
				eventually(t, "the second run hears and is heard", func() bool {
					return second.count() > 0 && witness.count() > before
				})
				stay()
				if second.count() != 1 || witness.count() != before+1 {
					t.Errorf("the second run got %d messages and sent %d, want 1 each",
						second.count(), witness.count()-before)
				}
				_ = second.Close()
				_ = again.Close()
				stay()
				if f, ok := witness.facts(id.site); ok && f.Run.Nonce == 5 {
					t.Error("the first run is the site again")
				}
				if witness.Count(wire.CountRefused, "older_run") == 0 {
					t.Error("the refusal was not counted")
				}
				_ = witness.Close()
				_ = other.Close()
			})
		})
	}
}

// Who says that a newer run has a site's identity has to show what that has signed.
func TestWordOfANewerRunNeedsProof(t *testing.T) {
	n := startSite(t, testConfig(t))
	forged := n.run
	forged.Number += 5
	text := forged.Signed()
	mine := newForge(t)
	byOther, err := mine.key.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := n.key.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	older := n.run
	older.Number--
	told := 0
	n.Mesh.handlers.OnNewerRun = func(protocol.Run) { told++ }
	with := func(r protocol.Run, signature []byte) protocol.Run { r.Signature = signature; return r }
	for name, claim := range map[string]protocol.Run{
		"nothing": {}, "no signature": with(forged, nil), "another's": with(forged, byOther),
		"this run's": with(forged, n.run.Signature), "this run": n.run, "an older run": older,
	} {
		before := n.Count(wire.CountInvalid, "run")
		n.heedRefusal(mine.site, protocol.Hello{Refusal: grid.ReasonOlderRun, Newer: claim})
		if told != 0 || n.Count(wire.CountInvalid, "run") == before {
			t.Errorf("%s: believed %d times, want it counted and ignored", name, told)
		}
	}
	for range 2 {
		n.heedRefusal(mine.site, protocol.Hello{Refusal: grid.ReasonOlderRun, Newer: with(forged, proof)})
	}
	if told != 1 {
		t.Errorf("with a proof it was told %d times, want once", told)
	}
}

// A newer run's stream may wait while the older one is admitted. What the newer one says is not
// taken for the older one's word then: it would end leases that the older one runs under.
func TestARunIsNotHeardInTheNameOfAnother(t *testing.T) {
	n := startSite(t, testConfig(t))
	h := rawPeer(t, n)
	h.SetStreamHandler(protocol.StreamID, func(s network.Stream) { // it answers no Hello
		_, _ = io.Copy(io.Discard, s)
	})
	hello := validHello()
	hello.Incarnation = 6
	newer, err := hellos(t, h, n, hello)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := protocol.AppendFrame(nil, protocol.Cancel{Job: jobID(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newer.Write(frame); err != nil {
		t.Fatal(err)
	}
	r := n.want(h.ID(), nil)
	r.update(Facts{Incarnation: 5, Run: protocol.Run{Number: 5}}, false)
	if _, err := newer.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("the newer run's stream goes on: %v", err)
	}
	if got := n.count(); got != 0 {
		t.Errorf("%d messages of the newer run count as the older one's", got)
	}
}

func TestRunsAreFew(t *testing.T) {
	now := time.Unix(0, 0)
	k := &runs{limit: 2, newest: make(map[grid.SiteID]heardRun)}
	for i := range 5 {
		k.learn(grid.SiteID(fmt.Sprint(i)), protocol.Run{Number: 3}, now.Add(time.Duration(i)))
	}
	if len(k.newest) != 2 || k.newest["4"].Number != 3 || k.newest["3"].Number != 3 {
		t.Errorf("remembered %+v, want the two heard last", k.newest)
	}
	if newest := k.learn("4", protocol.Run{Number: 2}, now); newest.Number != 3 {
		t.Errorf("after run 3 run %d is the newest", newest.Number)
	}
}
