package grid

// Encryption says that what a job reads and leaves is encrypted wherever it lies, for a key of the
// job's own. The zero value is that of a job in the clear.
type Encryption struct {
	// Name names the key at the agent that the inputs were uploaded to: 16 to 64 letters and
	// digits, made at random.
	Name string
	// Key opens the content. The submitter's agent fills it in; its standbys have it, too.
	Key JobKey `json:",omitempty"`
}

// IsZero reports whether the job is in the clear.
func (e Encryption) IsZero() bool { return e == Encryption{} }

// JobKey is the secret half of a job's key, in 64 hexadecimal digits; empty: none. Logs
// and messages for people show no more of it than that there is one.
type JobKey string

// shownKey stands for a key where it would be printed.
const shownKey = "(secret)"

// String hides the key.
func (k JobKey) String() string {
	if k == "" {
		return ""
	}
	return shownKey
}

// GoString hides the key.
func (k JobKey) GoString() string { return k.String() }

// Validate reports a text that is no key. The key itself is not in the message.
func (k JobKey) Validate() error {
	const keyBytes = 32
	if !isHex(string(k), keyBytes) {
		return invalidf("key: want %d hexadecimal digits, have %d bytes", 2*keyBytes, len(k))
	}
	return nil
}

// Limits on encrypted jobs.
const (
	minKeyName    = 16  // letters and digits of Encryption.Name
	maxKeyName    = 64  // likewise
	MaxWrappedKey = 512 // bytes of a job's key that is encrypted for one site
)

// ValidateKeyName reports a name that does not name a key.
func ValidateKeyName(name string) error {
	if len(name) < minKeyName || len(name) > maxKeyName {
		return invalidf("encrypt: want %d to %d letters and digits made at random, have %d",
			minKeyName, maxKeyName, len(name))
	}
	for _, c := range []byte(name) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return invalidf("encrypt: want letters and digits only, have %q", name)
		}
	}
	return nil
}

// EncryptedBytes bounds the size of a file of so many bytes once it is encrypted: one part in 4096
// for the chunks' marks, and the head.
func EncryptedBytes(plain int64) int64 { return plain + plain/4096 + 1<<10 }

// MayLeaveEncrypted is MayLeave of an encrypted job. A directory is packed before, and a file
// without a byte takes up to 3 KiB then.
func (r Resources) MayLeaveEncrypted() int64 { return 2*EncryptedBytes(r.MayLeave()) + leastLeft }

// validateEncryption is about what an encrypted job cannot be.
func (j Job) validateEncryption() error {
	if !j.Spec.Encrypted {
		if !j.Encryption.IsZero() {
			return invalidf("encrypt: the job has a key and is not encrypted; name both or none")
		}
		return nil
	}
	if err := ValidateKeyName(j.Encryption.Name); err != nil {
		return err
	}
	switch {
	case j.Redundancy != Redundancy{}:
		return invalidf("encrypt: what replicas, agreement and verify compare is encrypted " +
			"differently by each site; leave out encrypt, or these")
	case len(j.Takes) > 0:
		return invalidf("encrypt: what another job leaves is in the clear, or has another key; " +
			"fetch it and name the file as an input, or leave out encrypt")
	case j.Encryption.Key != "":
		return j.Encryption.Key.Validate()
	default:
		return nil
	}
}

// validateEncryption is about what a site that opens the content cannot do besides.
func (s Spec) validateEncryption() error {
	switch {
	case !s.Encrypted:
		return nil
	case s.Kind == KindReservation:
		return invalidf("encrypt: a reservation has no content; leave out encrypt")
	case !s.Signature.IsZero():
		return invalidf("encrypt: a signature is about content that all can read, and sites " +
			"compare the two; leave out encrypt, or the signature")
	default:
		return nil
	}
}
