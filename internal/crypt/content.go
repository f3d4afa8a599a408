package crypt

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ErrDamaged says that content is not what its job has encrypted: damaged, cut short, or of another
// job. Errors of the reader beneath are not of its kind.
var ErrDamaged = errors.New("it is no encrypted content of this job, or damaged")

// Encrypt gives what a reader gives, encrypted for a job. It reads as it is read.
func Encrypt(key grid.JobKey, plain io.Reader) (io.Reader, error) {
	id, err := identity(key)
	if err != nil {
		return nil, err
	}
	r, err := age.EncryptReader(plain, id.Recipient())
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return r, nil
}

// Open gives what a reader gives, opened with the job's key. What it gives before an error is
// right, but not all: who wants the whole reads to the end, where it is known whether it is
// there. Errors of the content itself are ErrDamaged. It holds 64 KiB in memory.
func Open(key grid.JobKey, content io.Reader) (io.Reader, error) {
	id, err := identity(key)
	if err != nil {
		return nil, err
	}
	from := &source{from: content, left: maxHead}
	plain, err := age.Decrypt(from, id)
	if err != nil {
		return nil, from.explain(err)
	}
	from.left = -1
	return opened{plain, from}, nil
}

// maxHead bounds what is read before content is known to be the job's: age's own head has no
// bound.
const maxHead = 16 << 10

// source tells errors of the reader beneath from those of the content.
type source struct {
	from io.Reader
	left int // bytes that may still be read; below 0: any number
	err  error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errLongHead
	}
	if s.left > 0 && len(p) > s.left {
		p = p[:s.left]
	}
	n, err := s.from.Read(p)
	if s.left > 0 {
		s.left -= n
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

var errLongHead = errors.New("its head is too long")

// explain tells whose fault an error is.
func (s *source) explain(err error) error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// opened reads opened content.
type opened struct {
	plain io.Reader
	from  *source
}

// Read implements io.Reader.
func (o opened) Read(p []byte) (int, error) {
	n, err := o.plain.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.from.explain(err)
	}
	return n, err
}

// Check reads encrypted content to its end and says whether it is whole and the job's.
func Check(key grid.JobKey, content io.Reader) error {
	plain, err := Open(key, content)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, plain)
	return err
}

// The parts of age's format.
const (
	chunkBytes = 64 << 10 // of the content in each chunk
	markBytes  = 16       // that each chunk is longer by
	nonceBytes = 16       // before the first one
)

// PlainBytes is the size that content of so many bytes has when it is opened; head is its
// beginning, up to HeadBytes. It believes what it reads: Open finds whether that is true.
func PlainBytes(head []byte, total int64) (int64, error) {
	const last = "\n--- "
	at := bytes.Index(head, []byte(last))
	if at < 0 {
		return 0, fmt.Errorf("%w: no head", ErrDamaged)
	}
	end := bytes.IndexByte(head[at+len(last):], '\n')
	if end < 0 {
		return 0, fmt.Errorf("%w: no end of its head", ErrDamaged)
	}
	body := total - int64(at+len(last)+end+1) - nonceBytes
	chunks := (body + chunkBytes + markBytes - 1) / (chunkBytes + markBytes)
	if plain := body - chunks*markBytes; body >= markBytes && plain >= 0 {
		return plain, nil
	}
	return 0, fmt.Errorf("%w: cut short", ErrDamaged)
}

// HeadBytes says how much of content PlainBytes wants to see: more than the head of content that is
// encrypted for one key takes.
const HeadBytes = 1 << 10
