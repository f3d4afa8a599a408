package member

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// maxStatementBytes bounds the text of a statement.
const maxStatementBytes = 16 << 10

// errStatement says that a statement was not signed by the key that it is to be from, or cannot
// be read.
var errStatement = errors.New("not signed by that domain's key")

// Statement is said by a domain under its key: a text in JSON and a signature over the context
// and the bytes of the text as they are. The context keeps it from being taken for one that the
// same key made for another purpose.
type Statement struct {
	Text      []byte `json:"text"`
	Signature []byte `json:"signature"`
}

// State says something under the domain's key. The error is ErrNoKey where this site does not
// hold it.
func (r *Registry) State(context string, value any) (Statement, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return Statement{}, fmt.Errorf("write %s: %w", context, err)
	}
	signature, err := r.Sign(contextual(context, text))
	return Statement{Text: text, Signature: signature}, err
}

// Read verifies that the domain of that key has said it, and reads it.
func (s Statement) Read(context string, key grid.DomainKey, into any) error {
	if !signedFor(context, key, s.Text, s.Signature) {
		return fmt.Errorf("%s: %w", context, errStatement)
	}
	return s.peek(context, into)
}

// peek reads it without asking who has said it.
func (s Statement) peek(context string, into any) error {
	if len(s.Text) > maxStatementBytes {
		return fmt.Errorf("%s: %w: longer than %d bytes", context, errStatement, maxStatementBytes)
	}
	if err := json.Unmarshal(s.Text, into); err != nil {
		return fmt.Errorf("%s: %w: %w", context, errStatement, err)
	}
	return nil
}

func signedFor(context string, key grid.DomainKey, text, signature []byte) bool {
	public, err := key.Bytes()
	return err == nil && ed25519.Verify(public, contextual(context, text), signature)
}

func contextual(context string, text []byte) []byte {
	return append([]byte(context+"\x00"), text...)
}
