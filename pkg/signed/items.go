package signed

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// itemText stands in a leaf of the tree: all that the item puts into its task.
func itemText(item grid.Item) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "mrs job item 1\nvalue %q\n", item.Value)
	for _, in := range item.Inputs {
		b.WriteString(inputLine(in) + "\n")
	}
	return []byte(b.String())
}

// prove makes the Merkle tree of RFC 6962 over a job's items: its root and, for each item, the
// proof that it is in its place there.
func prove(items []grid.Item) (root string, proofs []string, err error) {
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(at))
		for i, n := range at {
			out[i] = stored[n]
		}
		return out, nil
	})
	for i, item := range items {
		var more []tlog.Hash
		if more, err = tlog.StoredHashes(int64(i), itemText(item), read); err != nil {
			return "", nil, fmt.Errorf("hash item %d: %w", i, err)
		}
		stored = append(stored, more...)
	}
	n := int64(len(items))
	top, err := tlog.TreeHash(n, read)
	if err != nil {
		return "", nil, fmt.Errorf("hash the items: %w", err)
	}
	for i := range items {
		proof, err := tlog.ProveRecord(n, int64(i), read)
		if err != nil {
			return "", nil, fmt.Errorf("prove item %d: %w", i, err)
		}
		proofs = append(proofs, proofText(proof))
	}
	return hex.EncodeToString(top[:]), proofs, nil
}

func proofText(proof tlog.RecordProof) string {
	var all []byte
	for _, h := range proof {
		all = append(all, h[:]...)
	}
	return base64.RawStdEncoding.EncodeToString(all)
}

func parseProof(text string) (tlog.RecordProof, bool) {
	all, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(all)%tlog.HashSize != 0 {
		return nil, false
	}
	var proof tlog.RecordProof
	for h := range slices.Chunk(all, tlog.HashSize) {
		proof = append(proof, tlog.Hash(h))
	}
	return proof, true
}

// CoversItem reports whether a signature is about that item in that place of the job, counted
// from 0. A job without items has the same empty one everywhere. With a signed module
// the submitter chooses the items.
func CoversItem(sig grid.Signature, index uint32, item grid.Item) bool {
	if sig.Of == grid.SignedModule {
		return true
	}
	if sig.Items == 0 {
		return item.Value == "" && len(item.Inputs) == 0
	}
	root, err := hex.DecodeString(sig.Root)
	proof, ok := parseProof(item.Proof)
	if err != nil || !ok || len(root) != tlog.HashSize || index >= sig.Items {
		return false
	}
	leaf := tlog.RecordHash(itemText(item))
	return tlog.CheckRecord(proof, int64(sig.Items), tlog.Hash(root), int64(index), leaf) == nil
}
