package main

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRowsOfTheTables(t *testing.T) {
	t.Parallel()
	const page = `# Threats

## Who trusts whom

| who | trusts |
|-|-|
| the owner | nobody |

## A stranger

| attack | what bounds it | test |
|-|-|-|
| knocks | a door | ` + "`TestDoor`, `TestBell`" + ` |
| knocks again | the same door | the same, ` + "`TestPatience`" + ` |

text
| no row |
`
	got := attacksIn(page)
	want := []attack{
		{"A stranger", "knocks", []string{"TestDoor", "TestBell"}},
		{"A stranger", "knocks again", []string{"TestPatience", "TestDoor", "TestBell"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(attack{})); diff != "" {
		t.Error(diff)
	}
}

// Every attack of the documents has a test that there is, and the short run is a part of them.
func TestTheDocumentsCanBeTried(t *testing.T) {
	t.Chdir("../..")
	attacks, err := readAttacks(documents()...)
	if err != nil {
		t.Fatal(err)
	}
	known, err := findTests(".")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (lab{known: known}).batches(attacks); err != nil {
		t.Error(err)
	}
	for _, section := range shortSections() {
		if !slices.ContainsFunc(attacks, func(a attack) bool { return a.section == section }) {
			t.Errorf("no attack is below %q", section)
		}
	}
}

// Each wall is in the code as the list says, and the test that watches it tries a row.
func TestTheWallsAreThere(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(wallsFile)
	if err != nil {
		t.Fatal(err)
	}
	walls, err := readWalls(string(text))
	if err != nil || len(walls) == 0 {
		t.Fatalf("%d walls, %v", len(walls), err)
	}
	attacks, err := readAttacks(documents()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range walls {
		dir := t.TempDir()
		if _, err = w.removed(dir); err != nil {
			t.Error(err)
			continue
		}
		left := usedImports(t, filepath.Join(dir, "edited.go"))
		for _, name := range usedImports(t, w.file) {
			if !slices.Contains(left, name) {
				t.Errorf("%s: without it nothing uses %s in %s", w.name, name, w.file)
			}
		}
		if !slices.ContainsFunc(attacks, func(a attack) bool {
			return slices.Contains(a.tests, w.test)
		}) {
			t.Errorf("%s: no attack of the documents is tried by %s", w.name, w.test)
		}
	}
	if _, err = readWalls("name\nfile\nfrom\n"); err == nil {
		t.Error("half a wall is read")
	}
	moved := wall{name: "gone", file: "go.mod", from: "no such line", test: "TestX"}
	_, err = moved.removed(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), wallsFile) {
		t.Errorf("a wall that is no more there: %v", err)
	}
}

// usedImports are the packages that a file uses by the last part of their paths. An import that
// nothing uses is the error that an edit makes most easily.
func usedImports(t *testing.T, file string) (used []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		of, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		name, is := of.X.(*ast.Ident)
		if is && !slices.Contains(used, name.Name) && slices.ContainsFunc(
			tree.Imports, func(i *ast.ImportSpec) bool {
				return path.Base(strings.Trim(i.Path.Value, `"`)) == name.Name
			}) {
			used = append(used, name.Name)
		}
		return true
	})
	return used
}

// standIn is a small project with a wall, and a test that watches it or does not.
func standIn(t *testing.T, watches bool) lab {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	check := "_ = Open()"
	if watches {
		check = `if Open() { t.Error("it is open") }`
	}
	for name, text := range map[string]string{
		"go.mod":  "module standin\n\ngo 1.24\n",
		"door.go": "package standin\n\nfunc Open() bool { return !shut }\n\nconst shut = true\n",
		"door_test.go": "package standin\n\nimport \"testing\"\n\nfunc TestDoor(t *testing.T) { " +
			check + " }\n\nfunc TestMoat(t *testing.T) { t.Skip(\"no water\") }\n",
		wallsFile: "door\ndoor.go\nconst shut = true\nconst shut = false\nTestDoor\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := findTests(".")
	if err != nil {
		t.Fatal(err)
	}
	return lab{known: known, out: new(bytes.Buffer)}
}

func TestWhatIsCounted(t *testing.T) {
	l := standIn(t, true)
	got, err := l.try(t.Context(), []attack{
		{"a castle", "by the door", []string{"TestDoor"}},
		{"a castle", "by the moat", []string{"TestDoor", "TestMoat"}},
	}, nil)
	if err != nil || got != (count{held: 1, untried: 1}) {
		t.Fatalf("%+v, %v", got, err)
	}
	want := "a castle\n  held: by the door\n  not tried: by the moat (TestMoat)\n"
	if said := l.out.(*bytes.Buffer).String(); said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
	line := "hostile: 2 attacks, 1 held, 0 broke through, 1 not tried on this machine"
	if got.String() != line {
		t.Errorf("%s, want %s", got, line)
	}
	for name, tests := range map[string][]string{
		"an attack whose test is not there": {"TestRoof"}, "an attack without a test": nil,
	} {
		if _, err := l.try(t.Context(), []attack{{"", "flies", tests}}, nil); err == nil {
			t.Errorf("%s counts", name)
		}
	}
}

// A removed wall is noticed where its test watches it; where it does not, that is an error. The
// file itself is as it was.
func TestWallsThatAreRemoved(t *testing.T) {
	for _, watches := range []bool{true, false} {
		l := standIn(t, watches)
		err := l.withoutWalls(context.Background(), "all")
		if watches && err != nil || !watches && !errors.Is(err, errHeld) {
			t.Errorf("watched: %t: %v\n%s", watches, err, l.out)
		}
		text, err := os.ReadFile("door.go")
		if err != nil || !strings.Contains(string(text), "const shut = true") {
			t.Errorf("the wall is gone for good: %s, %v", text, err)
		}
		if err := l.withoutWalls(context.Background(), "window"); err == nil {
			t.Error("a wall that there is not is removed")
		}
	}
}

// A process that a test left behind does not keep the lab waiting.
func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell on this system")
	}
	attempt := exec.Command(sh, "-c", "sleep 100 & echo $!")
	ended := make(chan error, 1)
	var said []byte
	go func() {
		l := lab{linger: 10 * time.Millisecond, out: new(bytes.Buffer)}
		var failure, broken error
		said, failure, broken = l.watch(attempt, "here")
		ended <- errors.Join(failure, broken)
	}()
	select {
	case err = <-ended:
		if !errors.Is(err, exec.ErrWaitDelay) {
			t.Errorf("that something was left behind is not told: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the lab waits")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(said)))
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.FindProcess(pid)
	if err == nil {
		err = left.Kill()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestOnlyRootChangesTheUser(t *testing.T) {
	t.Parallel()
	if a, err := accountOf(""); a != nil || err != nil {
		t.Errorf("nobody else: %+v, %v", a, err)
	}
	if _, err := accountOf("no such user"); err == nil {
		t.Error("a user that there is not")
	}
}
