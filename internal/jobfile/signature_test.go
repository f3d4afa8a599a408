package jobfile_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// A signature of some file by a key of tests: job files are read without knowing whether it is
// good.
const someSignature = `untrusted comment: signature by key FD74EDE6F5E9D28C
RUSM0un15u10/covfSgGM4yu6QjSv39+fa/ViZ6JQa/dFN83OSH6xLHmNU8w1jp7UkKWPC+RZfzSVFGBfDVKxEiGMx1yVWdxigY=
trusted comment: timestamp:1795877389 file:m.wasm
gQed8r/iNxG0fQZtYPjGaTRH58GSjLnNRQvf9LkGz1gdJp4HLfHGiNKsSgXesPdfGkE0/MK//3RviYVF7CZtCA==
`

func loadSigned(
	t *testing.T, text string, files map[string]string, o jobfile.Options,
) (grid.Job, *jobfile.Plan, error) {
	t.Helper()
	plan, err := jobfile.Load([]byte(text), folder(t, files), o)
	if err != nil {
		return grid.Job{}, nil, err
	}
	job, err := plan.Job(fakeStore(plan.Sources))
	return job, plan, err
}

func TestAJobNamesItsSignature(t *testing.T) {
	t.Parallel()
	files := map[string]string{"m.wasm": "\x00asm", "it.minisig": someSignature}
	const base = "wasm: m.wasm\nruntime: 1s\n"
	job, plan, err := loadSigned(
		t,
		base+"items: [a, b]\nargs: ['{{item}}']\nsignature: it.minisig\n",
		files,
		options(),
	)
	if err != nil {
		t.Fatal(err)
	}
	sig := job.Spec.Signature
	if sig.Of != grid.SignedTemplate || sig.Text != someSignature || sig.Items != 2 ||
		!signed.Covers(sig, job.Spec) || !signed.CoversItem(sig, 1, job.Items[1]) ||
		signed.CoversItem(sig, 0, job.Items[1]) {
		t.Errorf("signed as %+v", sig)
	}
	prepared, err := plan.Prepare(fakeStore(plan.Sources))
	if err != nil || signed.Digest(prepared.Text) != sig.Digest {
		t.Errorf("another text is signed than sent: %v", err)
	}
	// Its description is a job file with the same signature.
	text, err := json.Marshal(jobfile.Format(job))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := loadSigned(t, string(text), nil, options())
	if diff := cmp.Diff(sig, again.Spec.Signature); err != nil || diff != "" {
		t.Errorf("from its description, %v (-want +got):\n%s", err, diff)
	}

	job, _, err = loadSigned(t, base+"module-signature: it.minisig\n", files, options())
	want := grid.Signature{
		Of: grid.SignedModule, Digest: signed.Digest("\x00asm"), Text: someSignature,
	}
	if diff := cmp.Diff(want, job.Spec.Signature); err != nil || diff != "" {
		t.Errorf("a signed module, %v (-want +got):\n%s", err, diff)
	}

	o := options()
	o.Unsigned = true
	job, _, err = loadSigned(t, base+"signature: not made yet\n", files, o)
	if err != nil || !job.Spec.Signature.IsZero() {
		t.Errorf("before it is signed: %+v, %v", job.Spec.Signature, err)
	}
}

func TestMistakesOfSignatures(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"m.wasm": "\x00asm", "it.minisig": someSignature, "long": strings.Repeat("x", 5<<20),
		"text":   "hello",
		"before": strings.Replace(someSignature, "file:m.wasm", "template:0123456789abcdef", 1),
	}
	const (
		module = "module-signature: it.minisig"
		twice  = "signature: it.minisig\n" + module
		copies = "signature: it.minisig\ncount: 2\nargs: ['{{index}}']\nreplicas: 2"
		held   = "reserve: 1h\nstart: {at: 18:00}\nsignature: it.minisig"
	)
	for text, want := range map[string]string{
		"signature: [x]":  "signature: want a text",
		"signature: ''":   "signature: want the name of a file, have nothing",
		"signature: none": "signature: no such file or folder: none",
		"signature: long": "signature: a signature of 1025 bytes, want at most 1024",
		"signature: text": "signature: no signature of minisign",
		"signature: before": "2: signature: the job was changed after it was signed; " +
			"sign it again with submit sign",
		twice:                                 "signature and module-signature are both given",
		"signature: it.minisig\nsplit: never": "parts are told about each other",
		copies:                                "copies with {{index}}",
		"module-signature: none":              "module-signature: no such file",
		"module-signature: /etc/passwd":       "is outside of the job file's folder",
	} {
		_, _, err := loadSigned(t, "wasm: m.wasm\n"+text, files, options())
		var named jobfile.Errors
		if !errors.As(err, &named) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"command: [x]\n" + module:   "only a WASM module can be signed by itself",
		"wasm: cid:bafy\n" + module: "the module's bytes are not on this machine",
		held:                        "a reservation only holds capacity",
	} {
		if _, _, err := loadSigned(t, text, files, options()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}
