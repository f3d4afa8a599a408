package agent

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Pen signs what tests want to have signed.
type Pen struct {
	Public string
	secret minisign.PrivateKey
}

// NewPen makes one.
func NewPen(t *testing.T) Pen {
	t.Helper()
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Pen{public.String(), secret}
}

// Sign signs what has a digest.
func (p Pen) Sign(t *testing.T, digest string) string {
	t.Helper()
	raw, err := hex.DecodeString(digest)
	if err != nil {
		t.Fatal(err)
	}
	var s minisign.Signature
	if err = s.UnmarshalText(minisign.SignWithComments(p.secret, raw, "t", "u")); err != nil {
		t.Fatal(err)
	}
	s.Algorithm = minisign.HashEdDSA
	return s.String()
}

// Job is a job whose template the pen has signed.
func (p Pen) Job(t *testing.T, job grid.Job) grid.Job {
	t.Helper()
	prepared, err := signed.Prepare(job)
	if err != nil {
		t.Fatal(err)
	}
	job, err = prepared.Attach([]byte(p.Sign(t, signed.Digest(prepared.Text))))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// Whatever has become of an attempt's files since they were fetched: nothing starts but what was
// signed.
func TestOnlyWhatWasSignedStarts(t *testing.T) {
	t.Parallel()
	ada, bob := NewPen(t), NewPen(t)
	write := func(text string, path ...string) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			t.Helper()
			at := filepath.Join(append([]string{b.cfg.StateDir}, path...)...)
			found, err := filepath.Glob(at)
			if err != nil || len(found) != 1 {
				t.Fatalf("%s: %v, %v", at, found, err)
			}
			if err = os.WriteFile(found[0], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	template := grid.Signature{Of: grid.SignedTemplate, Digest: signed.Digest("the template")}
	template.Text = ada.Sign(t, template.Digest)
	module := grid.Signature{Of: grid.SignedModule, Digest: signed.Digest("module")}
	module.Text = ada.Sign(t, module.Digest)
	other := grid.Signature{Of: grid.SignedModule, Digest: signed.Digest("another one")}
	other.Text = ada.Sign(t, other.Digest)
	byBob := template
	byBob.Text = bob.Sign(t, byBob.Digest)
	for name, c := range map[string]struct {
		sig    grid.Signature
		change func(*testing.T, *bench)
		want   string // of the refusal; empty: it starts
	}{
		"a template":       {sig: template},
		"a module":         {sig: module},
		"a swapped module": {template, write("modulX", "modules", "*"), "the module: "},
		"a longer module": {
			template, write("module and more", "modules", "*"), "the module: ",
		},
		"a swapped signed module": {
			module, write("modulX", "modules", "*"), "the module is another one",
		},
		"a signature of another one": {sig: other, want: "the module is another one"},
		"a changed input": {
			template, write("inpuX", "attempts", "*", "in-0"), "the input /in/x: ",
		},
		"a module with other inputs": {module, write("inpuX", "attempts", "*", "in-0"), ""},
		"not signed":                 {want: "the job is not signed"},
		"signed by another":          {sig: byBob, want: "signer is not on its list"},
		"a key that left the list": {template, func(_ *testing.T, b *bench) {
			b.inForce.mu.Lock()
			defer b.inForce.mu.Unlock()
			b.inForce.terms.Signers = []grid.Signer{{Key: bob.Public}}
		}, "signer is not on its list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := plans(t, 2)[1]
			conf.Signers = []grid.Signer{{Key: ada.Public}}
			b := newBenchOf(t, conf)
			b.stage()
			if c.change != nil {
				c.change(t, b)
			}
			b.order(step.StartAttempt{
				Attempt: testAttempt, LeaseUntil: b.clock.now().Add(time.Hour), Vouched: true,
				Task: grid.Task{
					ID:        testAttempt.Task,
					Kind:      grid.KindWasm,
					Signature: c.sig,
					Args:      []string{"print=x"},
					Module:    b.store(t, "module").CID,
					Inputs:    []grid.Input{{Path: "/in/x", CID: b.store(t, "input").CID}},
				},
			})
			if c.want == "" {
				b.wantExit(grid.CauseExited)
				return
			}
			text := b.wantExit(grid.CauseSandbox).Text
			if !strings.Contains(text, c.want) || !strings.Contains(text, "runs signed work only") {
				t.Errorf("the end says %q, want %q", text, c.want)
			}
		})
	}
}

// A memory that was saved elsewhere holds a program that nobody has signed.
func TestNoMemoryIsTakenForSigned(t *testing.T) {
	t.Parallel()
	ada := NewPen(t)
	conf := plans(t, 2)[1]
	conf.Signers = []grid.Signer{{Key: ada.Public}}
	b := newBenchOf(t, conf)
	sig := grid.Signature{Of: grid.SignedTemplate, Digest: signed.Digest("x")}
	sig.Text = ada.Sign(t, sig.Digest)
	task := grid.Task{
		Kind: grid.KindCommand, Signature: sig, Checkpoint: grid.Saving{Whole: true},
	}
	if err := b.work.vouchFor(t.Context(), task, &work{}); err != nil {
		t.Errorf("one that begins anew: %v", err)
	}
	if err := b.work.vouchFor(t.Context(), task, &work{statePath: "/state"}); err == nil {
		t.Error("it goes on from a foreign memory")
	}
}
