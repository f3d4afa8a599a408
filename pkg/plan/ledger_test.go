package plan

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The ledger records what plans became in many random plays, as hashes: each answer, each change
// and the plan after each operation. What the planner promises other tests state; this one shows
// whether it still decides the same where several decisions would keep its promises.
var (
	updateLedger = flag.Bool("update", false, "write the golden ledger anew")
	ledgerTrace  = flag.Int("ledger.trace", -1,
		"a play whose operations are logged, to see where two versions part")
)

func TestLedger(t *testing.T) {
	const plays = 48
	file := filepath.Join("testdata", "ledger.txt")
	var text strings.Builder
	for seed := range uint64(plays) {
		fmt.Fprintf(&text, "%d %016x\n", seed, playLedger(t, seed))
	}
	if *updateLedger {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"),
		strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("the planner decides something else than before (-before +now); see one play with"+
			" -ledger.trace, and if that is right: go test ./pkg/plan -run TestLedger -update\n%s", diff)
	}
}

// playLedger is the hash of a play.
func playLedger(t *testing.T, seed uint64) uint64 {
	t.Helper()
	random, hash := rand.New(rand.NewPCG(8, seed)), fnv.New64a()
	w := newWorld(seeded{t, seed}, random.IntN)
	write := func(what ...any) {
		line := fmt.Sprintf("%+v\n", what)
		if *ledgerTrace == int(seed) {
			t.Log(line)
		}
		_, _ = hash.Write([]byte(line)) // a hash never fails
	}
	w.hear = write
	for range 20 + int(seed%8)*10 {
		w.step()
		next, _ := w.p.Next()
		write(w.p.Commitments(), w.p.Offers(), next, w.p.Promises(), w.p.Free(w.now, w.now.Add(secs(30))))
	}
	return hash.Sum64()
}
