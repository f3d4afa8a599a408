package yield

import "testing"

// Somebody at the machine pauses it, and so does not to know.
func TestInputAnswers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[InputAnswer]Said{
		{Idle: true}: {},
		{}:           {Why: "owner.input: keyboard or mouse are in use"},
		{Fault: "no bus"}: {
			Why: "owner.input: it is not known whether you are there: no bus", Trouble: "no bus",
		},
		{Idle: true, Fault: "no bus"}: {
			Why: "owner.input: it is not known whether you are there: no bus", Trouble: "no bus",
		},
	} {
		if got := answer.Judge(); got != want {
			t.Errorf("%+v: %+v, want %+v", answer, got, want)
		}
	}
}
