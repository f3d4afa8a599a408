package jobmap

import (
	"slices"
	"strings"
	"testing"
)

// TestReplacementStrings has the examples of GNU parallel's manual.
func TestReplacementStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, argument, want string }{
		// "{.} Input line without extension. [...] foo.jpg becomes foo, subdir/foo.jpg becomes
		// subdir/foo, subdir.dir/foo.jpg becomes subdir.dir/foo, subdir.dir/bar remains
		// subdir.dir/bar. If the input line does not contain . it will remain unchanged."
		{"{.}", "foo.jpg", "foo"},
		{"{.}", "subdir/foo.jpg", "subdir/foo"},
		{"{.}", "subdir.dir/foo.jpg", "subdir.dir/foo"},
		{"{.}", "subdir.dir/bar", "subdir.dir/bar"},
		{"{.}", "foo", "foo"},
		{"{.}", "a.tar.gz", "a.tar"},
		// "{/} Basename of input line. [...] the directory part removed."
		{"{/}", "subdir/foo.jpg", "foo.jpg"},
		{"{/}", "foo.jpg", "foo.jpg"},
		// "{//} Dirname of input line. [...] See dirname(1)."
		{"{//}", "subdir/foo.jpg", "subdir"},
		{"{//}", "foo.jpg", "."},
		{"{//}", "/foo.jpg", "/"},
		{"{//}", "/", "/"},
		{"{//}", "a/b/", "a"},
		{"{//}", "", "."},
		// "{/.} Basename of input line without extension. [...] a combination of {/} and {.}."
		{"{/.}", "sub.dir/foo.jpg", "foo"},
		{"{/.}", "sub.dir/bar", "bar"},
		// "{#} Sequence number of the job to run. [...] The same as $PARALLEL_SEQ."
		{"{#}", "foo", "7"},
		{"{}", "it is\n'whole'", "it is\n'whole'"},
	} {
		if got := replaced(c.kind, c.argument, 7); got != c.want {
			t.Errorf("%s of %q is %q, want %q", c.kind, c.argument, got, c.want)
		}
	}
}

// TestWhatIsNoReplacementString tells what stays from what is refused.
func TestWhatIsNoReplacementString(t *testing.T) {
	t.Parallel()
	for text, kinds := range map[string][]string{
		"echo {foo} ${x} {1..3} a{,b} {{item}} { }": nil,
		"cp {} {.}.bak; echo {} {#}":                {"{}", "{.}", "{#}"},
		"{{}}":                                      {"{}"},
		"{/}{//}{/.}":                               {"{/}", "{//}", "{/.}"},
		"awk '{print $1}'":                          nil,
	} {
		got, err := parseTemplate(text)
		if err != nil || !slices.Equal(got.kinds(), kinds) {
			t.Errorf("%q has %v, %v, want %v", text, got.kinds(), err, kinds)
		}
	}
	for text, want := range map[string]string{
		"cp {1} {2}": "{1} of GNU parallel", "{-1}": "{-1}", "{2//}": "{2//}", "{1/.}": "{1/.}",
		"{= s/a/b/ =}": "{=", "{2= uc =}": "{2=", "{%}": "no job slots", "{+/}": "{+/}",
		"{..}": "{..}", "{/...}": "{/...}", "{##}": "{##}", "{+..}": "{+..}",
	} {
		if _, err := parseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// FuzzTemplate parses any text: with each replacement string standing for itself it is that text.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"", "{}", "a {.} {/}{#", "{{}}", "{1}", "{=", "{/..}", "{foo}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return
		}
		if got := parsed.fill(func(kind string) string { return kind }); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
		if len(parsed.parts)%2 != 1 {
			t.Errorf("%q has %d parts, want texts around each string", text, len(parsed.parts))
		}
	})
}
