package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// module writes a module and goes there.
func module(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/tiny\n\ngo 1.26\n"
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func survivorsOf(
	t *testing.T, o order, known map[string]string, pkg string,
) (score, []string) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	l := laboratory{dir: t.TempDir(), root: root, least: time.Second}
	s, err := l.measure(context.Background(), o, known, pkg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range s.survivors {
		names = append(names, m.String())
	}
	return s, names
}

// TestAPackageIsMeasured tries all mutants of functions with and without results, with a
// label and of a variable: exactly those survive that the tests do not look at.
func TestAPackageIsMeasured(t *testing.T) {
	module(t, map[string]string{
		"a.go": `package tiny

import "errors"

var start = 3

func sum(n int) (total int) {
	total = start
	for i := range n {
		total += i
	}
	return total
}

func log(n int) { last = n }

var last int

func third(list []int) int {
rows:
	for i, v := range list {
		if i < 2 {
			continue rows
		}
		return v
	}
	return 0
}

func must(n int) int {
	if n > 0 {
		return n
	}
	panic(errors.New("none"))
}
`,
		"a_test.go": `package tiny

import "testing"

func TestAll(t *testing.T) {
	log(4)
	if sum(4) != 9 || must(1) != 1 {
		t.Error("wrong")
	}
	if third([]int{5, 6, 7, 8}) != 7 {
		t.Error("not the third")
	}
}
`,
	})
	s, got := survivorsOf(t, order{n: 100, seed: 1}, map[string]string{
		"a.go must: `if n > 0 {` -> `if n >= 0 {`": "nobody calls it with 0",
	}, ".")
	want := []string{
		"a.go log: `func log(n int) { last = n }` -> `func log(n int) { _ = n }`",
		"a.go third: `return 0` -> `return 1`",
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("survivors (-want +got):\n%s", diff)
	}
	if s.equivalents != 1 || s.killed < 10 {
		t.Errorf("%d equivalent, %d killed", s.equivalents, s.killed)
	}
}

// TestAnEndlessMutantIsKilled: the tests of a mutant are stopped.
func TestAnEndlessMutantIsKilled(t *testing.T) {
	module(t, map[string]string{
		"a.go": "package tiny\n\nfunc f(n int) {\n\tfor n > 0 {\n\t\tn--\n\t}\n}\n",
		"a_test.go": "package tiny\n\nimport \"testing\"\n\n" +
			"func TestF(t *testing.T) { f(2) }\n",
	})
	s, got := survivorsOf(t, order{n: 100, seed: 1}, map[string]string{}, ".")
	if s.killed == 0 {
		t.Errorf("none killed, survivors: %v", got)
	}
	if slices.Contains(got, "a.go f: `n--` -> `{}`") {
		t.Error("one that never ends survived")
	}
}

func TestQuickTestsComeFirst(t *testing.T) {
	out := "--- PASS: TestSlow (9.00s)\n    --- PASS: TestSlow/sub (0.00s)\n" +
		"--- PASS: TestB (0.80s)\n--- PASS: TestA (0.10s)\n--- SKIP: TestC (0.00s)\nPASS\n"
	got, quick := quickOnes(durations(out))
	if want := []string{"TestA", "TestB", "TestSlow"}; !slices.Equal(got, want) || quick != 2 {
		t.Errorf("quickOnes() = %q, %d of them quick; want %q, 2", got, quick, want)
	}
}

// TestAMutantIsTheSameInItsChildren: a process that a test starts of itself is the mutant as
// well, though it is given no environment.
func TestAMutantIsTheSameInItsChildren(t *testing.T) {
	module(t, map[string]string{
		"a.go": "package tiny\n\nfunc sum(a, b int) int { return a + b }\n",
		"a_test.go": `package tiny

import (
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Args[1] == "child" {
		os.Exit(sum(2, 3))
	}
	os.Exit(m.Run())
}

func TestChild(t *testing.T) {
	child := exec.Command(os.Args[0], "child")
	child.Env = []string{}
	_ = child.Run()
	if child.ProcessState.ExitCode() != 5 {
		t.Error("wrong")
	}
}
`,
	})
	s, got := survivorsOf(t, order{n: 100, seed: 1}, nil, ".")
	if s.killed == 0 || len(got) > 0 {
		t.Errorf("%d killed, survivors: %v", s.killed, got)
	}
}

// TestTheTestsThatReachAMutantDo: what a test comes through meets that test alone, what none
// comes through in its own process meets them all.
func TestTheTestsThatReachAMutantDo(t *testing.T) {
	module(t, map[string]string{
		"a.go": `package tiny

var least = 1

func double(n int) int {
	return n + n
}

func half(n int) int {
	if n < least {
		return 0
	}
	return n / 2
}

func sign(n int) int {
	switch {
	case n < -1:
		return -1
	}
	return 1
}
`,
		"a_test.go": `package tiny

import "testing"

func TestOne(t *testing.T) {
	if sign(1) != 1 {
		t.Error("wrong")
	}
}

func TestMinusTwo(t *testing.T) { sign(-2) }

func TestDouble(t *testing.T) {
	if double(4) != 8 {
		t.Error("wrong")
	}
}

func TestHalf(t *testing.T) {
	if half(6) != 3 {
		t.Error("wrong")
	}
}
`,
	})
	o := order{n: 100, seed: 1, reached: true}
	_, got := survivorsOf(t, o, nil, ".")
	slices.Sort(got)
	want := []string{
		"a.go half: `if n < least {` -> `if false && (n < least) {`",
		"a.go half: `if n < least {` -> `if n <= least {`",
		"a.go half: `return 0` -> `return 1`",
		"a.go sign: `case n < -1:` -> `case n < -2:`",
		"a.go sign: `case n < -1:` -> `case n <= -1:`",
		"a.go sign: `return -1` -> `return -2`",
		"a.go var: `var least = 1` -> `var least = 2`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("survivors (-want +got):\n%s", diff)
	}
	l := laboratory{dir: t.TempDir(), root: ".", least: time.Second}
	measured, err := l.prepare(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if measured.reach, err = l.reached(t.Context(), measured, "."); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[int][]string{
		6:  {"TestDouble"},
		13: {"TestHalf"},
		17: {"TestMinusTwo", "TestOne"},
		11: {"TestDouble", "TestHalf", "TestMinusTwo", "TestOne"}, // comes through in none
	} {
		names := measured.reaching(mutant{file: "a.go", head: line})
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("line %d meets %v, want %v", line, names, want)
		}
	}
}

// Lines of a function that read alike are told apart, and so are what is known of them.
func TestLinesThatReadAlike(t *testing.T) {
	module(t, map[string]string{
		"a.go": `package tiny

func count(n int) (m int) {
	m = 1
	if n > 5 {
		m = 1
	}
	return m
}
`,
		"a_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestCount(t *testing.T) {\n" +
			"\tif count(1) != 1 || count(9) != 1 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n",
	})
	_, got := survivorsOf(t, order{n: 100, seed: 1}, map[string]string{
		"a.go count(2): `m = 1` -> `_ = 1`": "it is 1 already",
	}, ".")
	slices.Sort(got)
	want := []string{
		"a.go count: `if n > 5 {` -> `if false && (n > 5) {`",
		"a.go count: `if n > 5 {` -> `if n <= 5 {`",
		"a.go count: `if n > 5 {` -> `if n > 6 {`",
		"a.go count: `if n > 5 {` -> `if n >= 5 {`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("survivors (-want +got):\n%s", diff)
	}
}

// A test that fails when its lines are counted meets all mutants, and the others those that
// they reach.
func TestATestThatCannotBeCountedMeetsAll(t *testing.T) {
	module(t, map[string]string{
		"a.go": "package tiny\n\nfunc one() int { return 1 }\n\nfunc two() int { return 2 }\n",
		"a_test.go": `package tiny

import "testing"

func TestBoth(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Fatal("it is counted")
	}
	if one()+two() != 3 {
		t.Error("wrong")
	}
}

func TestTwo(t *testing.T) { two() }
`,
	})
	s, got := survivorsOf(t, order{n: 100, seed: 1, reached: true}, nil, ".")
	if s.killed != 2 || len(got) > 0 {
		t.Errorf("%d killed, survivors: %v", s.killed, got)
	}
}

// A package without tests is measured by those of another, each of whose tests meets what it
// comes through.
func TestWiderTests(t *testing.T) {
	module(t, map[string]string{
		"low/low.go": "package low\n\nvar start = 1\n\nfunc One() int { return 1 + start }\n\n" +
			"func Two() int { return 2 }\n",
		"a.go": "package tiny\n",
		"a_test.go": `package tiny

import (
	"testing"

	"example.org/tiny/low"
)

func TestOne(t *testing.T) {
	if low.One() != 2 {
		t.Error("wrong")
	}
}

func TestTwo(t *testing.T) { low.Two() }
`,
	})
	for _, reached := range []bool{false, true} {
		o := order{n: 100, seed: 1, wide: []string{"."}, reached: reached}
		s, got := survivorsOf(t, o, nil, "./low")
		want := []string{"low/low.go Two: `func Two() int { return 2 }` -> `func Two() int { return 3 }`"}
		if s.killed != 0 || s.widely != 3 || !slices.Equal(got, want) {
			t.Errorf("reached %v: %d killed, %d by wider tests, survivors: %q",
				reached, s.killed, s.widely, got)
		}
	}
}
