package data

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// 512 KiB in 20 ms say something of a rate, less of either does not.
func TestWhatTellsARate(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		bytes int64
		span  time.Duration
		bps   float64
	}{
		{512 << 10, 20 * time.Millisecond, (512 << 10) * 8 * 50},
		{512<<10 - 1, 20 * time.Millisecond, 0},
		{512 << 10, 20*time.Millisecond - 1, 0},
		{1 << 20, 2 * time.Second, 4 << 20},
	} {
		f := flow{bytes: tt.bytes, first: at, last: at.Add(tt.span)}
		if bps, ok := f.rate(); ok != (tt.bps > 0) || math.Abs(bps-tt.bps) > tt.bps/1e9 {
			t.Errorf("%d bytes in %s: %f, %t; want %f", tt.bytes, tt.span, bps, ok, tt.bps)
		}
	}
}

// A long transfer is told every ten seconds, each part for itself and to the byte.
func TestPartsOfALongTransfer(t *testing.T) {
	t.Parallel()
	p, at := somePeer(t), time.Unix(1_800_000_000, 0)
	var told []float64
	m := meter{flows: make(map[peer.ID]*flow), done: func(who peer.ID, bps float64) {
		if who != p {
			t.Errorf("told of %s", who)
		}
		told = append(told, bps)
	}}
	end := m.begin([]peer.ID{p})
	for _, after := range []time.Duration{0, meterWindow - 1} {
		if m.arrived(p, 1<<20, at.Add(after)); len(told) != 0 {
			t.Errorf("told %v after %s", told, after)
		}
	}
	m.arrived(p, 0, at.Add(meterWindow)) // no blocks in it
	m.arrived(p, 1<<20, at.Add(meterWindow))
	m.arrived(p, 1<<20, at.Add(meterWindow+time.Second))
	m.arrived(p, 0, at.Add(time.Hour))
	end()
	if len(told) != 2 || math.Abs(told[0]-0.8*(2<<20)) > 1e-3 || told[1] != 8<<20 {
		t.Errorf("told %v, want 2 MiB in ten seconds and one in a second", told)
	}
	if len(m.flows) != 0 {
		t.Errorf("%d flows are kept", len(m.flows))
	}
}

// A measurement counts for a day, and one from the future for an hour.
func TestAgesOfMeasurements(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		age     time.Duration
		current bool
		mixed   float64 // 10 with 40
	}{
		{0, true, 20},
		{time.Hour - 1, true, 20},
		{time.Hour, true, 40},
		{24*time.Hour - 1, true, 40},
		{24 * time.Hour, false, 40},
		{1 - time.Hour, true, 20},
		{-time.Hour, false, 40},
	} {
		m := measurement{Bps: 10, At: now.Add(-tt.age)}
		if got := m.current(now); got != tt.current {
			t.Errorf("%s old: counts: %t", tt.age, got)
		}
		if got := m.mixed(40, now); got.Bps != tt.mixed || !got.At.Equal(now) {
			t.Errorf("%s old, mixed: %+v, want %f now", tt.age, got, tt.mixed)
		}
	}
	if (measurement{At: now}).current(now) {
		t.Error("no measurement counts")
	}
}

// From 1 bit/s to 1 Tbit/s a rate makes sense, 0 is none.
func TestSaneRates(t *testing.T) {
	t.Parallel()
	for bps, want := range map[float64]bool{
		0: true, 1: true, 1e12: true, 0.999: false, 1.001e12: false, -1: false, math.Inf(1): false,
	} {
		if got := sane(bps); got != want {
			t.Errorf("%g bit/s make sense: %t", bps, got)
		}
	}
	for _, tt := range []struct {
		a, b int64
		want bool
	}{
		{100, 95, false},
		{95, 100, false},
		{100, 94, true},
		{94, 100, true},
		{0, 0, false},
		{0, 1, true},
	} {
		if got := differ(tt.a, tt.b); got != tt.want {
			t.Errorf("%d and %d differ: %t", tt.a, tt.b, got)
		}
	}
}

// Who listens hears of a change by more than a twentieth, in either direction, once.
func TestNewsOfLinks(t *testing.T) {
	t.Parallel()
	now, p := time.Unix(1_800_000_000, 0), somePeer(t)
	var heard []Link
	l, err := openLinks(t.TempDir(), func() time.Time { return now }, func(s grid.SiteID, k Link) {
		if s != siteOf(p) {
			t.Errorf("told of %s", s)
		}
		heard = append(heard, k)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		note func(peer.ID, float64)
		bps  float64
		want Link // zero: nothing is told
	}{
		{l.measured, 100, Link{DownBps: 100}},
		{l.measured, 95, Link{}},
		{l.reported, 50, Link{DownBps: 95, UpBps: 50}},
		{l.measured, 100, Link{}}, // from 95, of which was told
		{l.reported, 40, Link{DownBps: 100, UpBps: 40}},
		{l.reported, 40, Link{}},
		{l.measured, 0, Link{}},
		{l.reported, 2e12, Link{}},
	} {
		heard = nil
		now = now.Add(linkFresh) // so that nothing is mixed
		step.note(p, step.bps)
		if told := step.want != (Link{}); told != (len(heard) == 1) || told && heard[0] != step.want {
			t.Errorf("%f: told %v, want %v", step.bps, heard, step.want)
		}
	}
	if got := l.get(somePeer(t)); got != (Link{}) {
		t.Errorf("an unknown peer's link is %+v", got)
	}
	quiet, err := openLinks(t.TempDir(), func() time.Time { return now }, nil)
	if err != nil {
		t.Fatal(err)
	}
	quiet.measured(p, 100) // nobody listens
	now = now.Add(linkKept)
	quiet.expire()
}

// Of too many peers the one is forgotten of whom nothing was measured for the longest time,
// in either direction.
func TestRoomForLinks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	l, _ := bookOfLinks(t, t.TempDir(), &now)
	var peers []peer.ID
	for i := range linkPeers + 2 {
		peers = append(peers, peer.ID(fmt.Sprintf("peer %04d", i)))
	}
	for _, p := range peers[:linkPeers] {
		l.measured(p, 1e6)
		now = now.Add(time.Second)
	}
	if len(l.known) != linkPeers {
		t.Errorf("%d links are remembered, want %d", len(l.known), linkPeers)
	}
	l.reported(peers[0], 1e6)
	for i, gone := range []int{1, 2} {
		l.measured(peers[linkPeers+i], 1e6)
		if len(l.known) != linkPeers || l.known[peers[gone]] != nil {
			t.Errorf("%d links are remembered, peer %d among them", len(l.known), gone)
		}
	}
	if l.known[peers[0]] == nil {
		t.Error("a peer is forgotten that reported lately")
	}
	same, _ := bookOfLinks(t, t.TempDir(), &now)
	for _, p := range peers[:linkPeers+1] {
		same.measured(p, 1e6) // all at the same time
	}
	if same.known[peers[0]] != nil || same.known[peers[1]] == nil {
		t.Error("of those measured at the same time the first by name is not forgotten")
	}
}

// What became too old is told and forgotten; a direction that counts keeps the other's peer.
func TestLinksExpire(t *testing.T) {
	t.Parallel()
	now, p, q := time.Unix(1_800_000_000, 0), somePeer(t), somePeer(t)
	l, told := bookOfLinks(t, t.TempDir(), &now)
	l.measured(p, 100)
	l.measured(q, 300)
	now = now.Add(time.Hour)
	l.reported(p, 200)
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	clear(told)
	if l.expire(); len(told) != 0 || len(l.known) != 2 {
		t.Errorf("nothing is too old, and told %v, %d known", told, len(l.known))
	}
	now = now.Add(linkKept - time.Hour)
	l.expire()
	if len(told) != 2 || told[siteOf(p)] != (Link{UpBps: 200}) || told[siteOf(q)] != (Link{}) ||
		l.known[p] == nil || l.known[q] != nil {
		t.Errorf("one direction is too old: told %v, known %v", told, l.known)
	}
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(l.path); err != nil || strings.Contains(string(text), q.String()) ||
		!strings.Contains(string(text), p.String()) {
		t.Errorf("saved %s, %v", text, err)
	}
	clear(told)
	if l.expire(); len(told) != 0 {
		t.Errorf("told again: %v", told)
	}
}

// What did not change is not written again.
func TestLinksAreSavedWhenTheyChange(t *testing.T) {
	t.Parallel()
	now, p := time.Unix(1_800_000_000, 0), somePeer(t)
	l, _ := bookOfLinks(t, t.TempDir(), &now)
	saved := func() bool {
		t.Helper()
		if err := l.save(); err != nil {
			t.Fatal(err)
		}
		err := os.Remove(l.path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	if saved() {
		t.Error("nothing was written")
	}
	l.measured(p, 100)
	if !saved() {
		t.Error("a measurement was not written")
	}
	if saved() {
		t.Error("it was written twice")
	}
	now = now.Add(linkKept)
	if l.expire(); !saved() {
		t.Error("what was forgotten was not written")
	}
}

// A file that makes no sense is reported, and replaced: the links start anew.
func TestFilesOfLinks(t *testing.T) {
	t.Parallel()
	now, p := time.Unix(1_800_000_000, 0), somePeer(t)
	link := func(p string, down, up float64) string {
		text, err := json.Marshal(map[string]any{p: map[string]any{
			"down": measurement{Bps: down, At: now}, "up": measurement{Bps: up, At: now},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := link(p.String(), 5, 7)
	for name, tt := range map[string]struct {
		text  string
		known int
		fails bool
	}{
		"whole":             {good, 1, false},
		"as long as it may": {good + strings.Repeat(" ", linkMaxFile-len(good)), 1, false},
		"a byte longer":     {good + strings.Repeat(" ", linkMaxFile-len(good)+1), 0, true},
		"cut short":         {good[:len(good)-1], 0, true},
		"nothing known":     {`{"` + p.String() + `":null}`, 0, false},
		"nonsense down":     {link(p.String(), -5, 7), 0, false},
		"nonsense up":       {link(p.String(), 5, 2e12), 0, false},
		"no peer":           {link("", 5, 7), 0, true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, linkFile), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := openLinks(dir, func() time.Time { return now }, nil)
		if (err != nil) != tt.fails || len(l.known) != tt.known {
			t.Errorf("%s: %d known, %v", name, len(l.known), err)
		}
		if want := (Link{DownBps: 5, UpBps: 7}); tt.known == 1 && l.get(p) != want {
			t.Errorf("%s: %+v, want %+v", name, l.get(p), want)
		}
		if l.measured(p, 9); l.get(p).DownBps == 0 {
			t.Errorf("%s: nothing can be noted", name)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, linkFile), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := openLinks(dir, time.Now, nil)
	if err == nil || len(l.known) != 0 {
		t.Errorf("a directory is read as %v", l.known)
	}
	if l.measured(p, 9); l.save() == nil {
		t.Error("a file in place of a directory was saved")
	}
	if _, err := readSmall(filepath.Join(dir, "none"), 1); !os.IsNotExist(err) {
		t.Errorf("no file: %v, want %v", err, fs.ErrNotExist)
	}
}
