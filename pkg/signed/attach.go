package signed

import (
	"fmt"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Prepared is a job with all that a signature of its template needs but the signature.
type Prepared struct {
	Text string // to be signed
	job  grid.Job
}

// Prepare works out what is signed of a job. The error is grid.ErrInvalid: such a job cannot be
// signed, because what its sites are told to run is not known before.
func Prepare(job grid.Job) (Prepared, error) {
	refuse := func(format string, args ...any) (Prepared, error) {
		return Prepared{}, fmt.Errorf(
			"%w: sign job: %s",
			grid.ErrInvalid,
			fmt.Sprintf(format, args...),
		)
	}
	_, indexed := job.Spec.FillIndex(0)
	switch {
	case job.Spec.Encrypted:
		return refuse("encrypt: what it reads is encrypted anew each time; remove encrypt")
	case job.Spec.Kind == grid.KindReservation:
		return refuse("a reservation runs nothing and needs no signature")
	case len(job.Takes) > 0:
		return refuse("it takes outputs of other jobs, which are not known yet; " +
			"wait for them, and name them as files")
	case job.Split != grid.SplitNone:
		return refuse("its parts are told about each other when they start; leave out split")
	case indexed && job.Redundancy.Several():
		return refuse("copies with {{index}} get a text of their own; use items, or one copy")
	case len(job.Items) > grid.MaxSignedItems:
		return refuse("it has %d items, want at most %d; divide it",
			len(job.Items), grid.MaxSignedItems)
	}
	sig := grid.Signature{Of: grid.SignedTemplate}
	if len(job.Items) > 0 {
		root, proofs, err := prove(job.Items)
		if err != nil {
			return Prepared{}, err
		}
		sig.Items, sig.Root = uint32(len(job.Items)), root
		job.Items = slices.Clone(job.Items)
		for i := range job.Items {
			job.Items[i].Proof = proofs[i]
		}
	}
	text := template(job.Spec, sig)
	sig.Digest = Digest(text)
	job.Spec.Signature = sig
	return Prepared{Text: text, job: job}, nil
}

// commentDigits of a digest stand in the trusted comment of a signature that submit makes.
const commentDigits, commentWord = 16, "template:"

// Comment stands in the trusted comment of a template's signature, among other words, so that a
// job that was changed since is noticed before it is sent.
func (p Prepared) Comment() string {
	return commentWord + p.job.Spec.Signature.Digest[:commentDigits]
}

// Attach gives the job with a signature of its template. It cannot say whether the signature is
// good, as it knows no public key. The error is grid.ErrInvalid.
func (p Prepared) Attach(file []byte) (grid.Job, error) {
	parsed, err := parseSignature(file)
	if err != nil {
		return grid.Job{}, fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	}
	for word := range strings.FieldsSeq(parsed.TrustedComment) {
		if strings.HasPrefix(word, commentWord) && word != p.Comment() {
			return grid.Job{}, fmt.Errorf("%w: the job was changed after it was signed; "+
				"sign it again with submit sign", grid.ErrInvalid)
		}
	}
	p.job.Spec.Signature.Text = string(file)
	return p.job, nil
}

// AttachModule gives a job whose module was signed, with the module's digest.
func AttachModule(job grid.Job, digest string, file []byte) (grid.Job, error) {
	if job.Spec.Kind != grid.KindWasm {
		return grid.Job{}, fmt.Errorf("%w: only the module of a WASM job can be signed; "+
			"sign the job file", grid.ErrInvalid)
	}
	if _, err := parseSignature(file); err != nil {
		return grid.Job{}, fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	}
	job.Spec.Signature = grid.Signature{
		Of: grid.SignedModule, Digest: digest, Text: string(file),
	}
	return job, nil
}

// Verify reports whether a file is a good signature, by that key, of what has the digest.
func Verify(public, digest string, file []byte) error {
	keys, err := NewKeys([]grid.Signer{{Key: public}})
	if err != nil {
		return err
	}
	if _, err = parseSignature(file); err != nil {
		return fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	}
	sig := grid.Signature{Of: grid.SignedTemplate, Digest: digest, Text: string(file)}
	switch keys.Judge(grid.KindWasm, sig) {
	case grid.ReasonNone:
		return nil
	case grid.ReasonSigner:
		return fmt.Errorf("%w: it was signed with another key", grid.ErrInvalid)
	default:
		return fmt.Errorf("%w: it was changed after it was signed, or the signature is of "+
			"something else", grid.ErrInvalid)
	}
}

// KeyID is the short form of a public key, as minisign shows it.
func KeyID(public string) (string, error) {
	k, err := parseKey(public)
	return fmt.Sprintf("%016X", k.ID()), err
}

// PublicKey is the key in a .pub file of minisign, or the key itself.
func PublicKey(text []byte) (string, error) {
	var public minisign.PublicKey
	if len(text) > grid.MaxSignatureText {
		return "", fmt.Errorf("%w: no public key of minisign: it has %d bytes",
			grid.ErrInvalid, len(text))
	}
	if err := public.UnmarshalText(text); err != nil {
		return "", fmt.Errorf("%w: no public key of minisign: %w", grid.ErrInvalid, err)
	}
	return public.String(), nil
}
