package signed_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/signed"
)

// person has a pair of keys of its own, the same in every run.
type person struct {
	public string
	secret minisign.PrivateKey
}

func somebody(t testing.TB, seed byte) person {
	t.Helper()
	public, secret, err := minisign.GenerateKey(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return person{public.String(), secret}
}

// sign signs a text as the minisign tool does.
func (p person) sign(text, comment string) []byte {
	r := minisign.NewReader(strings.NewReader(text))
	_, _ = io.Copy(io.Discard, r) // a text is read to its end
	return r.SignWithComments(p.secret, comment, "signature")
}

func (p person) listed(kinds ...grid.WorkKind) grid.Signer {
	return grid.Signer{Key: p.public, Kinds: kinds}
}

func job(items ...string) grid.Job {
	j := grid.Job{Spec: full(), Count: 1, TTL: time.Second}
	for i, value := range items {
		j.Items = append(j.Items, grid.Item{
			Value:  value,
			Inputs: []grid.Input{{Path: "/own", CID: grid.CID(fmt.Sprint("bafy", i))}},
		})
	}
	return j
}

// signedJob is a job as submit sends it.
func signedJob(t testing.TB, p person, j grid.Job) grid.Job {
	t.Helper()
	prepared, err := signed.Prepare(j)
	if err != nil {
		t.Fatal(err)
	}
	out, err := prepared.Attach(p.sign(prepared.Text, "x "+prepared.Comment()))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func keysOf(t testing.TB, list ...grid.Signer) signed.Keys {
	t.Helper()
	k, err := signed.NewKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatASignatureIsWorth(t *testing.T) {
	t.Parallel()
	ada, bob := somebody(t, 1), somebody(t, 2)
	good := signedJob(t, ada, job()).Spec.Signature
	module := grid.Signature{
		Of: grid.SignedModule, Digest: signed.Digest("bytes"), Text: string(ada.sign("bytes", "")),
	}
	other := good
	other.Digest = signed.Digest("another text")
	old := good
	old.Text = string(minisign.Sign(ada.secret, []byte("text")))
	odd := good
	odd.Text = strings.Replace(odd.Text, "x template", "y template", 1)
	// Somebody whose key has the ID of ada's.
	posing := good
	var forged minisign.Signature
	if err := forged.UnmarshalText(bob.sign("text", "")); err != nil {
		t.Fatal(err)
	}
	forged.KeyID = ada.secret.ID()
	posing.Text = forged.String()

	const wasm, command = grid.KindWasm, grid.KindCommand
	for name, c := range map[string]struct {
		list []grid.Signer
		kind grid.WorkKind
		sig  grid.Signature
		want grid.Reason
	}{
		"nobody is listed": {nil, command, grid.Signature{}, grid.ReasonNone},
		"by whom it is": {
			[]grid.Signer{bob.listed(), ada.listed()}, command, good, grid.ReasonNone,
		},
		"for its kind": {
			[]grid.Signer{ada.listed(command)}, command, good, grid.ReasonNone,
		},
		"for another kind": {
			[]grid.Signer{ada.listed(wasm)}, command, good, grid.ReasonSignerKind,
		},
		"not signed": {
			[]grid.Signer{ada.listed()}, wasm, grid.Signature{}, grid.ReasonUnsigned,
		},
		"by another": {[]grid.Signer{bob.listed()}, command, good, grid.ReasonSigner},
		"of another text": {
			[]grid.Signer{ada.listed()}, command, other, grid.ReasonSignature,
		},
		"of the old kind": {
			[]grid.Signer{ada.listed()}, command, old, grid.ReasonSignature,
		},
		"with another comment": {
			[]grid.Signer{ada.listed()}, command, odd, grid.ReasonSignature,
		},
		"with another's ID": {
			[]grid.Signer{ada.listed()}, command, posing, grid.ReasonSignature,
		},
		"a module": {[]grid.Signer{ada.listed(wasm)}, wasm, module, grid.ReasonNone},
		"a module for a command": {
			[]grid.Signer{ada.listed()}, command, module, grid.ReasonSignature,
		},
		"a reservation": {
			[]grid.Signer{ada.listed()}, grid.KindReservation, grid.Signature{}, 0,
		},
		"nonsense for a text": {
			[]grid.Signer{ada.listed()}, wasm, grid.Signature{Text: "x"}, grid.ReasonSignature,
		},
		"nonsense for its digest": {
			[]grid.Signer{ada.listed()},
			wasm,
			grid.Signature{Text: good.Text, Digest: "x"},
			grid.ReasonSignature,
		},
	} {
		if got := keysOf(t, c.list...).Judge(c.kind, c.sig); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Judging by the digest comes to the same as the library's judging of the whole text.
func TestADigestIsAsGoodAsTheText(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1)
	public, ok := ada.secret.Public().(minisign.PublicKey)
	if !ok {
		t.Fatal("no public key")
	}
	for _, text := range []string{"", "a", strings.Repeat("long ", 100_000)} {
		file := ada.sign(text, "c")
		if !minisign.Verify(public, []byte(text), file) {
			t.Error("the library does not take its own signature")
		}
		if err := signed.Verify(ada.public, signed.Digest(text), file); err != nil {
			t.Error(err)
		}
		h := signed.Hash()
		_, _ = io.WriteString(h, text) // a hash takes everything
		if hex.EncodeToString(h.Sum(nil)) != signed.Digest(text) {
			t.Error("two digests of one text")
		}
		if signed.Verify(ada.public, signed.Digest(text+"x"), file) == nil {
			t.Error("a signature is good for another text")
		}
	}
	if signed.Verify(somebody(t, 2).public, signed.Digest("a"), ada.sign("a", "")) == nil {
		t.Error("a signature is good for another key")
	}
}

func TestASignatureIsAboutOneJob(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1)
	one := signedJob(t, ada, job("a", "b", "c"))
	sig := one.Spec.Signature
	if !signed.Covers(sig, one.Spec) || one.Spec.Validate() != nil {
		t.Fatalf("its own job: %v", one.Spec.Validate())
	}
	swapped := one.Spec
	swapped.Args = []string{"rm"}
	if signed.Covers(sig, swapped) || signed.Covers(grid.Signature{}, one.Spec) {
		t.Error("another job is covered")
	}
	for i, item := range one.Items {
		if !signed.CoversItem(sig, uint32(i), item) {
			t.Errorf("item %d is not covered", i)
		}
		if signed.CoversItem(sig, uint32(i+1)%3, item) ||
			signed.CoversItem(sig, uint32(i)+3, item) {
			t.Errorf("item %d is covered in another place", i)
		}
		for name, bad := range map[string]grid.Item{
			"value":    {Value: "x", Inputs: item.Inputs, Proof: item.Proof},
			"inputs":   {Value: item.Value, Proof: item.Proof},
			"proof":    {Value: item.Value, Inputs: item.Inputs, Proof: "AAAA"},
			"no proof": {Value: item.Value, Inputs: item.Inputs},
		} {
			if signed.CoversItem(sig, uint32(i), bad) {
				t.Errorf("item %d with another %s is covered", i, name)
			}
		}
	}
	plain := signedJob(t, ada, job()).Spec.Signature
	if !signed.CoversItem(plain, 7, grid.Item{}) ||
		signed.CoversItem(plain, 0, grid.Item{Value: "x"}) {
		t.Error("an array by index has items")
	}
	fewer := sig
	fewer.Items = 2
	if signed.Covers(fewer, one.Spec) {
		t.Error("a job of fewer items is covered")
	}
}

func TestEveryNumberOfItemsCanBeProved(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1)
	for _, n := range []int{1, 2, 3, 7, 8, 9, 100} {
		one := signedJob(t, ada, job(make([]string, n)...))
		for i, item := range one.Items {
			if !signed.CoversItem(one.Spec.Signature, uint32(i), item) {
				t.Errorf("item %d of %d is not covered", i, n)
			}
		}
	}
	many := job(make([]string, grid.MaxSignedItems)...)
	one := signedJob(t, ada, many)
	if err := one.Items[len(one.Items)-1].Validate(); err != nil {
		t.Errorf("the longest proof: %v", err)
	}
	if many.Items[0].Proof != "" {
		t.Error("the job that was given was changed")
	}
}

func TestWhatCannotBeSigned(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*grid.Job){
		"reservation": func(j *grid.Job) { j.Spec.Kind = grid.KindReservation },
		"encrypt":     func(j *grid.Job) { j.Spec.Encrypted = true },
		"outputs of":  func(j *grid.Job) { j.Takes = []grid.Take{{}} },
		"parts":       func(j *grid.Job) { j.Split = grid.SplitNever },
		"{{index}}": func(j *grid.Job) {
			j.Spec.Args, j.Redundancy.Replicas = []string{"{{index}}"}, 2
		},
		"divide it": func(j *grid.Job) { j.Items = make([]grid.Item, grid.MaxSignedItems+1) },
	} {
		j := job()
		change(&j)
		if _, err := signed.Prepare(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestSignatureFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1)
	prepared, err := signed.Prepare(job())
	if err != nil {
		t.Fatal(err)
	}
	changed := job()
	changed.Spec.Args = []string{"other"}
	before, err := signed.Prepare(changed)
	if err != nil {
		t.Fatal(err)
	}
	for want, file := range map[string][]byte{
		"at most":          slices.Repeat([]byte("a"), 5<<20),
		"no signature":     []byte("hello"),
		"old kind":         minisign.Sign(ada.secret, []byte(prepared.Text)),
		"changed after it": ada.sign(before.Text, before.Comment()),
	} {
		if _, err := prepared.Attach(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := signed.AttachModule(job(), signed.Digest(""), ada.sign("", "")); err == nil {
		t.Error("a command has a signed module")
	}
}

func TestSignersAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1).public
	for _, text := range []string{
		ada, "ada=" + ada, ada + " wasm", "a.b@c=" + ada + " wasm command",
	} {
		s, err := signed.ParseSigner("  " + text)
		if err != nil || signed.FormatSigner(s) != text {
			t.Errorf("%q becomes %q, %v", text, signed.FormatSigner(s), err)
		}
	}
	short := "RWQ" + strings.Repeat("A", 52)
	for text, want := range map[string]string{
		"": "empty", ada[1:]: "56 characters", short + "!": "copy the second line",
		"=" + ada: "name of 1 to", "a b=" + ada: "56 characters", "a\x1b=" + ada: "name of 1 to",
		ada + " gpu": "no kind of work", strings.Repeat("x", 1<<20): "56 characters",
		strings.Repeat("A", 56): "copy the second line",
	} {
		_, err := signed.ParseSigner(text)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
	if _, err := signed.NewKeys([]grid.Signer{{Key: ada}, {Key: ada}}); err == nil {
		t.Error("a key is there twice")
	}
	if _, err := signed.NewKeys(make([]grid.Signer, 1000)); err == nil ||
		!strings.Contains(err.Error(), "at most 256") {
		t.Errorf("a thousand signers: %v", err)
	}
	bad := []grid.Signer{{Key: ada, Kinds: []grid.WorkKind{grid.KindReservation}}}
	if _, err := signed.NewKeys(bad); err == nil {
		t.Error("reservations are signed")
	}
}

func TestKeysInFiles(t *testing.T) {
	t.Parallel()
	ada := somebody(t, 1)
	public, ok := ada.secret.Public().(minisign.PublicKey)
	if !ok {
		t.Fatal("no public key")
	}
	file, err := public.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{file, []byte(ada.public + "\n")} {
		if got, err := signed.PublicKey(text); got != ada.public || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range [][]byte{nil, []byte("x"), make([]byte, 1<<20)} {
		if _, err := signed.PublicKey(text); err == nil {
			t.Errorf("%.20q is a key", text)
		}
	}
	if id, err := signed.KeyID(
		ada.public,
	); err != nil ||
		!strings.Contains(string(file), strings.TrimLeft(id, "0")) {
		t.Errorf("ID %s, %v, in %s", id, err, file)
	}
}

// Nobody is listed: to judge takes no memory.
func TestJudgingNothingAllocatesNothing(t *testing.T) {
	var k signed.Keys
	n := testing.AllocsPerRun(100, func() {
		if k.Judge(grid.KindCommand, grid.Signature{}) != grid.ReasonNone {
			t.Error("refused")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What strangers send is judged without a panic, and nothing of it is good.
func FuzzJudge(f *testing.F) {
	ada := somebody(f, 1)
	good := signedJob(f, ada, job("a", "b"))
	sig := good.Spec.Signature
	f.Add(uint8(sig.Of), sig.Digest, sig.Text, sig.Items, sig.Root, good.Items[0].Proof, uint32(0))
	f.Add(
		uint8(2),
		sig.Digest,
		"untrusted comment: \n\ntrusted comment: \n",
		uint32(9),
		"",
		"",
		uint32(1),
	)
	keys := keysOf(f, ada.listed())
	f.Fuzz(func(
		t *testing.T, of uint8, digest, text string, items uint32, root, proof string, at uint32,
	) {
		s := grid.Signature{
			Of: grid.SignedPart(of), Digest: digest, Text: text, Items: items, Root: root,
		}
		_ = s.Validate()
		item := good.Items[0]
		item.Proof = proof
		inTree := s.Of != grid.SignedModule && s.Root == sig.Root && s.Items == sig.Items
		if signed.CoversItem(s, at, item) && inTree && at != 0 {
			t.Errorf("the first item is covered in place %d", at)
		}
		// In capitals it is the same digest, and Validate refuses it.
		if keys.Judge(grid.KindCommand, s) == grid.ReasonNone &&
			(strings.ToLower(digest) != sig.Digest || digest != sig.Digest && s.Validate() == nil) {
			t.Error("a signature nobody has made is good")
		}
		_ = signed.Covers(s, good.Spec)
	})
}

// What owners write is read or refused, and what is read reads the same again.
func FuzzSigner(f *testing.F) {
	f.Add("ada=" + somebody(f, 1).public + " wasm")
	f.Add(strings.Repeat("A", 2*ed25519.PublicKeySize))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := signed.ParseSigner(text)
		if err != nil {
			return
		}
		again, err := signed.ParseSigner(signed.FormatSigner(s))
		if err != nil || signed.FormatSigner(again) != signed.FormatSigner(s) {
			t.Errorf("%q becomes %q, %v", text, signed.FormatSigner(again), err)
		}
		if _, err = signed.NewKeys([]grid.Signer{s}); err != nil {
			t.Error(err)
		}
	})
}
