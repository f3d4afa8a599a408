package p2p

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

func addrAt(port int) []ma.Multiaddr {
	return parseAddrs([]string{fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", port)})
}

// The file is written when something changed, and only then; its peers stand in order.
func TestTheBookIsWrittenWhenItChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.json")
	written := func() bool {
		t.Helper()
		_, err := os.Stat(file)
		if err == nil {
			err = os.Remove(file)
		} else if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	b, err := openBook(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := []peer.ID{somebody(t), somebody(t), somebody(t), somebody(t), somebody(t), somebody(t)}
	slices.SortFunc(ids, func(x, y peer.ID) int { return strings.Compare(x.String(), y.String()) })
	put := func(i int) func() {
		return func() { b.put(ids[i], addrAt(4600+i), time.UnixMilli(int64(1000+i))) }
	}
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"an entry", put(0), true},
		{"nothing since", func() {}, false},
		{"no address", func() { b.put(ids[1], nil, time.UnixMilli(1)) }, false},
		{"somebody unknown is removed", func() { b.remove(ids[1]) }, false},
		{"an entry is removed", func() { b.remove(ids[0]) }, true},
	} {
		step.do()
		if err = b.save(); err != nil {
			t.Fatal(err)
		}
		if got := written(); got != step.want {
			t.Errorf("%s: written %t, want %t", step.name, got, step.want)
		}
	}
	if b.has(ids[0]) || b.has(ids[1]) {
		t.Error("who was removed, or has no address, is remembered")
	}

	for _, i := range []int{3, 0, 5, 2, 4, 1} {
		put(i)()
	}
	if err = b.save(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var stored bookFile
	if err = json.Unmarshal(text, &stored); err != nil || stored.Version != 1 ||
		len(stored.Peers) != 6 {
		t.Fatalf("version %d with %d peers, %v; want version 1 with six",
			stored.Version, len(stored.Peers), err)
	}
	for i, p := range stored.Peers {
		if p.ID != ids[i].String() || p.SeenMS != int64(1000+i) ||
			!slices.Equal(p.Addrs, textsOf(addrAt(4600+i))) {
			t.Errorf("peer %d is %+v", i, p)
		}
	}
	again, err := openBook(file)
	if err != nil || len(again.entries) != 6 {
		t.Fatalf("read %d entries, %v", len(again.entries), err)
	}
	if !written() || again.save() != nil || written() {
		t.Error("what was only read is written")
	}
}

// A book without a file lasts as long as the agent.
func TestABookWithoutAFile(t *testing.T) {
	b, err := openBook("")
	if err != nil {
		t.Fatal(err)
	}
	b.put(newID(1), addrAt(1), time.UnixMilli(1))
	if err = b.save(); err != nil || !b.has(newID(1)) {
		t.Errorf("save() = %v, want nothing done and all remembered", err)
	}
}

// Of each peer eight addresses are kept, and of peers 1,024: the one not seen for longest goes, of
// several the first by its ID.
func TestTheBookIsBounded(t *testing.T) {
	b, err := openBook("")
	if err != nil {
		t.Fatal(err)
	}
	var addrs []ma.Multiaddr
	for i := range maxRememberedAddr + 1 {
		addrs = append(addrs, addrAt(1+i)...)
	}
	b.put(newID(1), addrs[:maxRememberedAddr], time.UnixMilli(1))
	if got := len(b.addrs(newID(1))); got != maxRememberedAddr {
		t.Errorf("%d addresses, want %d", got, maxRememberedAddr)
	}
	b.put(newID(1), addrs, time.UnixMilli(1))
	if got := b.addrs(newID(1)); !slices.EqualFunc(got, addrs[:maxRememberedAddr],
		ma.Multiaddr.Equal) {
		t.Errorf("addresses %v, want the first ones", got)
	}

	b, err = openBook("")
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxRemembered {
		seen := int64(100)
		if i == 500 || i == 600 || i == 700 {
			seen = 50
		}
		b.put(newID(i), addrAt(1), time.UnixMilli(seen))
	}
	if got := len(b.entries); got != maxRemembered {
		t.Fatalf("%d peers, want %d", got, maxRemembered)
	}
	for n, gone := range []int{500, 600, 700} {
		b.put(newID(5000+n), addrAt(1), time.UnixMilli(200))
		if b.has(newID(gone)) || len(b.entries) != maxRemembered {
			t.Errorf("peer %d stays, want that of those not seen for longest the first goes", gone)
		}
	}
	b.put(newID(9000), addrAt(1), time.UnixMilli(10))
	if b.has(newID(9000)) || len(b.entries) != maxRemembered {
		t.Error("a peer that was seen before all others drives one of them out")
	}
}

// Those seen last are dialled first, of several the first by its ID.
func TestTheOrderOfTheBook(t *testing.T) {
	b, err := openBook("")
	if err != nil {
		t.Fatal(err)
	}
	for i, seen := range []int64{10, 30, 20, 30} {
		b.put(newID(i), addrAt(1), time.UnixMilli(seen))
	}
	if got, want := b.ids(), []peer.ID{newID(1), newID(3), newID(2), newID(0)}; !slices.Equal(got,
		want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// What is wrong in the file is left out, and a file that cannot be read or written is said.
func TestABookThatIsDamaged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "peers.json")
	good := somebody(t)
	text := fmt.Sprintf(`{"version":1,"peers":[{"id":"nobody","addrs":["/ip4/10.0.0.1/tcp/1"]},
		{"id":%q,"addrs":["rubbish","/ip4/10.0.0.1/tcp/2"],"seen_ms":7}]}`, good.String())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := openBook(file)
	if err != nil || len(b.entries) != 1 {
		t.Fatalf("read %d entries, %v; want the one that makes sense", len(b.entries), err)
	}
	if got := b.addrs(good); !slices.EqualFunc(got, addrAt(2), ma.Multiaddr.Equal) {
		t.Errorf("addresses %v", got)
	}
	if b, err = openBook(filepath.Join(dir, "none")); err != nil || len(b.entries) != 0 {
		t.Errorf("a file that is not there: %v", err)
	}
	if b, err = openBook(filepath.Join(file, "below")); err == nil {
		t.Error("a file below a file is read")
	}
	b.put(good, addrAt(1), time.UnixMilli(1))
	if err = b.save(); err == nil {
		t.Error("a file below a file is written")
	}
}

// The mesh writes the book two seconds after it changed, and at its end, and says it where that
// fails.
func TestTheBookIsKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "peers.json")
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		var err error
		if q.book, err = openBook(file); err != nil {
			t.Fatal(err)
		}
		q.wg.Go(func() { q.keepBook(t.Context()) })
		for i := range 3 {
			q.book.put(somebody(t), addrAt(1+i), time.Now())
			time.Sleep(2*time.Second - 1)
			synctest.Wait()
			if b, err := openBook(file); err != nil || len(b.entries) != i {
				t.Errorf("before its time: %d entries, %v", len(b.entries), err)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if b, err := openBook(file); err != nil || len(b.entries) != i+1 {
				t.Errorf("after two seconds: %d entries, %v, want %d", len(b.entries), err, i+1)
			}
		}
		if q.lines.has("WARN") {
			t.Error("a warning although all is well")
		}
		q.book.put(somebody(t), addrAt(9), time.Now())
		t.Cleanup(func() { // the context has ended
			q.wg.Wait()
			if b, err := openBook(file); err != nil || len(b.entries) != 4 {
				t.Errorf("at the end: %d entries, %v, want 4", len(b.entries), err)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		q.book.file = filepath.Join(file, "below")
		q.book.put(somebody(t), addrAt(1), time.Now())
		q.wg.Go(func() { q.keepBook(t.Context()) })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !q.lines.has("WARN", "addresses of members are not saved") {
			t.Error("nothing says that the addresses are not saved")
		}
	})
}

// A mesh whose addresses cannot be read starts without them, and says so.
func TestAMeshWithADamagedBook(t *testing.T) {
	cfg := testConfig(t)
	if err := os.WriteFile(cfg.AddressFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &lines{}
	rec := &recorder{}
	m, err := New(t.Context(), cfg, rec.handlers(), said.logger())
	if err != nil {
		t.Fatal(err)
	}
	if !said.has("WARN", "addresses of members are not usable") {
		t.Error("nothing says that the addresses are lost")
	}
	if err = m.Close(); err != nil {
		t.Error(err)
	}
}
