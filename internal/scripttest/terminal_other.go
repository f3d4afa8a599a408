//go:build !unix

package scripttest

import "github.com/rogpeppe/go-internal/testscript"

// terminal needs a terminal of one's own, which this system does not have.
func terminal(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("no pseudo-terminals on this system")
}
