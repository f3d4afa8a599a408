package grid

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// DataDigest stands for data where all members listen: a site that has the data knows it by its
// digest, and nobody can ask for it by that, because data is fetched by its CID. It is 26
// characters of lower-case base32, or empty: data that no site can have yet.
type DataDigest string

// digestBytes of SHA-256 are used: none are equal by chance, and nobody finds a CID by them.
const digestBytes = 16

// digestChars is their length in base32.
const digestChars = (digestBytes*8 + 4) / 5

// dataDigestContext keeps digests from being taken for other hashes of the same texts.
const dataDigestContext = "mrs data 1\x00"

// Digest names data in the announcements of a domain. Each domain has its own
// digests of the same data, so that they say nothing elsewhere. It is empty for an empty CID.
func (c CID) Digest(domain DomainID) DataDigest {
	if c == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(dataDigestContext + string(domain) + "\x00" + string(c)))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:digestBytes])
	return DataDigest(strings.ToLower(text))
}

// Validate reports whether the text can be a digest.
func (d DataDigest) Validate() error {
	if len(d) != digestChars {
		return invalidf("data digest: want %d characters, have %d", digestChars, len(d))
	}
	for _, r := range string(d) {
		if (r < 'a' || r > 'z') && (r < '2' || r > '7') {
			return invalidf("data digest: character %q is not allowed", r)
		}
	}
	return nil
}
