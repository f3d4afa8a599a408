package data

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/multiformats/go-multihash"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// digest is a block's sha2-256.
type digest [sha256.Size]byte

// cidBuilder makes the names of all blocks that this package builds.
func cidBuilder() cid.Builder {
	return cid.V1Builder{Codec: cid.DagProtobuf, MhType: multihash.SHA2_256}
}

// digestOf is the block's digest, or an error for a CID that is not of the kind
// this mesh carries: sha2-256 of a raw or a dag-pb block.
func digestOf(c cid.Cid) (digest, error) {
	var d digest
	if !c.Defined() {
		return d, fmt.Errorf("%w: empty cid", ErrUnsupported)
	}
	p := c.Prefix()
	if p.Codec != cid.Raw && p.Codec != cid.DagProtobuf {
		return d, fmt.Errorf("%w: cid %s: codec %#x is neither raw nor dag-pb",
			ErrUnsupported, c, p.Codec)
	}
	if p.MhType != multihash.SHA2_256 || p.MhLength != sha256.Size {
		return d, fmt.Errorf("%w: cid %s: its hash is not sha2-256", ErrUnsupported, c)
	}
	hash := c.Hash()
	copy(d[:], hash[len(hash)-sha256.Size:])
	return d, nil
}

// parseCID reads the mesh's text form of a CID.
func parseCID(c grid.CID) (cid.Cid, error) {
	if err := c.Validate(); err != nil {
		return cid.Undef, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	out, err := cid.Decode(string(c))
	if err != nil {
		return cid.Undef, fmt.Errorf("%w: cid %q: %w", ErrUnsupported, string(c), err)
	}
	if gridCID(out) != c {
		return cid.Undef, fmt.Errorf("%w: cid %q: want the base32 text of a version 1 cid",
			ErrUnsupported, string(c))
	}
	_, err = digestOf(out)
	return out, err
}

// gridCID is the one text form of a CID: version 1, base32.
func gridCID(c cid.Cid) grid.CID {
	return grid.CID(cid.NewCidV1(c.Type(), c.Hash()).String())
}

// nodeKind says what a block is in UnixFS.
type nodeKind uint8

const (
	kindLeaf  nodeKind = iota + 1 // content, no links
	kindFile                      // content and links to more of it
	kindDir                       // a directory, links are entries
	kindShard                     // a part of a directory too large for one block
)

// node is a decoded block.
type node struct {
	kind   nodeKind
	data   []byte       // content of a leaf or a file
	links  []*ipld.Link // children
	bytes  int64        // content below a leaf or a file, as it claims
	prefix int          // of a shard: characters before the names of its links

	executable bool // a file that its owner may run
}

// ownerMayRun is the one bit of a file's mode that counts.
const ownerMayRun = 0o100

// decode reads a block as UnixFS. Symbolic links are refused: a job has files and
// directories. Of a file's metadata the owner's x bit counts, nothing else.
func decode(c cid.Cid, data []byte) (node, error) {
	if c.Type() == cid.Raw {
		return node{kind: kindLeaf, data: data, bytes: int64(len(data))}, nil
	}
	pb, err := merkledag.DecodeProtobuf(data)
	if err != nil {
		return node{}, fmt.Errorf("%w: block %s is no dag-pb: %w", ErrUnsupported, c, err)
	}
	fs, err := unixfs.FSNodeFromBytes(pb.Data())
	if err != nil {
		return node{}, fmt.Errorf("%w: block %s is no UnixFS: %w", ErrUnsupported, c, err)
	}
	n := node{data: fs.Data(), links: pb.Links(), bytes: clampSize(fs.FileSize())}
	switch fs.Type() {
	case unixfs.TFile, unixfs.TRaw:
		n.kind, n.executable = kindFile, fs.Mode()&ownerMayRun != 0
	case unixfs.TDirectory:
		n.kind = kindDir
	case unixfs.THAMTShard:
		n.kind = kindShard
		if f := fs.Fanout(); f < 2 || f > 1024 {
			return node{}, fmt.Errorf("%w: block %s: directory of fan-out %d", ErrUnsupported, c, f)
		}
		n.prefix = len(fmt.Sprintf("%X", fs.Fanout()-1))
	default:
		return node{}, fmt.Errorf("%w: block %s is a UnixFS %s, want a file or a directory",
			ErrUnsupported, c, strings.ToLower(fs.Type().String()))
	}
	for _, l := range n.links {
		if _, err := digestOf(l.Cid); err != nil {
			return node{}, fmt.Errorf("block %s: %w", c, err)
		}
	}
	return n, nil
}

// maxClaim bounds sizes that peers claim, so that sums do not overflow.
const maxClaim = 1 << 53

func clampSize(n uint64) int64 {
	if n > maxClaim {
		return maxClaim
	}
	return int64(n)
}

// addSizes adds two sizes of at most maxClaim.
func addSizes(a, b int64) int64 { return min(a+b, maxClaim) }

// claimedBytes is the size of the whole graph below a block as its links claim
// it, each distinct child counted once.
func claimedBytes(blockBytes int, links []*ipld.Link) int64 {
	total := int64(blockBytes)
	seen := make(map[cid.Cid]bool, len(links))
	for _, l := range links {
		if !seen[l.Cid] {
			seen[l.Cid] = true
			total = addSizes(total, clampSize(min(l.Size, math.MaxInt64)))
		}
	}
	return total
}

// checkName refuses what cannot be one element of a path everywhere.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("%w: name %q is not allowed", ErrUnsupported, name)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%w: name %.32q... is longer than %d bytes", ErrTooLarge, name, maxNameBytes)
	case strings.ContainsAny(name, "/\x00"):
		return fmt.Errorf("%w: name %q holds a slash or a zero byte", ErrUnsupported, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: name %q is not UTF-8", ErrUnsupported, name)
	default:
		return nil
	}
}
