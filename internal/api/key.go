package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// maxKeyBytes is the longest Idempotency-Key.
const maxKeyBytes = 255

// keyOf is the digest of an Idempotency-Key, which is kept instead of it: it is short whatever
// a client sends, and tells nothing. Without a key it is empty.
func keyOf(header *string) (string, error) {
	if header == nil {
		return "", nil
	}
	key := *header
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if key == "" || len(key) > maxKeyBytes || strings.ContainsFunc(key, unprintable) {
		return "", fmt.Errorf("%w: Idempotency-Key: want 1 to %d printable ASCII characters, "+
			"have %d bytes; a random text such as a UUID is best", grid.ErrInvalid, maxKeyBytes, len(key))
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:]), nil
}
