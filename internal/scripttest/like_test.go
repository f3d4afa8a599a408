package scripttest

import "testing"

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, have, want string
		wrong            int // the line that does not fit; 0: all do
	}{
		{"literal", "a (b) c.\n", "a (b) c.\n", 0},
		{"no expressions", "abc\n", "a.c\n", 1},
		{"a number", "took 12.5 s\n", "took <n> s\n", 0},
		{"the whole line", "took 12 s more\n", "took <n> s\n", 1},
		{"any text", "x y z\n", "x <any> z\n", 0},
		{"blanks", "x    y  \n", "x y\n", 0},
		{"any lines", "a\nb\nc\nd\n", "a\n...\nd\n", 0},
		{"no lines", "a\nd\n", "a\n...\nd\n", 0},
		{"the farthest", "a\nb\nb\nc\n", "a\n...\nb\nd\n", 4},
		{"a line too many", "a\nb\n", "a\n", 2},
		{"a line too few", "a\n", "a\nb\n", 2},
	} {
		if line, ok := match(c.have, c.want); ok != (c.wrong == 0) || !ok && line != c.wrong {
			t.Errorf("%s: %t, line %d, want line %d", c.name, ok, line, c.wrong)
		}
	}
}
