package count_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/examples/quickstart/census/count"
)

func source(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestDirectory(t *testing.T) {
	tests := []struct {
		name string
		dir  fstest.MapFS
		want count.Census
	}{
		{"empty directory", fstest.MapFS{}, count.Census{Package: "p"}},
		{
			"no functions, no line feed at the end",
			fstest.MapFS{"a.go": source("package p\n\nvar x int")},
			count.Census{Package: "p", Files: 1, Lines: 3},
		},
		{
			"methods carry their receiver, generic ones too",
			fstest.MapFS{
				"a.go": source("package p\ntype T[K any] struct{}\nfunc (t *T[K]) Do() {\n\tprintln()\n}\n"),
			},
			count.Census{
				Package: "p", Files: 1, Lines: 5, Functions: 1,
				Longest: count.Function{Name: "T.Do", File: "a.go", Lines: 3},
			},
		},
		{
			"of equally long ones the first, function values do not count",
			fstest.MapFS{
				"b.go": source("package p\nfunc b() {\n}\n"),
				"a.go": source("package p\nfunc a() {\n}\nvar f = func() {\n\n\n\n}\n"),
			},
			count.Census{
				Package: "p", Files: 2, Lines: 11, Functions: 2,
				Longest: count.Function{Name: "a", File: "a.go", Lines: 2},
			},
		},
		{
			"other files and folders are left out",
			fstest.MapFS{
				"a.go": source("package p\n"), "README": source("func x() {}\n"),
				"sub/b.go": source("package sub\nfunc b() {}\n"),
			},
			count.Census{Package: "p", Files: 1, Lines: 1},
		},
		{
			"line directives do not lengthen a function",
			fstest.MapFS{"a.go": source("package p\nfunc a() {\n//line other.go:1000\n}\n")},
			count.Census{
				Package: "p", Files: 1, Lines: 4, Functions: 1,
				Longest: count.Function{Name: "a", File: "a.go", Lines: 3},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := count.Directory(test.dir, "p", 3)
			if err != nil {
				t.Fatalf("Directory: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Directory (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDirectoryRefusesWhatIsNoGo(t *testing.T) {
	_, err := count.Directory(fstest.MapFS{"a.go": source("no go at all")}, "p", 1)
	if err == nil || !strings.Contains(err.Error(), "a.go") {
		t.Errorf("Directory of a broken file: %v, want an error that names it", err)
	}
}

// The package counts itself: what it says of a real directory has to agree with
// a look at the text.
func TestDirectoryCountsItself(t *testing.T) {
	got, err := count.Directory(os.DirFS("."), "count", 1)
	if err != nil {
		t.Fatal(err)
	}
	var lines, functions int
	for _, file := range []string{"count.go", "count_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(text), "\n")
		functions += strings.Count("\n"+string(text), "\nfunc ")
	}
	if got.Files != 2 || got.Lines != lines || got.Functions != functions {
		t.Errorf("Directory = %+v, want 2 files, %d lines, %d functions", got, lines, functions)
	}
}

func TestMerge(t *testing.T) {
	got := count.Merge("both", []count.Census{
		{
			Package: "a", Files: 1, Lines: 10, Functions: 2,
			Longest: count.Function{Name: "f", File: "f.go", Lines: 5},
		},
		{
			Package: "net/b", Files: 2, Lines: 30, Functions: 3,
			Longest: count.Function{Name: "g", File: "g.go", Lines: 9},
		},
		{
			Package: "c", Files: 4, Lines: 50, Functions: 4,
			Longest: count.Function{Name: "h", File: "h.go", Lines: 9},
		},
	})
	want := count.Census{
		Package: "both", Files: 7, Lines: 90, Functions: 9,
		Longest: count.Function{Name: "g", File: "net/b/g.go", Lines: 9},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Merge (-want +got):\n%s", diff)
	}
}

func TestJSONReadsBack(t *testing.T) {
	want := count.Census{
		Package: "p", Files: 1, Lines: 2, Functions: 3,
		Longest: count.Function{Name: "f", File: "f.go", Lines: 4},
	}
	text, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got count.Census
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("JSON and back = %+v, want %+v", got, want)
	}
}
