package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/crypt"
	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const (
	secretName = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	otherName  = "abcdefghijklmnopqrstuvwxyz"
)

// jobKeys are the key of a job of the bench's own, and as it is encrypted for a site.
func (b *bench) jobKeys(name string, site grid.SiteID) (grid.JobKey, []byte) {
	b.t.Helper()
	key, err := b.JobKey(name)
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := p2p.KeyOf(site)
	if err != nil {
		b.t.Fatal(err)
	}
	wrapped, err := crypt.Wrap(key, public)
	if err != nil {
		b.t.Fatal(err)
	}
	return key, wrapped
}

// encrypted stores a text as content of an encrypted job.
func (b *bench) encrypted(key grid.JobKey, text string) data.Ref {
	b.t.Helper()
	ref, err := b.AddEncrypted(b.t.Context(), key, strings.NewReader(text), false)
	if err == nil {
		err = b.KeepUpload(ref.CID)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

// tampered are contents that are not what their job has encrypted.
func (b *bench) tampered(key grid.JobKey, text string) map[string]data.Ref {
	b.t.Helper()
	another, _ := b.jobKeys(otherName, b.Self())
	good := b.content(b.encrypted(key, text).CID)
	changed := []byte(good)
	changed[len(changed)-1] ^= 1
	dir, err := b.data.AddDir(b.t.Context(), b.t.TempDir())
	if err == nil {
		err = b.KeepUpload(dir.CID)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return map[string]data.Ref{
		"changed": b.store(b.t, string(changed)), "cut short": b.store(b.t, good[:len(good)-9]),
		"of another job": b.encrypted(another, text), "in the clear": b.store(b.t, text),
		"a directory": dir,
	}
}

// restage forgets what was heard, and stages.
func (b *bench) restage(e step.Stage) step.Staged {
	b.t.Helper()
	b.mu.Lock()
	b.heard = nil
	b.mu.Unlock()
	e.Attempt, e.From = testAttempt, b.Self()
	b.order(e)
	return await[step.Staged](b)
}

// gone discards what was staged.
func (b *bench) gone() {
	b.t.Helper()
	b.order(step.Discard{Attempt: testAttempt})
	eventually(b.t, "it is gone", func() bool { return len(b.left(b.t, "attempts")) == 0 })
}

// An input that was changed, cut short, or is none of the job's is not laid out, nor is half of it,
// and the attempt does not start: a person reads why. So it is with a module, and with a key for
// another site.
func TestTamperedInputsAreRefused(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	key, wrapped := b.jobKeys(secretName, b.Self())
	text := strings.Repeat("input ", 50_000)
	good := b.encrypted(key, text)
	in := func(ref data.Ref, dir bool) grid.Input {
		return grid.Input{Path: "/in", CID: ref.CID, Bytes: ref.Bytes, Dir: dir}
	}
	want := func(name string, staged step.Staged, why string) {
		t.Helper()
		if !strings.Contains(staged.Problem, why) || staged.Local {
			t.Errorf("%s: %+v, want %q", name, staged, why)
		}
		for _, path := range b.left(t, "attempts/*") {
			if strings.HasPrefix(filepath.Base(path), "in-") {
				t.Errorf("%s: %s is left", name, path)
			}
		}
		b.gone()
	}
	staged := b.restage(step.Stage{Inputs: []grid.Input{in(good, false)}, Key: wrapped})
	laid, err := os.ReadFile(b.work.attemptDir(testAttempt) + "/in-0")
	if staged.Problem != "" || err != nil || string(laid) != text {
		t.Fatalf("staged %+v, %d bytes, %v", staged, len(laid), err)
	}
	b.gone()
	for name, bad := range b.tampered(key, text) {
		want(name, b.restage(step.Stage{Inputs: []grid.Input{in(bad, false)}, Key: wrapped}),
			"no encrypted content of this job, or damaged")
		want("a module "+name, b.restage(step.Stage{Module: in(bad, false), Key: wrapped}),
			"no encrypted content of this job, or damaged")
	}
	want("no archive", b.restage(step.Stage{Inputs: []grid.Input{in(good, true)}, Key: wrapped}),
		"no directory")
	other, err := p2p.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	_, foreign := b.jobKeys(secretName, other.Site())
	for name, key := range map[string][]byte{"another site's": foreign, "nonsense": []byte("x")} {
		staged := b.restage(step.Stage{Inputs: []grid.Input{in(good, false)}, Key: key})
		want(name, staged, "open the job's key: the key does not open it")
	}
}

// A site goes on from an encrypted checkpoint, and refuses one that was tampered with.
func TestTamperedCheckpointsAreRefused(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	key, wrapped := b.jobKeys(secretName, b.Self())
	plain := b.content(b.sealed("60000\n", 8, asItIs).CID)
	as := func(number uint64, ref data.Ref) grid.Checkpoint {
		return grid.Checkpoint{Number: number, CID: ref.CID, Bytes: ref.Bytes}
	}
	good := as(8, b.encrypted(key, plain))
	for name, bad := range b.tampered(key, b.content(b.sealed("60000\n", 9, asItIs).CID)) {
		staged := b.restage(step.Stage{
			Work: savedTask().WorkDigest(), Key: wrapped,
			Saved: []grid.Checkpoint{as(9, bad), good},
		})
		if staged.Problem != "" || staged.Saved != 8 || len(staged.Refused) != 1 ||
			staged.Refused[0].Reason != grid.ReasonSavedDamaged {
			t.Errorf("%s: staged %+v", name, staged)
		}
		b.gone()
		pulled := b.pull(step.Pull{
			Attempt: testAttempt, Checkpoint: as(9, bad), Work: savedTask().WorkDigest(),
			From: b.Self(), Key: key,
		})
		if pulled.Reason != grid.ReasonSavedDamaged {
			t.Errorf("%s: pulled %+v", name, pulled)
		}
	}
	pulled := b.pull(step.Pull{
		Attempt: testAttempt, Checkpoint: good, Work: savedTask().WorkDigest(), From: b.Self(),
		Key: key,
	})
	if pulled.Reason != grid.ReasonNone || pulled.Problem != "" {
		t.Errorf("pulled %+v", pulled)
	}
	staged := b.restage(step.Stage{
		Work: savedTask().WorkDigest(), Saved: []grid.Checkpoint{good}, Key: wrapped,
	})
	state, err := os.ReadFile(b.work.attemptDir(testAttempt) + "/state-8")
	if staged.Saved != 8 || err != nil || string(state) != "60000\n" {
		t.Errorf("staged %+v, the state is %q, %v", staged, state, err)
	}
}

// What a site has left and is none of the job's encrypted content is no result: the submitter's
// machine hears that it is forged, and keeps nothing of it.
func TestTamperedOutputsAreForged(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	key, _ := b.jobKeys(secretName, b.Self())
	collect := func(ref data.Ref) step.Collected {
		return b.collect(step.Collect{
			Attempt: testAttempt, Outputs: []grid.CID{ref.CID}, From: b.Self(), Key: key,
		})
	}
	for name, bad := range b.tampered(key, strings.Repeat("output ", 20_000)) {
		if got := collect(bad); !got.Forged || got.Local || got.Problem == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if owners := b.pins.ownersOf(bad.CID); len(owners) > 0 {
			t.Errorf("%s is kept for %v", name, owners)
		}
	}
	if got := collect(b.encrypted(key, "output")); got.Forged || got.Problem != "" {
		t.Errorf("as it should be: %+v", got)
	}
}

// What an attempt leaves is encrypted for its job, with the x bit of what may run, and a directory
// as one file; an attempt in the clear leaves it as it is.
func TestWhatAnEncryptedAttemptLeaves(t *testing.T) {
	b := newBench(t, fake.New(fake.Config{}))
	key, _ := b.jobKeys(secretName, b.Self())
	dir := t.TempDir()
	program := dir + "/program"
	if err := os.WriteFile(program, []byte("plain"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, isDir := range []bool{false, true} {
		path := program
		if isDir {
			path = dir
		}
		ref, err := b.addPath(t.Context(), key, path, isDir)
		if err != nil || ref.Dir || ref.Executable == isDir {
			t.Fatalf("%+v, %v", ref, err)
		}
		text := b.content(ref.CID)
		if strings.Contains(text, "plain") || strings.Contains(text, "program") {
			t.Errorf("it is in the clear: %.40q", text)
		}
		body, err := b.OpenContent(t.Context(), key, ref.CID)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(body)
		err = errors.Join(err, body.Close())
		if err != nil || !bytes.Contains(plain, []byte("plain")) {
			t.Errorf("%d bytes come back, %v", len(plain), err)
		}
	}
}

// The driver sends the award of an encrypted job with its key encrypted for that site, and sends
// none to a site that has no ed25519 key in its name.
func TestAwardsCarryAKeyForTheirSiteAlone(t *testing.T) {
	t.Parallel()
	var sent []protocol.Message
	one, two := mates(t, func(c *Config) {
		c.Taps.Sending = func(_ grid.SiteID, m protocol.Message) bool {
			sent = append(sent, m)
			return true
		}
	})
	key, _ := one.jobKeys(secretName, two.Self())
	one.perform(step.Send{To: two.Self(), Message: protocol.Award{Job: "x"}, Key: key})
	one.perform(step.Send{To: "nobody", Message: protocol.Award{Job: "x"}, Key: key})
	if len(sent) != 1 {
		t.Fatalf("%d messages are sent", len(sent))
	}
	award, _ := sent[0].(protocol.Award)
	if got, err := two.openKey(award.Key); err != nil || got != key {
		t.Errorf("its site cannot open the key: %v", err)
	}
	if _, err := one.openKey(award.Key); !errors.Is(err, crypt.ErrKey) {
		t.Errorf("another site opens it: %v", err)
	}
	if n := one.Known().Counters["key_not_sent"]; n != 1 {
		t.Errorf("%d keys were not sent", n)
	}
	if m, err := one.addressed(step.Send{To: two.Self(), Message: protocol.Cancel{}}); err != nil ||
		m != protocol.Message(protocol.Cancel{}) {
		t.Errorf("another message: %v, %v", m, err)
	}
}
