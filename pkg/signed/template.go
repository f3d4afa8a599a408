package signed

import (
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// header begins each template. Its number changes with the meaning of any line: a text of another
// version is another text, and its signature fits nothing here.
const header = "mrs job template 1"

// template is the text that is signed for a job: a line for each thing that changes what is run,
// and nothing of when, where or for whom. Texts are quoted as Go quotes them, so that no value
// can look like a line. Of the signature only Items and Root count.
func template(s grid.Spec, of grid.Signature) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(header)
	line("kind %s", s.Kind)
	line("module %q", string(s.Module.CID))
	for _, arg := range s.Args {
		line("arg %q", arg)
	}
	for _, e := range s.Env {
		line("env %q %q", e.Name, e.Value)
	}
	for _, in := range s.Inputs {
		line("%s", inputLine(in))
	}
	for _, out := range s.Outputs {
		line("output %q", out.Path)
	}
	line("cpus %d memory %d disk %d mflops %d bandwidth %d",
		s.Need.MilliCPUs, s.Need.MemoryBytes, s.Need.DiskBytes, s.Need.MFLOPS, s.Need.NetBps)
	line("os %q arch %q", s.OS, s.Arch)
	line("limit %s", s.TimeLimit)
	line("whole %t", s.Checkpoint.Whole)
	line("items %d %q", of.Items, of.Root)
	return b.String()
}

// inputLine names an input by its place and content.
func inputLine(in grid.Input) string {
	what := "file"
	if in.Dir {
		what = "folder"
	}
	return fmt.Sprintf("input %q %s %q", in.Path, what, string(in.CID))
}

// Hash is the function by which minisign hashes what it signs: BLAKE2b-512.
func Hash() hash.Hash {
	h, err := blake2b.New512(nil)
	if err != nil { // a key that is too long, and there is none
		panic(fmt.Sprintf("hash without a key: %v", err))
	}
	return h
}

// Digest is the Hash of a text, as grid.Signature has it.
func Digest(text string) string {
	sum := blake2b.Sum512([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Covers reports whether a signature is about that job. Of a signed module it says nothing more
// than that the job is one of WASM: its bytes are looked at before it starts.
func Covers(sig grid.Signature, s grid.Spec) bool {
	switch sig.Of {
	case grid.SignedTemplate:
		return Digest(template(s, sig)) == sig.Digest
	case grid.SignedModule:
		return s.Kind == grid.KindWasm
	default:
		return false
	}
}
