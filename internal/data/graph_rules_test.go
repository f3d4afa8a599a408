package data

import (
	"crypto/sha256"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/boxo/ipld/unixfs/hamt"
	pb "github.com/ipfs/boxo/ipld/unixfs/pb"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/multiformats/go-multihash"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// hashed is a CID of some content with a codec and a hash.
func hashed(t *testing.T, codec, hash uint64, length int) cid.Cid {
	t.Helper()
	sum := sha256.Sum256([]byte("content"))
	h, err := multihash.Encode(sum[:length], hash)
	if err != nil {
		t.Fatal(err)
	}
	return cid.NewCidV1(codec, h)
}

// Only whole sha2-256 of raw and dag-pb blocks is carried.
func TestDigests(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("content"))
	for name, c := range map[string]cid.Cid{
		"raw":    hashed(t, cid.Raw, multihash.SHA2_256, sha256.Size),
		"dag-pb": hashed(t, cid.DagProtobuf, multihash.SHA2_256, sha256.Size),
	} {
		if d, err := digestOf(c); err != nil || d != sum {
			t.Errorf("%s: %x, %v; want %x", name, d, err, sum)
		}
	}
	for name, c := range map[string]cid.Cid{
		"none":         cid.Undef,
		"other codec":  hashed(t, cid.DagCBOR, multihash.SHA2_256, sha256.Size),
		"other hash":   hashed(t, cid.Raw, multihash.SHA3_256, sha256.Size),
		"cut short":    hashed(t, cid.Raw, multihash.SHA2_256, sha256.Size-1),
		"other, short": hashed(t, cid.Raw, multihash.SHA3_256, sha256.Size-1),
	} {
		if d, err := digestOf(c); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %x, %v; want ErrUnsupported", name, d, err)
		}
	}
}

// A CID has one text: version 1 in base32.
func TestTextsOfCIDs(t *testing.T) {
	t.Parallel()
	good := hashed(t, cid.DagProtobuf, multihash.SHA2_256, sha256.Size)
	if got, err := parseCID(gridCID(good)); err != nil || !got.Equals(good) {
		t.Errorf("%s is read as %s, %v", good, got, err)
	}
	base36, err := good.StringOfBase('k')
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":            "",
		"characters":         "b-",
		"no cid":             "bhello",
		"base36":             base36,
		"version 0":          cid.NewCidV0(good.Hash()).String(),
		"of another hash":    hashed(t, cid.Raw, multihash.SHA3_256, sha256.Size).String(),
		"of another content": hashed(t, cid.DagCBOR, multihash.SHA2_256, sha256.Size).String(),
	} {
		if got, err := parseCID(grid.CID(text)); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %q is read as %s, %v; want ErrUnsupported", name, text, got, err)
		}
	}
	if got := gridCID(cid.NewCidV0(good.Hash())); got != gridCID(good) {
		t.Errorf("version 0 is called %s, want %s", got, gridCID(good))
	}
}

// pbNode is a dag-pb block with this content and these links.
func pbNode(t testing.TB, content []byte, links ...*ipld.Link) *merkledag.ProtoNode {
	t.Helper()
	n := merkledag.NodeWithData(content)
	if err := n.SetCidBuilder(cidBuilder()); err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if err := n.AddRawLink(l.Name, l); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// shardContent is the content of a part of a split directory.
func shardContent(t testing.TB, fanout uint64) []byte {
	t.Helper()
	content, err := unixfs.HAMTShardData(nil, fanout, hamt.HashMurmur3)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A split directory has from 2 to 1024 places, whose numbers in hex stand before its names.
func TestFanOutOfSplitDirectories(t *testing.T) {
	t.Parallel()
	for fanout, prefix := range map[uint64]int{2: 1, 16: 1, 17: 2, 256: 2, 257: 3, 1024: 3} {
		n := pbNode(t, shardContent(t, fanout))
		if got, err := decode(n.Cid(), n.RawData()); err != nil || got.kind != kindShard ||
			got.prefix != prefix {
			t.Errorf("fan-out %d: %+v, %v; want a shard with prefixes of %d", fanout, got, err, prefix)
		}
	}
	for _, fanout := range []uint64{0, 1, 1025, math.MaxUint64} {
		n := pbNode(t, shardContent(t, fanout))
		if got, err := decode(n.Cid(), n.RawData()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("fan-out %d: %+v, %v; want ErrUnsupported", fanout, got, err)
		}
	}
}

// UnixFS says of which kind a block is; of a mode the owner's x bit counts alone.
func TestKindsOfBlocks(t *testing.T) {
	t.Parallel()
	of := func(kind pb.Data_DataType, mode uint32) []byte {
		n := unixfs.NewFSNode(kind)
		n.SetData([]byte("hello"))
		n.SetModeFromUnixPermissions(mode)
		content, err := n.GetBytes()
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for _, tt := range []struct {
		content    []byte
		kind       nodeKind
		executable bool
	}{
		{of(unixfs.TFile, 0), kindFile, false},
		{of(unixfs.TRaw, 0), kindFile, false},
		{of(unixfs.TFile, 0o677), kindFile, false},
		{of(unixfs.TFile, 0o100), kindFile, true},
		{of(unixfs.TRaw, 0o100), kindFile, true},
		{unixfs.FolderPBData(), kindDir, false},
	} {
		n := pbNode(t, tt.content)
		got, err := decode(n.Cid(), n.RawData())
		if err != nil || got.kind != tt.kind || got.executable != tt.executable {
			t.Errorf("%x: %+v, %v; want kind %d, executable %t", tt.content, got, err, tt.kind,
				tt.executable)
		}
		if tt.kind == kindFile && (string(got.data) != "hello" || got.bytes != 5) {
			t.Errorf("%x: %d bytes %q", tt.content, got.bytes, got.data)
		}
	}
	leaf := hashed(t, cid.Raw, multihash.SHA2_256, sha256.Size)
	if got, err := decode(leaf, []byte("content")); err != nil || got.kind != kindLeaf ||
		got.bytes != 7 || string(got.data) != "content" {
		t.Errorf("a leaf: %+v, %v", got, err)
	}
	odd := &ipld.Link{Name: "x", Cid: hashed(t, cid.Raw, multihash.SHA3_256, sha256.Size)}
	for name, n := range map[string]*merkledag.ProtoNode{
		"no UnixFS":     pbNode(t, []byte("hello")),
		"metadata":      pbNode(t, of(unixfs.TMetadata, 0)),
		"symbolic link": pbNode(t, of(unixfs.TSymlink, 0)),
		"another hash":  pbNode(t, unixfs.FolderPBData(), odd),
	} {
		if got, err := decode(n.Cid(), n.RawData()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %+v, %v; want ErrUnsupported", name, got, err)
		}
	}
	dag := hashed(t, cid.DagProtobuf, multihash.SHA2_256, sha256.Size)
	if got, err := decode(dag, []byte("hello")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no dag-pb: %+v, %v; want ErrUnsupported", got, err)
	}
}

// What peers claim is bounded, so that sums of it do not overflow, and each block that is
// linked twice counts once.
func TestClaimedSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64]int64{
		0: 0, 7: 7, maxClaim: maxClaim, maxClaim + 1: maxClaim, math.MaxUint64: maxClaim,
	} {
		if got := clampSize(n); got != want {
			t.Errorf("%d is taken for %d, want %d", n, got, want)
		}
	}
	if got := addSizes(3, 4); got != 7 {
		t.Errorf("3 + 4 = %d", got)
	}
	if got := addSizes(maxClaim, 1); got != maxClaim {
		t.Errorf("the largest claim and 1 are %d", got)
	}
	a := hashed(t, cid.Raw, multihash.SHA2_256, sha256.Size)
	b := hashed(t, cid.DagProtobuf, multihash.SHA2_256, sha256.Size)
	links := []*ipld.Link{{Cid: a, Size: 10}, {Cid: b, Size: 100}, {Cid: a, Size: 10}}
	if got := claimedBytes(1000, links); got != 1110 {
		t.Errorf("1000 bytes with links to 10, 100 and the first 10 claim %d, want 1110", got)
	}
	if got := claimedBytes(1, []*ipld.Link{{Cid: a, Size: math.MaxUint64}}); got != maxClaim {
		t.Errorf("a claim without end is %d, want %d", got, int64(maxClaim))
	}
}

// A name is one element of a path on every system, of 255 bytes at most.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "...", ".a", " ", strings.Repeat("n", maxNameBytes), "😀"} {
		if err := checkName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]error{
		"": ErrUnsupported, ".": ErrUnsupported, "..": ErrUnsupported, "a/b": ErrUnsupported,
		"a\x00": ErrUnsupported, "a\xff": ErrUnsupported,
		strings.Repeat("n", maxNameBytes+1): ErrTooLarge,
	} {
		if err := checkName(name); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", name, err, want)
		}
	}
}
