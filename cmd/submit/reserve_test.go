package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// holds lets another site hold every place of a reservation, and plan every job with
// a fixed start.
func holds(a *apitest.Agent, id grid.JobID, job grid.Job) {
	kept := 0.97
	for i := range job.Count {
		a.Set(id, i, func(v *view.TaskView) {
			v.Phase, v.Site, v.SiteName, v.Token = view.PhaseStaging, "12D3KooWother", "other", 1
			if job.Spec.Kind == grid.KindReservation {
				v.Phase = view.PhaseHeld
			}
			if !job.Spec.Window.At.IsZero() {
				v.Planned, v.Kept = view.At(job.Spec.Window.At), &kept
			}
		})
	}
}

func TestReserveUseRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t, holds)
	exit, stdout, stderr := b.run(t, "", "reserve", "--at", "+1h", "--for", "2h", "--cpus", "2",
		"--memory", "1GiB", "--bandwidth", "20Mbit/s", "--count", "2",
		"--name", "lecture", "--project", "teaching", "-o", "json")
	var got view.Reservation
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || exit != 0 {
		t.Fatalf("reserve = %d %v\n%s\n%s", exit, err, stdout, stderr)
	}
	length := got.End.Sub(got.Start.Time)
	if got.Phase != view.PhaseHeld || len(got.Places) != 2 || got.Kept == nil || *got.Kept != 0.97 ||
		length != 2*time.Hour {
		t.Errorf("reserved %+v", got)
	}
	if !strings.Contains(stderr, "start at "+got.Start.Local().Format(time.RFC3339)) ||
		!strings.Contains(stderr, "submit release "+string(got.ID)) {
		t.Errorf("said %s", stderr)
	}
	job, _ := b.agent.Job0()
	want := grid.Resources{
		MilliCPUs: 2000, MemoryBytes: 1 << 30, DiskBytes: 64 << 20, MFLOPS: 1000, NetBps: 20e6,
	}
	if job.Spec.Kind != grid.KindReservation || job.Spec.Need != want ||
		job.Spec.Project != "teaching" || job.Count != 2 {
		t.Errorf("submitted %+v", job)
	}
	if exit, _, stderr = b.run(
		t, "", "run", "-d", "--runtime", "1m", "--reservation", string(got.ID)[:6], "--wasm",
		b.path("w.wasm"),
	); exit != 0 {
		t.Fatalf("run --reservation = %d %s", exit, stderr)
	}
	if bound, _ := b.agent.Job0(); bound.Spec.Reservation != got.ID {
		t.Errorf("bound to %q", bound.Spec.Reservation)
	}
	exit, stdout, _ = b.run(t, "", "reservations")
	for _, want := range []string{
		"STATE", string(got.ID), "lecture", "held", "other 2", "2h0m0s", "97 %",
		"2 x 2 cores, 1.0 GiB, 1 GFLOPS, 20.0Mbit/s", got.Start.Local().Format(time.RFC3339),
	} {
		if exit != 0 || !strings.Contains(stdout, want) {
			t.Errorf("reservations = %d, no %q in\n%s", exit, want, stdout)
		}
	}
	if exit, _, stderr = b.run(t, "", "release", string(got.ID)[:6]); exit != 0 ||
		!strings.Contains(stderr, "released") {
		t.Errorf("release = %d %s", exit, stderr)
	}
	if _, stdout, _ = b.run(
		t, "", "reservations", "-o", "json",
	); !strings.Contains(stdout, `"phase": "released"`) {
		t.Errorf("after the release:\n%s", stdout)
	}
	exit, text, _ := b.run(t, "", "describe", string(got.ID), "-o", "json")
	if exit != 0 {
		t.Errorf("describe = %d", exit)
	}
	if exit, stdout, stderr = b.run(t, text, "job", "-", "--parsable"); exit != 0 ||
		len(strings.TrimSpace(stdout)) != 16 {
		t.Errorf("the reservation described and submitted again = %d %s", exit, stderr)
	}
}

func TestReservationsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(a *apitest.Agent, id grid.JobID, _ grid.Job) {
		a.Explain(id, "", "cannot be done in that time")
		a.Set(id, 0, func(v *view.TaskView) { v.Phase = view.PhaseRefused })
	})
	later := clock().Add(90 * time.Minute)
	b.agent.Table = view.OfferTable{Members: 2, Answered: 2, Rows: []view.OfferRow{
		{
			Site: "12D3KooWself", Name: "self", Refusal: "busy", CouldPromise: view.At(later.Add(time.Hour)),
		},
		{Site: "12D3KooWother", Name: "other", Refusal: "busy", CouldPromise: view.At(later)},
	}}
	exit, stdout, stderr := b.run(t, "", "reserve", "--at", "+1h", "--for", "2h")
	want := "the earliest that could be promised: " + later.Local().Format(time.RFC3339) + ", by other"
	if exit != exitNever || stdout != "" ||
		!strings.Contains(stderr, "cannot be promised: cannot be done in that time") ||
		!strings.Contains(stderr, want) {
		t.Errorf("reserve = %d %q\n%s\nwant %s", exit, stdout, stderr, want)
	}
	exit, _, stderr = b.run(t, "", "run", "--runtime", "1m", "--at", "+1h", "--wasm", b.path("w.wasm"))
	if exit != exitNever || !strings.Contains(stderr, want) {
		t.Errorf("run --at = %d\n%s", exit, stderr)
	}
	b.write(t, "job.yaml", "wasm: w.wasm\nruntime: 1m\nstart: {at: +1h}\n")
	exit, stdout, stderr = b.run(t, "", "plan", b.path("job.yaml"))
	if exit != 0 || !strings.Contains(
		stdout, "earliest it could promise: "+later.Local().Format(time.RFC3339),
	) || !strings.Contains(stderr, want) {
		t.Errorf("plan = %d\n%s\n%s", exit, stdout, stderr)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"no time": {[]string{"reserve", "--for", "1h"}, exitUsage, "want --at and --for"},
		"past": {
			[]string{"reserve", "--at", "2020-01-01T00:00:00Z", "--for", "1h"},
			exitUsage,
			"start.at: want a time after now",
		},
		"no length": {
			[]string{"reserve", "--at", "+1h", "--for", "0s"}, exitUsage, "reserve: want 1s to",
		},
		"unknown": {
			[]string{"run", "--reservation", "zzzz", "--wasm", b.path("w.wasm")},
			exitNoJob,
			`reservation: reservation "zzzz": not found`,
		},
		"after what": {
			[]string{"run", "--after", "zzzz", "--wasm", b.path("w.wasm")},
			exitNoJob,
			`after[0]: job "zzzz": not found`,
		},
		"release what": {[]string{"release", "zzzz"}, exitNoJob, `job "zzzz"`},
		"short window": {
			[]string{"run", "--at", "+1h", "--deadline", "+61m", "--wasm", b.path("w.wasm")},
			exitUsage,
			"the runtime is 10m",
		},
		"flood": {
			[]string{"run", "--at", "+1h", "--flood", "--wasm", b.path("w.wasm")},
			exitUsage,
			"placing: a job with a fixed start",
		},
	} {
		if exit, _, stderr := b.run(t, "", c.args...); exit != c.code ||
			!strings.Contains(stderr, c.say) {
			t.Errorf("%s: %d, want %d\n%s\nwant %s", name, exit, c.code, stderr, c.say)
		}
	}
}

func TestFlagsOfPlacing(t *testing.T) {
	t.Parallel()
	b := newBench(t, holds)
	_, first, _ := b.run(
		t, "", "run", "-d", "--parsable", "--runtime", "1m", "--wasm", b.path("w.wasm"),
	)
	first = strings.TrimSpace(first)
	exit, id, stderr := b.run(t, "", "run", "-d", "--parsable", "--runtime", "1m", "--at", "+1h",
		"--deadline", "+2h", "--priority", "-7",
		"--after", first[:8], "--project", "p", "--overrun", "stop", "--split", "greedy",
		"--communication", "1MiB",
		"--count", "2", "--wasm", b.path("w.wasm"))
	if exit != 0 {
		t.Fatalf("run = %d %s", exit, stderr)
	}
	job, _ := b.agent.Job0()
	if len(job.After) != 1 || string(job.After[0]) != first || job.Spec.Priority != -7 ||
		job.Spec.Project != "p" || job.Spec.Overrun != grid.OverrunStop ||
		job.Split != grid.SplitGreedy || job.CommBytes != 1<<20 ||
		job.Spec.Window.Deadline.Sub(job.Spec.Window.At) != time.Hour {
		t.Errorf("job %+v", job)
	}
	b.agent.Wait()
	for _, verb := range []string{"status", "describe"} {
		_, stdout, _ := b.run(t, "", verb, strings.TrimSpace(id))
		at := job.Spec.Window.At.Local()
		for _, want := range []string{
			"PLANNED", at.Format(time.RFC3339), "is planned for ",
			at.Format(time.TimeOnly) + " on other, kept with 97 %",
		} {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", verb, want, stdout)
			}
		}
	}
	if exit, _, stderr = b.run(
		t, "", "run", "-d", "--runtime", "1m", "--flood", "--wasm", b.path("w.wasm"),
	); exit != 0 {
		t.Fatalf("run --flood = %d %s", exit, stderr)
	}
	if job, _ := b.agent.Job0(); !job.Flood {
		t.Errorf("job %+v", job)
	}
}

func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for ahead, warns := range map[float64]bool{0.499: false, -0.5: true, 12.25: true} {
		b := newBench(t, holds)
		b.agent.Skew = ahead
		_, _, stderr := b.run(
			t, "", "run", "-d", "--runtime", "1m", "--at", "+1h", "--wasm", b.path("w.wasm"),
		)
		if got := strings.Contains(stderr, "warning: the clock of other differs"); got != warns {
			t.Errorf("%v s ahead: warned %v\n%s", ahead, got, stderr)
		}
		if _, _, stderr = b.run(
			t, "", "run", "-d", "--runtime", "1m", "--wasm", b.path("w.wasm"),
		); strings.Contains(stderr, "warning") {
			t.Errorf("warned where no time is asked for: %s", stderr)
		}
		if _, stdout, _ := b.run(t, "", "sites"); !strings.Contains(stdout, skew(&ahead)) ||
			!strings.Contains(stdout, "SKEW") {
			t.Errorf("sites:\n%s", stdout)
		}
	}
}
