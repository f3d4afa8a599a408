package protocol

import (
	"cmp"
	"encoding/binary"
	"time"
)

// Run names one run of a site's agent, in words that the site's key has signed: who has heard
// them can prove to an older run of the site that there is a newer one.
type Run struct {
	Number    uint64 // the incarnation, from 1; 0: no run is said, and nothing of it
	Nonce     uint64 // drawn for this run
	Line      uint64 // of the runs that followed one another on one machine; 0: not said
	SinceMS   int64  // when it began, by the sender's wall clock, ms since 1970 UTC
	Signature []byte // by the site's key over Signed; at most 128 bytes
}

const maxRunSignature = 128

// runContext keeps a signature from being taken for one that was made for another purpose.
const runContext = "mrs run 1\x00"

// Signed is the text that Signature is over.
func (r Run) Signed() []byte {
	text := []byte(runContext)
	for _, v := range []uint64{r.Number, r.Nonce, r.Line, uint64(r.SinceMS)} {
		text = binary.BigEndian.AppendUint64(text, v)
	}
	return text
}

// Compare orders the runs of one site: the later one is greater, and two that were started with
// the same number are in the order of what was drawn for them.
func (r Run) Compare(other Run) int {
	return cmp.Or(cmp.Compare(r.Number, other.Number), cmp.Compare(r.Nonce, other.Nonce))
}

// Since is when the run began, by its own clock.
func (r Run) Since() time.Time { return time.UnixMilli(r.SinceMS) }

// Validate reports the first field that is out of its range.
func (r Run) Validate() error {
	if r.SinceMS < 0 || len(r.Signature) > maxRunSignature {
		return invalidf("run: start or signature out of range")
	}
	if r.Number == 0 && (r.Nonce != 0 || r.Line != 0 || r.SinceMS != 0 || len(r.Signature) > 0) {
		return invalidf("run: has no number")
	}
	return nil
}
