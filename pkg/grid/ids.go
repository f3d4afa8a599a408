package grid

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SiteID names a site permanently: the text form of its libp2p peer ID. It is at most 128
// bytes of printable ASCII without space, '/' and ':'.
type SiteID string

// JobID names a job permanently: 16 lower-case base32 characters (a-z, 2-7), derived from
// the submitter, its incarnation and a counter.
type JobID string

// DomainID names a domain: a DNS label of at most 63 characters.
type DomainID string

// DomainKey is the public key of a domain, whose holder says who is a member:
// "ed25519:" and the key's 32 bytes in base64url without padding.
type DomainKey string

// CID is the content identifier of data: the text form of a version 1 CID, at
// most 128 bytes of a-z, 0-9.
type CID string

// Token is a fencing token: it names an attempt of one task, and grows at every award of that
// task and at nothing else. Its upper part is the number of the submitter's run that gave it,
// so that a run whose state was restored from a backup, and that does not know the last
// tokens, gives higher ones nevertheless.
type Token uint64

// tokenBits is the size of the part of a token that counts. With the seconds of a century as
// the other one it is exact in JSON, whose readers often know 53 bits.
const tokenBits = 20

// TokenOf is the token of a run and a number, from 1.
func TokenOf(run uint64, number Token) Token { return Token(run<<tokenBits) + number }

// Number counts the attempts of the task, from 1, as far as the submitter knows of them.
func (t Token) Number() Token { return t & (1<<tokenBits - 1) }

// TaskID names one task of a job. A job that is no array has the one task 0.
type TaskID struct {
	Job   JobID  // the job it belongs to
	Index uint32 // 0-based place in the array
}

// AttemptID names one attempt to run a task.
type AttemptID struct {
	Task  TaskID // what is run
	Token Token  // which attempt it is, from 1
}

const (
	maxIDBytes     = 128
	jobIDBytes     = 16
	maxLabelBytes  = 63
	domainKeyBytes = 32 // of an ed25519 public key
)

// ErrInvalid is the cause of every validation error of this package.
var ErrInvalid = errors.New("invalid")

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Validate reports whether the ID has the form of a SiteID.
func (id SiteID) Validate() error {
	if id == "" || len(id) > maxIDBytes {
		return invalidf("site id: want 1 to %d bytes, have %d", maxIDBytes, len(id))
	}
	for _, r := range string(id) {
		if r <= ' ' || r > '~' || r == '/' || r == ':' {
			return invalidf("site id: character %q is not allowed", r)
		}
	}
	return nil
}

// Validate reports whether the ID has the form of a JobID.
func (id JobID) Validate() error {
	if len(id) != jobIDBytes {
		return invalidf("job id: want %d characters, have %d", jobIDBytes, len(id))
	}
	for _, r := range string(id) {
		if (r < 'a' || r > 'z') && (r < '2' || r > '7') {
			return invalidf("job id: character %q is not base32", r)
		}
	}
	return nil
}

// Validate reports whether the name is a DNS label in lower case.
func (id DomainID) Validate() error {
	if id == "" || len(id) > maxLabelBytes {
		return invalidf("domain: want 1 to %d characters, have %d", maxLabelBytes, len(id))
	}
	for i, r := range string(id) {
		dash := r == '-' && i > 0 && i < len(id)-1
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !dash {
			return invalidf("domain %q: want letters a-z, digits and inner dashes", string(id))
		}
	}
	return nil
}

const domainKeyPrefix = "ed25519:"

// NewDomainKey writes a public key of 32 bytes as text.
func NewDomainKey(public []byte) DomainKey {
	return DomainKey(domainKeyPrefix + base64.RawURLEncoding.EncodeToString(public))
}

// Bytes are the 32 bytes of the public key. The error is ErrInvalid.
func (k DomainKey) Bytes() ([]byte, error) {
	text, found := strings.CutPrefix(string(k), domainKeyPrefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !found || err != nil || len(raw) != domainKeyBytes {
		return nil, invalidf("domain key: want %s and 43 characters, have %q", domainKeyPrefix, string(k))
	}
	return raw, nil
}

// Validate reports whether the text is a domain's public key.
func (k DomainKey) Validate() error {
	_, err := k.Bytes()
	return err
}

// Validate reports whether the text can be a CID. Whether it is one only the
// data room can tell.
func (c CID) Validate() error {
	if c == "" || len(c) > maxIDBytes {
		return invalidf("cid: want 1 to %d characters, have %d", maxIDBytes, len(c))
	}
	for _, r := range string(c) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return invalidf("cid: character %q is not allowed", r)
		}
	}
	return nil
}

// String is JOB.INDEX, for example "mfrggzdfmztwq2lk.7".
func (t TaskID) String() string {
	return string(t.Job) + "." + strconv.FormatUint(uint64(t.Index), 10)
}

// Validate reports whether the task's job has the form of a JobID.
func (t TaskID) Validate() error { return t.Job.Validate() }

// Compare orders tasks by job, then by index: -1, 0 or 1.
func (t TaskID) Compare(u TaskID) int {
	return cmp.Or(cmp.Compare(t.Job, u.Job), cmp.Compare(t.Index, u.Index))
}

// ParseTaskID reads JOB or JOB.INDEX; JOB alone is task 0.
func ParseTaskID(text string) (TaskID, error) {
	job, index, isTask := strings.Cut(text, ".")
	id := TaskID{Job: JobID(job)}
	if err := id.Validate(); err != nil {
		return TaskID{}, err
	}
	if !isTask {
		return id, nil
	}
	n, err := strconv.ParseUint(index, 10, 32)
	if err != nil {
		return TaskID{}, invalidf("task id %q: the part behind the dot is no index", text)
	}
	id.Index = uint32(n)
	return id, nil
}

// String is JOB.INDEX#TOKEN.
func (a AttemptID) String() string {
	return a.Task.String() + "#" + strconv.FormatUint(uint64(a.Token), 10)
}

// ParseAttemptID reads what AttemptID.String writes, JOB.INDEX#TOKEN.
func ParseAttemptID(text string) (AttemptID, error) {
	task, token, found := strings.Cut(text, "#")
	if !found {
		return AttemptID{}, invalidf("attempt id %q: want JOB.INDEX#TOKEN", text)
	}
	id, err := ParseTaskID(task)
	if err != nil {
		return AttemptID{}, err
	}
	n, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		return AttemptID{}, invalidf("attempt id %q: the part behind # is no token", text)
	}
	attempt := AttemptID{Task: id, Token: Token(n)}
	if err := attempt.Validate(); err != nil {
		return AttemptID{}, err
	}
	return attempt, nil
}

// Compare orders attempts by task, then by token: -1, 0 or 1.
func (a AttemptID) Compare(b AttemptID) int {
	return cmp.Or(a.Task.Compare(b.Task), cmp.Compare(a.Token, b.Token))
}

// Validate reports whether the task is valid and the token at least 1.
func (a AttemptID) Validate() error {
	if a.Token == 0 {
		return invalidf("attempt %s: tokens count from 1", a.Task)
	}
	return a.Task.Validate()
}
