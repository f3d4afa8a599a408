package signed

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Keys are the signers whose work an owner runs. The zero value lists none: then nothing has to be
// signed.
type Keys struct{ all []key }

type key struct {
	public minisign.PublicKey
	kinds  []grid.WorkKind // empty: all
}

const maxSignerName = 63

// ParseSigner reads "[NAME=]KEY [wasm] [command]". Without a kind it is every kind. The error says
// what is wrong and what to write.
func ParseSigner(text string) (grid.Signer, error) {
	var s grid.Signer
	words := strings.Fields(text)
	if len(words) == 0 {
		return s, fmt.Errorf("signer: empty; want %s", signerForm)
	}
	name, public, named := strings.Cut(words[0], "=")
	if !named {
		name, public = "", words[0]
	}
	if named && name == "" || len(name) > maxSignerName || strings.ContainsFunc(name, isOdd) {
		return s, fmt.Errorf("signer %q: want a name of 1 to %d letters, digits, . - _ or @, "+
			"then = and the key", clip(words[0]), maxSignerName)
	}
	if _, err := parseKey(public); err != nil {
		return s, err
	}
	s.Name, s.Key = name, public
	for _, word := range words[1:] {
		switch word {
		case grid.KindWasm.String():
			s.Kinds = append(s.Kinds, grid.KindWasm)
		case grid.KindCommand.String():
			s.Kinds = append(s.Kinds, grid.KindCommand)
		default:
			return s, fmt.Errorf("signer %q: %q is no kind of work; want %s",
				clip(words[0]), clip(word), signerForm)
		}
	}
	slices.Sort(s.Kinds)
	s.Kinds = slices.Compact(s.Kinds)
	return s, nil
}

const signerForm = "NAME=KEY, with the second line of a .pub file as key, " +
	"then wasm, command or neither"

// isOdd reports a character that no name of a signer has.
func isOdd(r rune) bool {
	return !strings.ContainsRune(
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_@",
		r,
	)
}

// FormatSigner writes what ParseSigner reads.
func FormatSigner(s grid.Signer) string {
	text := s.Key
	if s.Name != "" {
		text = s.Name + "=" + text
	}
	for _, kind := range s.Kinds {
		text += " " + kind.String()
	}
	return text
}

// parseKey reads a public key of minisign, without its comment.
func parseKey(text string) (minisign.PublicKey, error) {
	const length = 56
	var public minisign.PublicKey
	if len(text) != length {
		return public, fmt.Errorf("signer's key %q: want the %d characters of minisign's key, "+
			"the second line of a .pub file", clip(text), length)
	}
	if err := public.UnmarshalText([]byte(text)); err != nil {
		return public, fmt.Errorf("signer's key %q: %w; copy the second line of a .pub file",
			clip(text), err)
	}
	return public, nil
}

// clip shortens what is shown of a text that may be long.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// NewKeys reads a list of signers, at most grid.MaxSigners, none of them twice. The error is
// grid.ErrInvalid.
func NewKeys(list []grid.Signer) (Keys, error) {
	if len(list) > grid.MaxSigners {
		return Keys{}, fmt.Errorf("%w: signers: want at most %d, have %d",
			grid.ErrInvalid, grid.MaxSigners, len(list))
	}
	var k Keys
	for _, s := range list {
		public, err := parseKey(s.Key)
		if err != nil {
			return Keys{}, fmt.Errorf("%w: %w", grid.ErrInvalid, err)
		}
		for _, kind := range s.Kinds {
			if kind != grid.KindWasm && kind != grid.KindCommand {
				return Keys{}, fmt.Errorf("%w: signers: kind %s of work cannot be signed",
					grid.ErrInvalid, kind)
			}
		}
		if slices.ContainsFunc(k.all, func(o key) bool { return o.public.Equal(public) }) {
			return Keys{}, fmt.Errorf("%w: signers: the key %s is there twice; "+
				"write its kinds behind it once", grid.ErrInvalid, s.Key)
		}
		k.all = append(k.all, key{public: public, kinds: s.Kinds})
	}
	return k, nil
}

// Any reports whether anybody is listed, so that work has to be signed.
func (k Keys) Any() bool { return len(k.all) > 0 }

// Judge says why work of that kind is not run for its signature, or grid.ReasonNone. What it finds
// good was signed by a listed key, as far as the digest goes: whether that is the digest of the
// job is asked by Covers, CoversItem and Hash. A reservation runs nothing and needs no signature.
func (k Keys) Judge(kind grid.WorkKind, sig grid.Signature) grid.Reason {
	if !k.Any() || kind == grid.KindReservation {
		return grid.ReasonNone
	}
	if sig.IsZero() {
		return grid.ReasonUnsigned
	}
	parsed, err := parseSignature([]byte(sig.Text))
	digest, errHex := hex.DecodeString(sig.Digest)
	if err != nil || errHex != nil || sig.Of == grid.SignedModule && kind != grid.KindWasm {
		return grid.ReasonSignature
	}
	reason := grid.ReasonSigner
	for _, key := range k.all { // an ID is a hint that anybody can choose: two keys may share it
		if key.public.ID() != parsed.KeyID {
			continue
		}
		switch {
		case !isGood(key.public, parsed, digest):
			if reason == grid.ReasonSigner {
				reason = grid.ReasonSignature
			}
		case len(key.kinds) > 0 && !slices.Contains(key.kinds, kind):
			reason = grid.ReasonSignerKind
		default:
			return grid.ReasonNone
		}
	}
	return reason
}

// isGood verifies a signature, and that of its trusted comment, by the digest of what was signed.
// minisign signs the BLAKE2b-512 of a file; with the other algorithm the library takes that digest
// for the whole message, which comes to the same.
func isGood(public minisign.PublicKey, parsed minisign.Signature, digest []byte) bool {
	parsed.Algorithm = minisign.EdDSA
	text, err := parsed.MarshalText()
	return err == nil && minisign.Verify(public, digest, text)
}

// parseSignature reads a signature file. Those of the old kind, which sign the file itself and not
// its digest, are refused: they could not be judged before the file is here.
func parseSignature(text []byte) (minisign.Signature, error) {
	var parsed minisign.Signature
	if len(text) > grid.MaxSignatureText {
		return parsed, fmt.Errorf("a signature of %d bytes, want at most %d; "+
			"name the .minisig file", len(text), grid.MaxSignatureText)
	}
	if err := parsed.UnmarshalText(text); err != nil {
		return parsed, fmt.Errorf("no signature of minisign: %w; name the .minisig file", err)
	}
	if parsed.Algorithm != minisign.HashEdDSA {
		return parsed, fmt.Errorf("a signature of minisign's old kind; " +
			"sign it again without -l")
	}
	return parsed, nil
}
