package supervise

import (
	"bytes"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"cause":1,"code":7,"text":"x"}`))
	f.Add([]byte(`{"cause":11}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := readReport(bytes.NewReader(data))
		if r != nil && (r.Cause.Validate() != nil || r.Cause > grid.CauseSandbox) {
			t.Errorf("a runner may not report %v", r.Cause)
		}
	})
}
