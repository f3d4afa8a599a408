package grid

import (
	"encoding/hex"
	"strings"
)

// SignedPart says what of a job was signed.
type SignedPart uint8

// What may be signed.
const (
	// SignedTemplate is the text that pkg/signed makes of a job: all that changes what is run.
	SignedTemplate SignedPart = iota + 1
	// SignedModule is a WASM module, byte for byte: its submitter says with which arguments and
	// inputs it runs.
	SignedModule
	signedParts = SignedModule
)

// String is the part in a word.
func (p SignedPart) String() string {
	switch p {
	case SignedTemplate:
		return "template"
	case SignedModule:
		return "module"
	default:
		return "unknown"
	}
}

// Signature is the claim of a submitter that somebody vouches for what a job runs. pkg/signed
// judges it; the zero value is that of a job that nobody has signed.
type Signature struct {
	Of SignedPart
	// Digest is the BLAKE2b-512 of what was signed, in 128 hexadecimal digits.
	Digest string
	// Text is the signature as minisign writes it, at most MaxSignatureText bytes.
	Text string
	// Items counts the items that a template covers, 0 to MaxSignedItems, and Root is the root of
	// their Merkle tree, in 64 hexadecimal digits. 0: the job has none.
	Items uint32 `json:",omitempty"`
	Root  string `json:",omitempty"`
}

// Limits on signatures.
const (
	MaxSignatureText = 1 << 10 // bytes of Signature.Text
	MaxSignedItems   = 1 << 14 // of a signed job: each carries a proof
	maxProof         = 1 << 10 // bytes of Item.Proof
	MaxSigners       = 256     // that one site lists
)

// IsZero reports whether nobody has signed it.
func (s Signature) IsZero() bool { return s == Signature{} }

// Validate reports the first field that is out of its range. It does not say that a signature is
// good.
func (s Signature) Validate() error {
	const digestBytes, rootBytes = 64, 32
	switch {
	case s.IsZero():
		return nil
	case s.Of < SignedTemplate || s.Of > signedParts:
		return invalidf("signature: of %d, which is unknown", s.Of)
	case !isHex(s.Digest, digestBytes):
		return invalidf("signature: want a digest of %d hexadecimal digits", 2*digestBytes)
	case s.Text == "" || len(s.Text) > MaxSignatureText:
		return invalidf("signature: want 1 to %d bytes, have %d", MaxSignatureText, len(s.Text))
	case s.Items > MaxSignedItems:
		return invalidf("signature: want at most %d items, have %d", MaxSignedItems, s.Items)
	case s.Items == 0 && s.Root != "", s.Items > 0 && !isHex(s.Root, rootBytes),
		s.Items > 0 && s.Of != SignedTemplate:
		return invalidf("signature: items and their root do not fit")
	default:
		return nil
	}
}

func isHex(text string, bytes int) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 2*bytes && strings.ToLower(text) == text
}

// Signer is somebody whose work the owner of a site runs.
type Signer struct {
	Name  string     // for people; empty: none
	Key   string     // minisign's public key, 56 characters
	Kinds []WorkKind // ascending; empty: every kind that the site runs
}
