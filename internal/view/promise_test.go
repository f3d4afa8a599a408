package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorstPromise(t *testing.T) {
	t.Parallel()
	kept, open := &PromiseView{State: "kept"}, &PromiseView{State: "open"}
	late := &PromiseView{State: "late", EndLateSeconds: 26, Text: "ended 26s after its deadline"}
	later := &PromiseView{State: "late", StartLateSeconds: 9, EndLateSeconds: 3, Text: "began late"}
	broken := &PromiseView{State: "broken", Text: "was lost"}
	for name, c := range map[string]struct {
		tasks []*PromiseView
		want  *PromiseView
		line  string
	}{
		"none":        {[]*PromiseView{nil, nil}, nil, ""},
		"all kept":    {[]*PromiseView{kept, nil, kept}, kept, "kept"},
		"one is open": {[]*PromiseView{kept, open}, open, "open"},
		"one task":    {[]*PromiseView{late}, late, "late: ended 26s after its deadline"},
		"two of three": {
			[]*PromiseView{kept, late, later}, &PromiseView{
				State: "late", StartLateSeconds: 9, EndLateSeconds: 26,
				Text: "2 of 3 tasks, for example: ended 26s after its deadline",
			}, "late: 2 of 3 tasks, for example: ended 26s after its deadline",
		},
		"broken is worst": {
			[]*PromiseView{broken, late}, &PromiseView{
				State: "broken", EndLateSeconds: 26, Text: "1 of 2 tasks, for example: was lost",
			}, "broken: 1 of 2 tasks, for example: was lost",
		},
	} {
		got := WorstPromise(c.tasks)
		if diff := cmp.Diff(c.want, got); diff != "" || got.Line() != c.line {
			t.Errorf("%s: line %q, (-want +got):\n%s", name, got.Line(), diff)
		}
	}
	if late.Text != "ended 26s after its deadline" {
		t.Errorf("a task's promise was changed: %+v", late)
	}
}

func TestWhichPromisesAreKept(t *testing.T) {
	t.Parallel()
	if none := (*PromiseView)(nil); !none.Kept() || none.Line() != "" {
		t.Errorf("where none was given: %t, %q", none.Kept(), none.Line())
	}
	for state, want := range map[string]bool{
		"kept": true, "open": true, "late": false, "broken": false,
	} {
		p := PromiseView{State: state}
		if p.Kept() != want || p.Line() != state {
			t.Errorf("%s: kept %t, in a line %q", state, p.Kept(), p.Line())
		}
		p.Text = "why"
		if doubt := p.Doubt(); (doubt != "") != (state == "open") {
			t.Errorf("%s: doubted because of %q", state, doubt)
		}
	}
}

// Of two promises the worse one counts, whichever comes first, with how many have it.
func TestTheWorseOfTwoPromises(t *testing.T) {
	t.Parallel()
	states := []string{"kept", "open", "late", "broken"} // better ones first
	for i, better := range states {
		for _, worse := range states[i:] {
			a, b := &PromiseView{State: better, Text: "x"}, &PromiseView{State: worse, Text: "x"}
			want := PromiseView{State: worse, Text: "x"}
			if worse == "late" || worse == "broken" {
				want.Text = "1 of 2 tasks, for example: x"
			}
			if worse == better {
				want.Text = strings.Replace(want.Text, "1 of", "2 of", 1)
			}
			for _, tasks := range [][]*PromiseView{{a, b}, {b, a}} {
				if got := WorstPromise(tasks); *got != want {
					t.Errorf("%s and %s: %+v, want %+v", tasks[0].State, tasks[1].State, *got, want)
				}
			}
		}
	}
}
