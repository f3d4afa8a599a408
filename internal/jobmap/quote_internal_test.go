package jobmap

import (
	"strings"
	"testing"
)

// A command of plain words needs no shell; what means something to one has it.
func TestSimpleCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"gzip -nk {{item}}":       true,
		"./a.out --in={{item}} 7": true,
		"x":                       true,
		"":                        false,
		"x ":                      false,
		" x":                      false,
		"x  y":                    false,
		"x\ty":                    false,
		"x\ny":                    false,
		"cd {{item}}":             false,
		"exit 3":                  false,
		"A=1 x":                   false,
		"{{item}} x":              false,
		"x $HOME":                 false,
		"x ~":                     false,
		"x *":                     false,
		"x; y":                    false,
		"x > {{item}}":            false,
		"x 'y z'":                 false,
		"! x":                     false,
		"x #y":                    false,
		"x {a,b}":                 false,
	} {
		if got := isSimple(strings.Split(line, " ")); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
