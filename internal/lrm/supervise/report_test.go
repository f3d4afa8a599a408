package supervise

import (
	"bytes"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestNotesComeBeforeTheReport(t *testing.T) {
	t.Parallel()
	notes := make(chan bool, 2)
	text := `{"preparing":true}` + "\n" +
		`{"preparing":false}{"preparing":true}{"cause":1,"code":7,"text":"x"}`
	r := readReport(bytes.NewReader([]byte(text)), notes)
	if r == nil || r.Code != 7 || !<-notes || <-notes {
		t.Errorf("report %+v behind notes", r)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"cause":1,"code":7,"text":"x"}`))
	f.Add([]byte(`{"cause":11}`))
	f.Add([]byte(`{"preparing":true}{"cause":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := readReport(bytes.NewReader(data), nil)
		if r != nil && (r.Cause.Validate() != nil || r.Cause > grid.CauseSandbox) {
			t.Errorf("a runner may not report %v", r.Cause)
		}
	})
}
