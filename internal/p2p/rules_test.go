package p2p

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Each field of a configuration has its bounds, and what is wrong is named.
func TestTheBoundsOfAConfiguration(t *testing.T) {
	good := Config{KeyFile: "k", Domain: "lab", Incarnation: 1}
	for name, c := range map[string]struct {
		change func(*Config)
		wants  string // in the error; empty: none
	}{
		"as it is":          {func(*Config) {}, ""},
		"no key":            {func(c *Config) { c.KeyFile = "" }, "key file"},
		"a host for a key":  {func(c *Config) { c.KeyFile, c.Host = "", newStubHost(t, newID(1)) }, ""},
		"the longest name":  {func(c *Config) { c.Name = strings.Repeat("x", 64) }, ""},
		"a longer name":     {func(c *Config) { c.Name = strings.Repeat("x", 65) }, "name"},
		"no start":          {func(c *Config) { c.Incarnation = 0 }, "incarnation"},
		"the last start":    {func(c *Config) { c.Incarnation = math.MaxUint32 }, ""},
		"a start too many":  {func(c *Config) { c.Incarnation = math.MaxUint32 + 1 }, "incarnation"},
		"a list":            {func(c *Config) { c.Allow = []grid.SiteID{newForge(t).site} }, ""},
		"anyone":            {func(c *Config) { c.AcceptAnyone = true }, ""},
		"the preset of wan": {func(c *Config) { c.Preset = PresetWAN }, ""},
		"another preset":    {func(c *Config) { c.Preset = "moon" }, "preset"},
		"a way of NAT":      {func(c *Config) { c.NAT.Relay = "maybe" }, "relay"},
		"where to listen":   {func(c *Config) { c.Listen = []string{"/ip4/0.0.0.0/tcp/4601"} }, ""},
		"whom to ask": {func(c *Config) {
			c.Bootstrap = []string{"/ip4/10.0.0.1/tcp/1/p2p/" + string(newForge(t).site)}
		}, ""},
	} {
		cfg := good
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.wants == "") || err != nil && !strings.Contains(err.Error(), c.wants) {
			t.Errorf("%s: %v, want an error of %q", name, err, c.wants)
		}
	}
}

// What is left open comes from the preset.
func TestWhatIsLeftOpen(t *testing.T) {
	c := Config{}.withDefaults()
	if c.Preset != PresetLAN || c.Timing != PresetLAN.timing() || c.Limits != defaultLimits() {
		t.Errorf("preset %q, timing %+v, limits %+v", c.Preset, c.Timing, c.Limits)
	}
	want := "[/ip4/127.0.0.1/tcp/0 /ip4/127.0.0.1/udp/0/quic-v1]"
	if fmt.Sprint(c.Listen) != want || c.Capability().CoreMFLOPS != 0 || c.Now().IsZero() {
		t.Errorf("listens on %v, can %+v, at %s", c.Listen, c.Capability(), c.Now())
	}
	at := time.Unix(5, 0)
	c = Config{
		Preset: PresetWAN, Listen: []string{"/ip4/10.0.0.1/tcp/1"}, Now: func() time.Time { return at },
		Capability: func() grid.Capability { return grid.Capability{CoreMFLOPS: 7} },
		Timing:     Timing{Dial: 1, Write: -1}, Limits: Limits{Peers: 1, QueueBytes: -1},
	}.withDefaults()
	if c.Preset != PresetWAN || fmt.Sprint(c.Listen) != "[/ip4/10.0.0.1/tcp/1]" ||
		c.Capability().CoreMFLOPS != 7 || !c.Now().Equal(at) {
		t.Errorf("what was given is changed: %+v", c)
	}
	if c.Timing.Dial != 1 || c.Timing.Write != PresetWAN.timing().Write || c.Limits.Peers != 1 ||
		c.Limits.QueueBytes != defaultLimits().QueueBytes {
		t.Errorf("timing %+v, limits %+v; want what is above 0, and else the preset's", c.Timing,
			c.Limits)
	}
}

// The deadlines of each preset: tests are quick, far sites are waited for.
func TestTheTimingOfAPreset(t *testing.T) {
	said := func(p Preset) string {
		i := p.timing()
		return fmt.Sprint(i.Dial, i.Hello, i.Write, i.Read, i.Debounce, i.BackoffMin, i.BackoffMax,
			i.Spread, i.LogIdle, i.Guest, i.RosterGap, i.Relay, i.Linger, i.Lookup)
	}
	for p, want := range map[Preset]string{
		PresetLAN:  "5s 5s 10s 10s 200ms 500ms 30s 1s 10m0s 10s 5s 2s 10s 30s",
		PresetWAN:  "15s 15s 30s 30s 2s 500ms 30s 1s 10m0s 10s 5s 2s 10s 30s",
		PresetTest: "5s 5s 10s 10s 200ms 50ms 1s 50ms 10m0s 10s 200ms 100ms 500ms 200ms",
	} {
		if got := said(p); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
	want := "{4096 8388608 65536 67108864 200 4096 4096 256 4096 64 16 256 128 48}"
	if got := fmt.Sprint(defaultLimits()); got != want {
		t.Errorf("limits %s, want %s", got, want)
	}
}

// A site's name is that of its host, or of its key.
func TestTheNameOfAConfiguration(t *testing.T) {
	id := newForge(t).peer()
	if site, err := (Config{Host: newStubHost(t, id)}).Site(); err != nil || site != wire.SiteOf(id) {
		t.Errorf("the host's: %s, %v", site, err)
	}
	file := t.TempDir() + "/key"
	key, err := LoadIdentity(file)
	if err != nil {
		t.Fatal(err)
	}
	if site, err := (Config{KeyFile: file}).Site(); err != nil || site != key.Site() {
		t.Errorf("the key's: %s, %v", site, err)
	}
	if _, err := (Config{KeyFile: file + "/below"}).Site(); err == nil {
		t.Error("a key that cannot be read has a name")
	}
}

// Of a peer only what others would act on is told anew.
func TestWhichFactsAreNews(t *testing.T) {
	old := Facts{
		Name: "n", Skew: time.Minute, RoundTrip: time.Second, Incarnation: 4,
		Run: protocol.Run{Number: 4, Nonce: 2},
		Capability: grid.Capability{
			Total: grid.Resources{MilliCPUs: 1}, CoreMFLOPS: 2, DownBps: 3, UpBps: 4, DiskBps: 5, OS: "o",
			Arch: "a", Kinds: []grid.WorkKind{grid.KindWasm},
		},
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		same   bool
	}{
		"nothing":           {func(*Facts) {}, true},
		"the round trip":    {func(f *Facts) { f.RoundTrip++ }, true},
		"the clock a bit":   {func(f *Facts) { f.Skew += time.Second - 1 }, true},
		"the clock back":    {func(f *Facts) { f.Skew -= time.Second - 1 }, true},
		"the clock":         {func(f *Facts) { f.Skew += time.Second }, false},
		"the clock by more": {func(f *Facts) { f.Skew -= time.Second }, false},
		"the name":          {func(f *Facts) { f.Name = "m" }, false},
		"the run":           {func(f *Facts) { f.Run.Nonce++ }, false},
		"the start":         {func(f *Facts) { f.Run.Number++ }, false},
		"the ceilings":      {func(f *Facts) { f.Capability.Total.MilliCPUs++ }, false},
		"the speed":         {func(f *Facts) { f.Capability.CoreMFLOPS++ }, false},
		"the way down":      {func(f *Facts) { f.Capability.DownBps++ }, false},
		"the way up":        {func(f *Facts) { f.Capability.UpBps++ }, false},
		"the disk":          {func(f *Facts) { f.Capability.DiskBps++ }, false},
		"the system":        {func(f *Facts) { f.Capability.OS = "p" }, false},
		"the processor":     {func(f *Facts) { f.Capability.Arch = "b" }, false},
		"what it runs":      {func(f *Facts) { f.Capability.Kinds = nil }, false},
	} {
		changed := old
		c.change(&changed)
		if old.same(changed) != c.same || changed.same(old) != c.same {
			t.Errorf("%s: same %t, want %t", name, !c.same, c.same)
		}
	}
}

// Each reason has a label of its own, and a refusal says who refuses.
func TestTheWordsOfARefusal(t *testing.T) {
	for reason, want := range map[grid.Reason]string{
		grid.ReasonVersion: "version", grid.ReasonDomain: "domain", grid.ReasonNotMember: "not_member",
		grid.ReasonClock: "clock", grid.ReasonInvalid: "invalid", grid.ReasonBanned: "banned",
		grid.ReasonOlderRun: "older_run", 999: "reason_999",
	} {
		if got := reasonLabel(reason); got != want {
			t.Errorf("reason %d is %q, want %q", reason, got, want)
		}
	}
	by := refusedError{Site: "s", Reason: grid.ReasonDomain, ByPeer: true}
	of := refusedError{Site: "s", Reason: grid.ReasonDomain}
	if got := by.Error(); !strings.HasPrefix(got, "site s refuses this site: ") {
		t.Error(got)
	}
	if got := of.Error(); !strings.HasPrefix(got, "site s is refused: ") {
		t.Error(got)
	}
}

// full is a stream that takes nothing.
type full struct{ pieces }

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A Hello that is none is not written, and one that is not taken is no success.
func TestAHelloThatCannotBeWritten(t *testing.T) {
	to := &pieces{Reader: strings.NewReader("")}
	if err := writeHello(to, time.Second, protocol.Hello{}); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("an empty Hello: %v", err)
	}
	if err := writeHello(&full{}, time.Second, validHello()); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a stream that takes nothing: %v", err)
	}
	if err := writeHello(to, time.Second, validHello()); err != nil {
		t.Errorf("a stream that takes it: %v", err)
	}
}

// timeless is an error of the network that is no timeout.
type timeless struct{ error }

func (timeless) Timeout() bool   { return false }
func (timeless) Temporary() bool { return false }

func TestWhatATimeoutIs(t *testing.T) {
	for err, want := range map[error]bool{
		os.ErrDeadlineExceeded: true, io.EOF: false, timeless{io.EOF}: false,
	} {
		if got := isTimeout(fmt.Errorf("write: %w", err)); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}

// A run that is heard again is newer news than one that is not: it is forgotten later. Who is
// known drives nobody out.
func TestWhichRunIsForgotten(t *testing.T) {
	k := &runs{limit: 2, newest: make(map[grid.SiteID]heardRun)}
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	run := protocol.Run{Number: 3, Nonce: 1}
	k.learn("a", run, at(1))
	k.learn("b", run, at(2))
	for range 2 {
		if got := k.learn("a", run, at(3)); got.Compare(run) != 0 || len(k.newest) != 2 {
			t.Fatalf("the newest of a is %+v, of %d sites", got, len(k.newest))
		}
	}
	if got := k.learn("a", protocol.Run{Number: 3}, at(9)); got.Compare(run) != 0 {
		t.Errorf("an older run is the newest: %+v", got)
	}
	if got := k.learn("a", protocol.Run{Number: 4}, at(4)); got.Number != 4 {
		t.Errorf("a newer run is not the newest: %+v", got)
	}
	k.learn("c", run, at(5))
	if _, known := k.newest["b"]; known || len(k.newest) != 2 {
		t.Errorf("known are %+v, want not b, which was heard of before a", k.newest)
	}
	k.learn("d", run, at(6))
	if _, known := k.newest["a"]; known || len(k.newest) != 2 {
		t.Errorf("known are %+v, want c and d", k.newest)
	}
}

// A Hello of an earlier version names its start by the number alone.
func TestTheRunOfAHello(t *testing.T) {
	full := protocol.Run{Number: 1, Nonce: 9}
	if got := runOf(protocol.Hello{Incarnation: 1, Run: full}); got.Nonce != 9 {
		t.Errorf("run %+v, want it in full", got)
	}
	if got := runOf(protocol.Hello{Incarnation: 7}); got.Number != 7 || got.Nonce != 0 {
		t.Errorf("run %+v, want number 7", got)
	}
}

// This site's run is signed by its key; a clock before 1970 reads 1970.
func TestASitesOwnRun(t *testing.T) {
	for at, want := range map[int64]int64{-5: 0, 0: 0, 5: 5} {
		q := newQuiet(t, func(c *Config) {
			c.Now = func() time.Time { return time.UnixMilli(at) }
			c.Nonce, c.Line = 8, 9
		})
		run := q.run
		if run.Number != 3 || run.Nonce != 8 || run.Line != 9 || run.SinceMS != want ||
			!signedBy(q.key.GetPublic(), run) {
			t.Errorf("at %d ms: %+v, want it to begin at %d ms, signed", at, run, want)
		}
	}
	q := newQuiet(t, nil)
	q.key = mute{q.key}
	if err := q.sign(); err == nil {
		t.Error("a run that cannot be signed is no error")
	}
}

// mute is a key that cannot sign.
type mute struct{ crypto.PrivKey }

func (mute) Sign([]byte) ([]byte, error) { return nil, io.ErrClosedPipe }

// Word of a newer run is believed with a proof alone, also where both have the same number, and is
// told once. An older run proves nothing.
func TestProofsOfANewerRun(t *testing.T) {
	q := newQuiet(t, func(c *Config) { c.Incarnation, c.Nonce = 1, 5 })
	told := 0
	q.Mesh.handlers.OnNewerRun = func(protocol.Run) { told++ }
	signed := func(number, nonce uint64) protocol.Run {
		run := protocol.Run{Number: number, Nonce: nonce}
		signature, err := q.key.Sign(run.Signed())
		if err != nil {
			t.Fatal(err)
		}
		run.Signature = signature
		return run
	}
	q.told("peer", signed(1, 4))
	q.told("peer", signed(1, 5))
	if told != 0 || q.Count(wire.CountInvalid, "run") != 2 ||
		!q.lines.has("WARN", "has no proof", "peer=peer") {
		t.Error("an older run, or this one, proves that there is a newer one")
	}
	q.heedRefusal("peer", protocol.Hello{Refusal: grid.ReasonBanned, Newer: signed(1, 6)})
	if told != 0 {
		t.Error("another refusal is taken for word of a newer run")
	}
	q.heedRefusal("peer", protocol.Hello{Refusal: grid.ReasonOlderRun, Newer: signed(1, 6)})
	q.told("peer", signed(1, 6))
	if told != 1 || !q.lines.has("ERROR", "another machine runs with this site's identity",
		"start=1") {
		t.Errorf("a newer run with a proof is told %d times, want once, and logged", told)
	}
	other := newQuiet(t, nil) // nobody wants to know
	run := protocol.Run{Number: 9}
	run.Signature, _ = other.key.Sign(run.Signed())
	other.told("peer", run)
	if !other.lines.has("ERROR", "another machine") {
		t.Error("a newer run is not logged")
	}
}

// A refused older run is shown the newer one, and nobody else is.
func TestWhatARefusalShows(t *testing.T) {
	q := newQuiet(t, nil)
	newer, older := protocol.Run{Number: 5, Nonce: 1}, protocol.Run{Number: 4}
	if first := q.isOlder("s", newer); first || q.isOlder("s", newer) || !q.isOlder("s", older) {
		t.Error("want the older run alone to be older")
	}
	if got := q.refusal("s", grid.ReasonOlderRun, older); got.Newer.Number != 5 ||
		got.Refusal != grid.ReasonOlderRun {
		t.Errorf("the refusal of an older run shows %+v", got.Newer)
	}
	if got := q.refusal("s", grid.ReasonBanned, older); got.Newer.Number != 0 {
		t.Errorf("another refusal shows %+v", got.Newer)
	}
}
