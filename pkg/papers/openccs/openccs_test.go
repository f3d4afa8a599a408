package openccs

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// The tests named after the paper quote the rule of OpenCCS that they hold. Numbers
// computed by a second implementation are compared in internal/vectors.

// "the latest time for resource allocation conforms to the specified deadline
// minus the user's specified runtime ... the effort for performing checkpoints
// enters the computation ... the remaining runtime at the time of the last
// checkpoint".
func TestPaperLatestStart(t *testing.T) {
	for _, c := range []struct {
		deadline float64
		left     Remaining
		want     float64
	}{
		{100, Remaining{RuntimeSeconds: 60}, 40},
		{100, Remaining{60, 0, 4, 2}, 32},
		{100, Remaining{60, 45, 1, 2}, 83},
		{100, Remaining{60, 60, 0, math.Inf(1)}, 100},
		{50, Remaining{RuntimeSeconds: 60}, -10}, // too late already
		{math.Inf(1), Remaining{RuntimeSeconds: 60}, math.Inf(1)},
	} {
		if got, err := LatestStart(c.deadline, c.left); err != nil || got != c.want {
			t.Errorf("LatestStart(%v, %+v) = %v, %v, want %v", c.deadline, c.left, got, err, c.want)
		}
	}
	endless := Remaining{RuntimeSeconds: math.Inf(1)}
	if got, err := LatestStart(math.Inf(1), endless); !errors.Is(err, argument.ErrUndefined) {
		t.Errorf("endless work without a deadline: %v, %v, want argument.ErrUndefined", got, err)
	}
}

// "place all Fix-Time resource requests (first from P-list, then from N-list) ...
// all deadline bound ... all remaining", and "P-list before D-list before O-list
// before N-list".
func TestPaperListOrder(t *testing.T) {
	var requests []Request
	var want []string
	for _, class := range []plan.Class{plan.ClassFixTime, plan.ClassDeadline, plan.ClassVarTime} {
		for _, list := range []List{ListPlanned, ListDefect, ListOffered, ListNew} {
			id := "FDV"[class:class+1] + "PDON"[list:list+1]
			want = append(want, id)
			requests = append(requests,
				Request{ID: id, Class: class, List: list, DeadlineSeconds: math.Inf(1)})
		}
	}
	slices.Reverse(requests)
	got, err := Order(requests, grid.PolicyFCFS)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// "FCFS, SJF (Shortest Job First), or LJF (Longest Job First) ... Deadline
// Monotonic Scheduling ... Earliest Deadline First".
func TestPaperPolicies(t *testing.T) {
	requests := []Request{
		{"a", plan.ClassDeadline, ListPlanned, 3, 10, 100, 10, 0},
		{"b", plan.ClassDeadline, ListPlanned, 1, 40, 110, 40, 0},
		{"c", plan.ClassDeadline, ListPlanned, 2, 30, 105, 2, 0},
		{"d", plan.ClassDeadline, ListPlanned, 2, 30, math.Inf(1), 30, 90},
		{"e", plan.ClassDeadline, ListPlanned, 4, 20, 120, 20, 35},
	}
	for policy, want := range map[grid.Policy][]string{
		grid.PolicyFCFS: {"b", "c", "d", "a", "e"},
		grid.PolicySJF:  {"a", "e", "c", "d", "b"},
		grid.PolicyLJF:  {"b", "c", "d", "e", "a"},
		grid.PolicyEDF:  {"a", "c", "b", "e", "d"},
		grid.PolicyLST:  {"e", "b", "a", "c", "d"},
	} {
		got, err := Order(requests, policy)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("policy %d: %v, %s", policy, err, diff)
		}
	}
}

// "The RMS only moves those jobs to the D-list which are planned on the defect
// resources within the failure horizon", and "the entire job".
func TestPaperFailureHorizon(t *testing.T) {
	got, err := DefectList([]Placement{
		{"starts when it has passed", 17, 20, []string{"n1"}},
		{"runs", 0, 10, []string{"n2", "n1"}},
		{"is over", 0, 5, []string{"n1"}},
		{"elsewhere", 6, 9, []string{"n2"}},
		{"planned", 16, 99, []string{"n3"}},
	}, []string{"n1", "n3"}, 5, 12)
	if diff := cmp.Diff([]string{"planned", "runs"}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// "setting the end of node allocation to the minimum of specified deadline and
// current time plus estimated job runtime".
func TestPaperStageInDelay(t *testing.T) {
	for _, c := range []struct {
		runtime, end float64
		full         bool
	}{{20, 30, true}, {90, 100, true}, {91, 100, false}} {
		end, full, err := DelayedEnd(10, c.runtime, 100)
		if err != nil || end != c.end || full != c.full {
			t.Errorf("run time %v: %v, %v, %v, want %v, %v", c.runtime, end, full, err, c.end, c.full)
		}
	}
}

func TestOpenCCSInvalidArguments(t *testing.T) {
	nan := math.NaN()
	latest := func(deadline float64, left Remaining) error {
		_, err := LatestStart(deadline, left)
		return err
	}
	order := func(r Request) error { _, err := Order([]Request{r}, grid.PolicyFCFS); return err }
	defect := func(p Placement, now, horizon float64) error {
		_, err := DefectList([]Placement{p}, nil, now, horizon)
		return err
	}
	_, ePolicy := Order(nil, 5)
	_, _, eNow := DelayedEnd(nan, 1, 1)
	_, _, eDeadline := DelayedEnd(1, 1, -1)
	for i, err := range []error{
		ePolicy, eNow, eDeadline,
		latest(nan, Remaining{}), latest(1, Remaining{RuntimeSeconds: -1}),
		latest(1, Remaining{DoneSeconds: 1}),
		latest(1, Remaining{Checkpoints: -1}), latest(1, Remaining{CheckpointSeconds: nan}),
		order(Request{Class: 3}), order(Request{List: 4}), order(Request{SubmitSeconds: -1}),
		order(Request{OverheadSeconds: nan}),
		defect(Placement{}, nan, 1),
		defect(Placement{}, 1, -1), defect(Placement{StartSeconds: nan}, 1, 1),
		defect(Placement{StartSeconds: 2, EndSeconds: 1}, 1, 1),
	} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
}

func spans() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e4),
		rapid.SampledFrom([]float64{0, 1, 1e300, math.Inf(1)}))
}

func TestLatestStartProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := Remaining{
			RuntimeSeconds: spans().Draw(t, "runtime"), Checkpoints: rapid.Int64Range(0, 9).Draw(t, "n"),
			CheckpointSeconds: spans().Draw(t, "C"),
		}
		deadline := spans().Draw(t, "deadline")
		start, err := LatestStart(deadline, left)
		if errors.Is(err, argument.ErrUndefined) && math.IsInf(deadline, 1) {
			return
		}
		if err != nil || math.IsNaN(start) || start > deadline {
			t.Fatalf("LatestStart(%v, %+v) = %v, %v", deadline, left, start, err)
		}
		left.Checkpoints++
		if later, err := LatestStart(deadline, left); err == nil && later > start {
			t.Errorf("a checkpoint more moves the latest start from %v to %v", start, later)
		}
	})
}

func TestOrderProperties(t *testing.T) {
	request := rapid.Custom(func(t *rapid.T) Request {
		few := rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(0, 3).Draw(t, "few"))
		})
		return Request{
			rapid.StringMatching(`[a-z]{4}`).Draw(t, "id"),
			plan.Class(rapid.IntRange(0, 2).Draw(t, "class")), List(rapid.IntRange(0, 3).Draw(t, "list")),
			few.Draw(t, "submit"), few.Draw(t, "runtime"), spans().Draw(t, "deadline"), few.Draw(t, "left"),
			few.Draw(t, "overhead"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.SliceOfNDistinct(request, 0, 12, func(r Request) string { return r.ID }).
			Draw(t, "requests")
		policy := grid.Policy(rapid.IntRange(0, 4).Draw(t, "policy"))
		got, err := Order(requests, policy)
		shuffled, _ := Order(rapid.Permutation(requests).Draw(t, "shuffled"), policy)
		if err != nil || !slices.Equal(got, shuffled) || len(got) != len(requests) {
			t.Fatalf("%v and %v, %v", got, shuffled, err)
		}
		var last Request
		for _, id := range got {
			r := requests[slices.IndexFunc(requests, func(r Request) bool { return r.ID == id })]
			if r.Class < last.Class || r.Class == last.Class && r.List < last.List {
				t.Errorf("%+v comes after %+v", r, last)
			}
			last = r
		}
	})
}

func TestDefectListProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		placement := rapid.Custom(func(t *rapid.T) Placement {
			start := spans().Draw(t, "start")
			return Placement{
				rapid.StringMatching(`[a-z]{3}`).Draw(t, "id"), start, start + spans().Draw(t, "length"),
				rapid.SliceOfN(rapid.SampledFrom([]string{"n1", "n2", "n3"}), 0, 3).Draw(t, "nodes"),
			}
		})
		placements := rapid.SliceOfN(placement, 0, 10).Draw(t, "placements")
		now, horizon := spans().Draw(t, "now"), spans().Draw(t, "horizon")
		got, err := DefectList(placements, []string{"n1"}, now, horizon)
		if err != nil || !slices.IsSorted(got) {
			t.Fatalf("%v, %v", got, err)
		}
		longer, _ := DefectList(placements, []string{"n1", "n2"}, now, 2*horizon+1)
		if len(longer) < len(got) {
			t.Errorf("a longer horizon and more defects: %v instead of %v", longer, got)
		}
		end, full, err := DelayedEnd(now, horizon, 5000)
		if err != nil || end > 5000 || full != (now+horizon <= 5000) {
			t.Errorf("DelayedEnd = %v, %v, %v", end, full, err)
		}
	})
}

// Who reads a start beside an error reads 0, and no order or list.
func TestNothingStandsBesideAnError(t *testing.T) {
	inf := math.Inf(1)
	for name, left := range map[string]Remaining{
		"no run time":  {RuntimeSeconds: -1},
		"done":         {RuntimeSeconds: 1, DoneSeconds: 2},
		"checkpoints":  {Checkpoints: -1},
		"all infinite": {RuntimeSeconds: inf, DoneSeconds: inf},
	} {
		if start, err := LatestStart(5, left); start != 0 || err == nil {
			t.Errorf("%s: %v beside %v", name, start, err)
		}
	}
	if end, full, err := DelayedEnd(-1, 1, 1); end != 0 || full || err == nil {
		t.Errorf("DelayedEnd: %v, %t beside %v", end, full, err)
	}
	if ids, err := Order([]Request{{List: ListNew + 1}}, grid.PolicyFCFS); ids != nil || err == nil {
		t.Errorf("Order: %v beside %v", ids, err)
	}
	bad := []Placement{{EndSeconds: 1}, {StartSeconds: 1}}
	if ids, err := DefectList(bad, nil, 0, 1); ids != nil || err == nil {
		t.Errorf("DefectList: %v beside %v", ids, err)
	}
}

// What has no deadline may begin at any time, however long it takes, and comes last.
func TestWithoutADeadlineAnyStartIsEarlyEnough(t *testing.T) {
	endless := math.Inf(1)
	order, err := Order([]Request{
		{ID: "endless", DeadlineSeconds: endless, RuntimeSeconds: endless, RemainingSeconds: endless},
		{ID: "due", DeadlineSeconds: 5, RuntimeSeconds: 1, RemainingSeconds: 1},
		{ID: "open", DeadlineSeconds: endless, RuntimeSeconds: 1, RemainingSeconds: 1},
	}, grid.PolicyLST)
	if err != nil || !slices.Equal(order, []string{"due", "endless", "open"}) {
		t.Errorf("%v, %v", order, err)
	}
}
