package jobfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

const someKeyName = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// A job file with encrypt: true, or read with the flag for it, makes an encrypted job with the name
// of its key; others make none. Its description says that it is encrypted.
func TestAJobIsEncrypted(t *testing.T) {
	t.Parallel()
	files := map[string]string{"m.wasm": "\x00asm", "in": "x"}
	const base = "wasm: m.wasm\nruntime: 1s\ninputs: [{path: /in, from: in}]\n"
	for name, c := range map[string]struct {
		text string
		flag bool
		want bool
	}{
		"in the file": {base + "encrypt: true\n", false, true},
		"by the flag": {base, true, true},
		"against it":  {base + "encrypt: false\n", true, true},
		"not":         {base + "encrypt: false\n", false, false},
		"nothing":     {base, false, false},
	} {
		o := options()
		o.Encrypt = c.flag
		plan, err := jobfile.Load([]byte(c.text), folder(t, files), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan.KeyName = someKeyName
		job, err := plan.Job(fakeStore(plan.Sources))
		named := job.Encryption.Name
		if err != nil || job.Spec.Encrypted != c.want || (named == someKeyName) != c.want {
			t.Errorf("%s: %t with the key %q, %v", name, job.Spec.Encrypted, named, err)
		}
		text, err := json.Marshal(jobfile.Format(job))
		if err != nil || strings.Contains(string(text), `"encrypt":true`) != c.want ||
			strings.Contains(string(text), someKeyName) {
			t.Errorf("%s: described as %s, %v", name, text, err)
		}
	}
}

// What an encrypted job cannot have is refused with its line before anything is sent.
func TestWhatAnEncryptedJobFileCannotHave(t *testing.T) {
	t.Parallel()
	const base = "wasm: m.wasm\nruntime: 1s\nencrypt: true\n"
	for text, want := range map[string]string{
		base + "replicas: 2\n":    "job.yaml:4: replicas: results are encrypted differently",
		base + "verify: .5\n":     "job.yaml:4: verify: results are encrypted differently",
		base + "signature: s.m\n": "job.yaml:4: signature: sites compare what was signed",

		base + "inputs: [{path: /in, from: {job: aaaa, output: /out}}]\n": "another key; fetch it",

		base + "inputs: [{path: /in, from: cid:bx}]\n": "name the file instead of cid:bx",
		base[:len(base)-5] + "maybe\n":                 "encrypt: want one of false, true",

		"reserve: 2h\nstart: {at: +1h}\nencrypt: true\n": "a reservation only holds capacity",
	} {
		files := map[string]string{"m.wasm": "\x00asm"}
		_, err := jobfile.Load([]byte(text), folder(t, files), options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// In a flow no job takes what an encrypted one leaves, and others may run after it.
func TestAFlowTakesNothingEncrypted(t *testing.T) {
	t.Parallel()
	const flow = `
defaults: {wasm: m.wasm, runtime: 1s}
jobs:
  one: {encrypt: true, outputs: [{path: /out, to: out}]}
  two: `
	files := map[string]string{"m.wasm": "\x00asm"}
	const taking = "{inputs: [{path: /in, from: {job: one, output: /out}}]}\n"
	const want = "one is encrypted, and no other job has its key"
	_, err := jobfile.LoadFlow([]byte(flow+taking), folder(t, files), options())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("taken: %v", err)
	}
	if _, err = jobfile.LoadFlow(
		[]byte(flow+"{after: [one]}\n"), folder(t, files), options(),
	); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// A job without a name for its key is not made: nobody could open it.
func TestAnEncryptedJobWantsAKey(t *testing.T) {
	t.Parallel()
	o := options()
	o.Encrypt = true
	plan, err := jobfile.Load(
		[]byte("wasm: m.wasm\nruntime: 1s\n"), folder(t, map[string]string{"m.wasm": "\x00asm"}), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = plan.Job(fakeStore(plan.Sources)); err == nil ||
		!strings.Contains(err.Error(), "16 to 64 letters and digits") {
		t.Errorf("%v", err)
	}
}
