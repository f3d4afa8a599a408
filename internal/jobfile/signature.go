package jobfile

import (
	"encoding/hex"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// The keys under which a job file names a signature, by what was signed.
const (
	keySignature       = "signature"
	keyModuleSignature = "module-signature"
)

// inlineSignature begins a signature that stands in the job file itself.
const inlineSignature = "untrusted comment:"

// vouching says of a job file who has signed it.
type vouching struct {
	ref Ref // a file's name, or the signature itself; empty: nobody has
	of  grid.SignedPart
}

// signature reads one of the two keys.
func (p *parser) signature(key string, node *yaml.Node) {
	text, ok := p.text(node, key)
	if !ok {
		return
	}
	v := &p.file.vouching
	switch {
	case text == "":
		p.fail(node.Line, key, "name the .minisig file", "want the name of a file, have nothing")
	case v.ref.Text != "":
		p.fail(node.Line, key, "keep one of them",
			"%s and %s are both given", keySignature, keyModuleSignature)
	}
	p.file.lines[key] = node.Line
	v.ref, v.of = Ref{Text: text, Field: key}, grid.SignedTemplate
	if key == keyModuleSignature {
		v.of = grid.SignedModule
	}
}

// signature reads the file of a signature, and hashes a module that was signed.
func (r *resolver) signature() {
	v := r.file.vouching
	if v.ref.Text == "" || r.file.unsigned {
		return
	}
	if v.of == grid.SignedModule && !r.hashModule() {
		return
	}
	r.plan.signedPart, r.plan.signature = v.of, []byte(v.ref.Text)
	if strings.HasPrefix(v.ref.Text, inlineSignature) {
		return
	}
	source, err := r.find(v.ref.Text)
	if err == nil {
		// One byte more than it may have, so that a longer one is refused as such.
		r.plan.signature, err = source.head(grid.MaxSignatureText + 1)
	}
	if err != nil {
		r.explain(v.ref.Field, v.ref.Text, err)
	}
}

// hashModule works out what the signature of a module is about.
func (r *resolver) hashModule() bool {
	field := r.file.vouching.ref.Field
	if r.plan.module < 0 {
		if r.file.Spec.Kind != grid.KindWasm {
			r.fail(field, "use signature, and sign the job file",
				"only a WASM module can be signed by itself")
		}
		return false
	}
	source := r.plan.Sources[r.plan.module]
	if source.CID != "" {
		r.fail(field, "name the module's file", "the module's bytes are not on this machine")
		return false
	}
	body, err := source.Open()
	if err != nil {
		r.explain(field, source.Path, err)
		return false
	}
	defer func() { _ = body.Close() }() // only read from
	h := signed.Hash()
	if _, err = io.Copy(h, body); err != nil {
		r.explain(field, source.Path, err)
		return false
	}
	r.plan.moduleDigest = hex.EncodeToString(h.Sum(nil))
	return true
}

// Prepare gives what is to be signed of the job. stored is that of Job.
func (p *Plan) Prepare(stored []Stored) (signed.Prepared, error) {
	job, err := p.plain(stored)
	if err != nil {
		return signed.Prepared{}, err
	}
	return signed.Prepare(job)
}

// sign puts the signature on the job that its file names.
func (p *Plan) sign(job grid.Job) (grid.Job, error) {
	fail := func(err error) (grid.Job, error) {
		field := p.File.vouching.ref.Field
		text := strings.TrimPrefix(err.Error(), grid.ErrInvalid.Error()+": ")
		return job, Errors{&FieldError{
			Line: p.File.lines[field], Field: field, Text: text,
			Remedy: "`submit sign` signs it", cause: err,
		}}.sorted(p.name)
	}
	switch p.signedPart {
	case grid.SignedModule:
		out, err := signed.AttachModule(job, p.moduleDigest, p.signature)
		if err != nil {
			return fail(err)
		}
		return out, nil
	case grid.SignedTemplate:
		prepared, err := signed.Prepare(job)
		if err != nil {
			return fail(err)
		}
		out, err := prepared.Attach(p.signature)
		if err != nil {
			return fail(err)
		}
		return out, nil
	default:
		return job, nil
	}
}
