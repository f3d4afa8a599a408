package protocol

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

func goldenCertificate() Certificate {
	return Certificate{
		Owner: "12D3KooWowner", Epoch: 3,
		Members: []CertMember{
			{
				ID: 7, Site: "12D3KooWowner",
			}, {ID: 8, Site: "12D3KooWother"}, {ID: 9, Site: "12D3KooWthird"},
		},
		Signature: bytes.Repeat([]byte{7}, SignatureBytes),
	}
}

func drawCertificate(t *rapid.T) Certificate {
	ids := rapid.SliceOfNDistinct(
		rapid.Uint64Range(1, math.MaxUint64-2), 1, maxCertMembers, rapid.ID[uint64],
	).Draw(t, "members")
	c := Certificate{Owner: drawSite(t), Epoch: rapid.Uint64Min(1).Draw(t, "epoch")}
	for _, id := range ids {
		c.Members = append(c.Members, CertMember{ID: id, Site: drawSite(t)})
	}
	return c
}

func signed(t fataler, c Certificate) Certificate {
	t.Helper()
	c, err := c.Sign(
		func(text []byte) ([]byte, error) { return ed25519.Sign(testKey(), text), nil },
	)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// byTestKey takes what the test's key has signed for the owner that is named, and nothing else.
func byTestKey(owner grid.SiteID) func(grid.SiteID, []byte, []byte) bool {
	key, _ := testKey().Public().(ed25519.PublicKey)
	return func(signer grid.SiteID, text, signature []byte) bool {
		return signer == owner && ed25519.Verify(key, text, signature)
	}
}

func TestCertificatesComeBackAndTheirSignaturesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := signed(t, drawCertificate(t))
		got, err := DecodeCertificate(want.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("certificate differs (-want +got):\n%s", diff)
		}
		if err := got.Verify(byTestKey(want.Owner)); err != nil {
			t.Fatal(err)
		}
		if err := got.Verify(byTestKey("somebody-else")); !errors.Is(err, errForged) {
			t.Fatalf("by another's key: %v", err)
		}
	})
}

// Each thing that a certificate says is signed.
func TestEachFieldOfACertificateIsSigned(t *testing.T) {
	holds := byTestKey("12D3KooWowner")
	for name, change := range map[string]func(*Certificate){
		"epoch":   func(c *Certificate) { c.Epoch++ },
		"member":  func(c *Certificate) { c.Members[2].ID++ },
		"site":    func(c *Certificate) { c.Members[1].Site = "12D3KooWevil" },
		"fewer":   func(c *Certificate) { c.Members = c.Members[:2] },
		"nothing": func(c *Certificate) { c.Epoch = 0 },
		"owner": func(c *Certificate) {
			c.Owner = "12D3KooWother"
			holds = byTestKey(c.Owner)
		},
	} {
		holds = byTestKey("12D3KooWowner")
		c := signed(t, goldenCertificate())
		if err := c.Verify(holds); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Verify(holds); !errors.Is(err, errForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The members may be named in any order; what is signed has them in one.
func TestMembersAreSignedInOrder(t *testing.T) {
	c := goldenCertificate()
	c.Members[0], c.Members[2] = c.Members[2], c.Members[0]
	before := cmp.Diff(c, goldenCertificate())
	if diff := cmp.Diff(signed(t, goldenCertificate()), signed(t, c)); diff != "" {
		t.Error(diff)
	}
	if before != cmp.Diff(c, goldenCertificate()) {
		t.Error("the order of what was handed in has changed")
	}
	failing := errors.New("no key")
	fails := func([]byte) ([]byte, error) { return nil, failing }
	if _, err := c.Sign(fails); !errors.Is(err, failing) {
		t.Errorf("without a key: %v", err)
	}
	short := func([]byte) ([]byte, error) { return []byte{1}, nil }
	if _, err := c.Sign(short); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("with a key of another kind: %v", err)
	}
	asked := false
	c.Epoch = 0
	_, err := c.Sign(
		func([]byte) ([]byte, error) { asked = true; return make([]byte, SignatureBytes), nil },
	)
	if !errors.Is(err, grid.ErrInvalid) || asked {
		t.Errorf("epoch 0: %v, signed: %t", err, asked)
	}
}

// A new golden file would mean that sites of two builds no longer believe each other's
// certificates.
func TestTheFormOfCertificatesDoesNotChange(t *testing.T) {
	raw := signed(t, goldenCertificate()).Encode()
	path := filepath.Join("testdata", "golden", "certificate.hex")
	if *update {
		writeHex(t, path, raw)
	}
	if want := readHex(t, path); !bytes.Equal(raw, want) {
		t.Errorf("encoding changed\n got %x\nwant %x", raw, want)
	}
}

// The limits on certificates, as in TestEachLimitIsExact.
func TestEachLimitOfCertificatesIsExact(t *testing.T) {
	with := func(change func(*Certificate)) Certificate {
		c := goldenCertificate()
		change(&c)
		return c
	}
	members := func(n int) Certificate {
		return with(func(c *Certificate) {
			c.Members = nil
			for i := range n {
				c.Members = append(c.Members, CertMember{ID: uint64(i + 1), Site: "s"})
			}
		})
	}
	signature := func(n int) Certificate {
		return with(func(c *Certificate) { c.Signature = make([]byte, n) })
	}
	third := func(id uint64) Certificate {
		return with(func(c *Certificate) { c.Members[2].ID = id })
	}
	for name, c := range map[string]struct{ last, first Certificate }{
		"members": {members(maxCertMembers), members(maxCertMembers + 1)},
		"nobody":  {members(1), members(0)},
		"epoch": {
			with(func(c *Certificate) { c.Epoch = 1 }), with(func(c *Certificate) { c.Epoch = 0 }),
		},
		"owner":           {members(1), with(func(c *Certificate) { c.Owner = "" })},
		"site":            {members(1), with(func(c *Certificate) { c.Members[1].Site = "a b" })},
		"number":          {members(1), with(func(c *Certificate) { c.Members[0].ID = 0 })},
		"last number":     {third(math.MaxUint64 - 2), third(math.MaxUint64 - 1)},
		"order":           {third(9), third(8)},
		"signature":       {signature(SignatureBytes), signature(SignatureBytes + 1)},
		"short signature": {signature(SignatureBytes), signature(SignatureBytes - 1)},
	} {
		if err := c.last.Validate(); err != nil || c.last.Encode() == nil ||
			c.last.signedBytes() == nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) || c.first.Encode() != nil {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// The longest certificate is read, and fits beside what is said.
func TestTheLongestCertificateIsRead(t *testing.T) {
	long := grid.SiteID(strings.Repeat("s", 128))
	c := Certificate{Owner: long, Epoch: math.MaxUint64, Signature: make([]byte, SignatureBytes)}
	for i := range uint64(maxCertMembers) {
		c.Members = append(c.Members, CertMember{ID: math.MaxUint64 - 9 + i, Site: long})
	}
	raw := c.Encode()
	if _, err := DecodeCertificate(raw); err != nil {
		t.Errorf("%d bytes: %v", len(raw), err)
	}
	if _, err := DecodeCertificate(make([]byte, maxCertificateBytes+1)); !errors.Is(
		err, ErrTooLarge,
	) {
		t.Error(err)
	}
	m := OnBehalf{Behalf{Owner: long, Term: 1, Certificate: raw}, Cancel{Job: "mfrggzdfmztwq2lk"}}
	if _, err := Encode(m); err != nil {
		t.Error(err)
	}
}

// One statement has one form, and one for another purpose is none.
func TestACertificateHasOneForm(t *testing.T) {
	c := goldenCertificate()
	raw := c.Encode()
	inside := func(change func(*wirepb.SignedCertificate), tail ...byte) []byte {
		var inner wirepb.SignedCertificate
		if err := proto.Unmarshal(c.signedBytes(), &inner); err != nil {
			t.Fatal(err)
		}
		change(&inner)
		text, err := proto.Marshal(&inner)
		if err != nil {
			t.Fatal(err)
		}
		out, err := proto.Marshal(
			&wirepb.Certificate{Signed: append(text, tail...), Signature: c.Signature},
		)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	none := func(*wirepb.SignedCertificate) {}
	for name, tt := range map[string]struct {
		raw  []byte
		want error
	}{
		"the one":          {inside(none), nil},
		"nothing":          {nil, grid.ErrInvalid},
		"noise":            {[]byte("GET /"), ErrMalformed},
		"cut off":          {raw[:len(raw)-1], ErrMalformed},
		"an unknown field": {append(bytes.Clone(raw), 0x98, 0x06, 0x01), ErrMalformed},
		"one inside":       {inside(none, 0x98, 0x06, 0x01), ErrMalformed},
		"noise inside":     {inside(none, 0xff), ErrMalformed},
		"twice":            {append(bytes.Clone(raw), raw...), ErrMalformed},
		"another purpose": {inside(func(s *wirepb.SignedCertificate) {
			s.Context = "mrs/1/member"
		}), ErrMalformed},
		"a member twice": {inside(func(s *wirepb.SignedCertificate) {
			s.Members[1].Id = s.Members[0].Id
		}), grid.ErrInvalid},
	} {
		if _, err := DecodeCertificate(tt.raw); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the same key signs for other purposes is no certificate, whatever it says.
func TestSignaturesOfOtherPurposesAreNone(t *testing.T) {
	e := testEnvelope()
	e.Payload = goldenCertificate().signedBytes()
	for name, text := range map[string][]byte{
		"envelope": e.SignedBytes(), "run": Run{Number: 1}.Signed(),
		"record": MemberRecord{
			Domain: "lab", Site: "s", Kind: MemberAdmit, SerialMS: 1, Note: "x",
		}.SignedBytes(),
	} {
		if len(text) == 0 || bytes.HasPrefix(text, goldenCertificate().signedBytes()[:20]) {
			t.Errorf("%s begins as a certificate: %x", name, text)
		}
	}
}

func TestWhoIsNamed(t *testing.T) {
	c := goldenCertificate()
	c.Members = append(c.Members, CertMember{ID: 10, Site: "12D3KooWowner"})
	want := []grid.SiteID{"12D3KooWowner", "12D3KooWother", "12D3KooWthird"}
	if diff := cmp.Diff(want, c.Sites()); diff != "" {
		t.Error(diff)
	}
	for _, site := range want {
		if !c.Names(site) {
			t.Errorf("%s is not named", site)
		}
	}
	if c.Names("12D3KooWnobody") || c.Names("") {
		t.Error("nobody is named")
	}
}

func FuzzDecodeCertificate(f *testing.F) {
	f.Add(goldenCertificate().Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := DecodeCertificate(raw)
		if err == nil && !bytes.Equal(c.Encode(), raw) {
			t.Errorf("%x is read as %+v", raw, c)
		}
	})
}
