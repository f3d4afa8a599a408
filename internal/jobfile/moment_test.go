package jobfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones are the same on every machine

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// read parses a job with one field as the submitter of a zone does.
func read(t *testing.T, name, now, field string) (*jobfile.File, error) {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", now, zone(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return jobfile.Parse([]byte("command: [x]\nruntime: 1s\n"+field+"\n"),
		jobfile.Options{Name: "job.yaml", Now: at})
}

// TestTimesOfTheSubmitter reads times as somebody at a place and a moment writes
// them.
func TestTimesOfTheSubmitter(t *testing.T) {
	t.Parallel()
	const berlin, york, howe = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
	for _, c := range []struct{ zone, now, text, want string }{
		{berlin, "2026-05-01 15:00:00", "2026-05-02T14:00:00Z", "2026-05-02T14:00:00Z"},
		{berlin, "2026-05-01 15:00:00", "2026-05-02 14:00:00Z", "2026-05-02T14:00:00Z"},
		{berlin, "2026-05-01 15:00:00", "2026-05-02T14:00", "2026-05-02T14:00:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "14:00", "2026-05-02T14:00:00+02:00"},
		{berlin, "2026-05-01 13:00:00", "14:00:30", "2026-05-01T14:00:30+02:00"},
		{berlin, "2026-05-01 14:00:00", "14:00", "2026-05-02T14:00:00+02:00"},
		{berlin, "2026-12-31 23:00:00", "00:30", "2027-01-01T00:30:00+01:00"},
		{berlin, "2026-05-01 15:00:00", "tomorrow 9:00", "2026-05-02T09:00:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "Today 16:00", "2026-05-01T16:00:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "Mon 09:00", "2026-05-04T09:00:00+02:00"},
		// today is a Friday, and it has passed
		{berlin, "2026-05-01 15:00:00", "friday 14:00", "2026-05-08T14:00:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "fri 16:00", "2026-05-01T16:00:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "+30s", "2026-05-01T15:00:30+02:00"},
		{berlin, "2026-05-01 15:00:00", "in 1h30m", "2026-05-01T16:30:00+02:00"},
		{berlin, "2026-05-01 15:00:00", "+1.2s", "2026-05-01T15:00:02+02:00"}, // a full second
		// Summer time: spans are spans, and a clock's time is the clock's.
		{berlin, "2026-03-28 15:00:00", "+1d", "2026-03-29T16:00:00+02:00"},
		{berlin, "2026-03-28 15:00:00", "tomorrow 15:00", "2026-03-29T15:00:00+02:00"},
		{berlin, "2026-03-29 10:00:00", "02:30", "2026-03-30T02:30:00+02:00"}, // the gap is over
		{york, "2026-03-07 12:00:00", "tomorrow 03:00", "2026-03-08T03:00:00-04:00"},
		{howe, "2026-10-03 12:00:00", "tomorrow 02:30", "2026-10-04T02:30:00+11:00"},
		{howe, "2026-10-03 12:00:00", "tomorrow 01:59:59", "2026-10-04T01:59:59+10:30"},
		// What comes twice: the first, unless that has passed.
		{berlin, "2026-10-24 12:00:00", "2026-10-25 02:30", "2026-10-25T02:30:00+02:00"},
		{york, "2026-10-31 12:00:00", "2026-11-01 01:30", "2026-11-01T01:30:00-04:00"},
		{howe, "2026-04-04 12:00:00", "tomorrow 01:45", "2026-04-05T01:45:00+11:00"},
		{howe, "2026-04-04 12:00:00", "tomorrow 01:29:59", "2026-04-05T01:29:59+11:00"}, // not twice
		// Leap days.
		{berlin, "2028-02-28 12:00:00", "tomorrow 12:00", "2028-02-29T12:00:00+01:00"},
		{berlin, "2028-02-01 12:00:00", "2028-02-29 12:00", "2028-02-29T12:00:00+01:00"},
		{berlin, "2027-02-28 12:00:00", "tomorrow 12:00", "2027-03-01T12:00:00+01:00"},
	} {
		file, err := read(t, c.zone, c.now, fmt.Sprintf("start: {at: %q}", c.text))
		if err != nil {
			t.Errorf("%s at %s in %s: %v", c.text, c.now, c.zone, err)
			continue
		}
		want, err := time.Parse(time.RFC3339, c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got := file.Spec.Window.At; !got.Equal(want) {
			t.Errorf("%s at %s in %s: %s, want %s", c.text, c.now,
				c.zone, got.In(zone(t, c.zone)).Format(time.RFC3339), c.want)
		}
		echo := "start at " + want.In(zone(t, c.zone)).Format(time.RFC3339)
		if last := file.Notes[len(file.Notes)-1]; last != echo {
			t.Errorf("%s: echoed as %q, want %q", c.text, last, echo)
		}
	}
}

func TestTimesThatComeTwiceAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, now, text, want string }{
		{
			"Europe/Berlin", "2026-10-24 12:00:00", "tomorrow 02:30",
			"start.at: 02:30:00 comes twice on 2026-10-25, as the clocks go back; the first is taken, " +
				"2026-10-25T02:30:00+02:00; the other is 2026-10-25T02:30:00+01:00",
		},
		{
			"Australia/Lord_Howe", "2026-04-04 12:00:00", "tomorrow 01:45",
			"start.at: 01:45:00 comes twice on 2026-04-05, as the clocks go back; the first is taken, " +
				"2026-04-05T01:45:00+11:00; the other is 2026-04-05T01:45:00+10:30",
		},
	} {
		file, err := read(t, c.zone, c.now, "start: {at: "+c.text+"}")
		if err != nil || file.Notes[0] != c.want {
			t.Errorf("%s: %v, %v\nwant %s", c.text, file.Notes, err, c.want)
		}
	}
	// Between the two, only the second is still to come.
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2026, 10, 25, 0, 45, 0, 0, time.UTC).In(berlin) // 02:45 summer time
	file, err := jobfile.Parse([]byte("command: [x]\nruntime: 1s\nstart: {at: 02:30}\n"),
		jobfile.Options{Now: now})
	if err != nil || !file.Spec.Window.At.Equal(time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)) ||
		!strings.Contains(file.Notes[0], "the second is taken") {
		t.Errorf("between the two: %+v, %v", file.Notes, err)
	}
}

// TestImpossibleTimes has one mistake a row.
func TestImpossibleTimes(t *testing.T) {
	t.Parallel()
	const berlin = "Europe/Berlin"
	for _, c := range []struct{ zone, now, field, want string }{
		{
			berlin, "2026-03-28 12:00:00", "start: {at: tomorrow 02:30}",
			"job.yaml:3: start.at: 02:30:00 does not come on 2026-03-29: the clocks of Europe/Berlin go " +
				"from 02:00:00 straight to 03:00:00; " +
				"choose 03:00:00 or later, before 02:00:00, or give the zone: 2026-03-29T03:00:00+02:00",
		},
		{berlin, "2026-03-28 12:00:00", "deadline: 02:30", "job.yaml:3: deadline: 02:30:00 does not " +
			"come on 2026-03-29"},
		{berlin, "2026-03-28 12:00:00", "start: {notBefore: 2026-03-29T02:00}", "start.notBefore: " +
			"02:00:00 does not come on 2026-03-29"},
		{
			"America/New_York", "2026-03-07 12:00:00", "start: {at: 02:59:59}",
			"go from 02:00:00 straight to 03:00:00",
		},
		{
			"Australia/Lord_Howe", "2026-10-03 12:00:00", "start: {at: 02:15}",
			"start.at: 02:15:00 does not come on 2026-10-04: the clocks of Australia/Lord_Howe go from " +
				"02:00:00 straight to 02:30:00",
		},
		{berlin, "2027-01-01 12:00:00", "start: {at: 2027-02-29 12:00}", "there is no day 2027-02-29: " +
			"February 2027 has 28 days; choose a day that exists"},
		{berlin, "2027-01-01 12:00:00", "deadline: 2027-02-29T12:00:00Z", "deadline: there is no day " +
			"2027-02-29: February 2027 has 28 days"},
		{berlin, "2027-01-01 12:00:00", "deadline: 2027-13-01T12:00:00Z", "there is no day 2027-13-01"},
		{
			berlin, "2026-05-01 15:00:00", "start: {at: 2026-05-01T14:59:59}",
			"start.at: want a time after now, 2026-05-01T15:00:00+02:00, have 2026-05-01T14:59:59+02:00; " +
				"choose a later one",
		},
		{berlin, "2026-05-01 15:00:00", "start: {at: today 14:00}", "start.at: want a time after now"},
		{
			berlin, "2026-05-01 15:00:00", "start: {at: 2026-05-01T15:00:00}",
			"start.at: want a time after now",
		},
		{berlin, "2026-05-01 15:00:00", "start: {at: +0s}", "want more than 0, have \"+0s\""},
		{berlin, "2026-05-01 15:00:00", "start: {at: +-5m}", "want a time ahead with a unit"},
		{berlin, "2026-05-01 15:00:00", "start: {at: -5m}", "start.at: want a time, have \"-5m\""},
		{berlin, "2026-05-01 15:00:00", "start: {at: in 5}", "want a time ahead with a unit"},
		{berlin, "2026-05-01 15:00:00", "start: {at: in 400d}", "want at most 366 days ahead"},
		{berlin, "2026-05-01 15:00:00", "start: {at: +99999999999h}", "want a time ahead with a unit"},
		{berlin, "2026-05-01 15:00:00", "start: {at: 2028-05-01T00:00:00Z}", "start.at: want a time " +
			"within 366 days, have 2028-05-01T02:00:00+02:00; choose an earlier one"},
		{
			berlin, "2026-05-01 15:00:00", "deadline: 9999-12-31T23:59:59Z",
			"deadline: want a time within 366 days",
		},
		{berlin, "2026-05-01 15:00:00", "start: {at: 24:00}", "start.at: want a time, have \"24:00\"; " +
			"write it like 18:00, tomorrow 18:00"},
		{berlin, "2026-05-01 15:00:00", "start: {at: 23:59:60}", "start.at: want a time"},
		{berlin, "2026-05-01 15:00:00", "start: {at: tomorrow}", "start.at: want a time"},
		{berlin, "2026-05-01 15:00:00", "start: {at: 2026-05-02}", "start.at: want a time"},
		{berlin, "2026-05-01 15:00:00", "start: {at: [1]}", "start.at: want a text, have a list"},
		{berlin, "2026-05-01 15:00:00", "start: {at: +1h, notBefore: +1h}", "job.yaml:3: " +
			"start.notBefore: start.at and start.notBefore exclude each other; keep one"},
		{
			berlin, "2026-05-01 15:00:00", "start: {at: +1h}\nlimit: 1h\ndeadline: 2026-05-01T15:30:00",
			"job.yaml:5: deadline: want a time after 2026-05-01T16:00:00+02:00, have " +
				"2026-05-01T15:30:00+02:00",
		},
		{
			berlin, "2026-05-01 15:00:00", "start: {at: 16:00}\ndeadline: 2026-05-01T16:00:00.5",
			"deadline: want a time",
		},
	} {
		_, err := read(t, c.zone, c.now, c.field)
		var all jobfile.Errors
		if !errors.As(err, &all) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s at %s in %s:\n got %v\nwant %s", c.field, c.now, c.zone, err, c.want)
			continue
		}
		for _, one := range all {
			if one.Remedy == "" || one.Line == 0 || one.Field == "" {
				t.Errorf("%s: no remedy or no place: %+v", c.field, one)
			}
		}
	}
}

func TestWindowsTooShortForTheRuntime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"runtime: 2h\nstart: {at: 16:00}\ndeadline: 17:00": "deadline: from the start, " +
			"2026-05-01T16:00:00+02:00, to the deadline, 2026-05-01T17:00:00+02:00, there are 1h, " +
			"and the runtime is 2h; choose a later deadline, or a shorter runtime",
		"runtime: 2h\nstart: {notBefore: 16:00}\ndeadline: 17:59": "there are 1h59m, and the runtime " +
			"is 2h",
		"runtime: 10m\ndeadline: +5m": "from now, 2026-05-01T15:00:00+02:00, to the deadline, " +
			"2026-05-01T15:05:00+02:00, there are 5m, and the runtime is 10m",
		"deadline: +5m": "the runtime is 10m",
	} {
		_, err := jobfile.Parse([]byte("command: [x]\n"+text+"\n"), options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := jobfile.Parse(
		[]byte("command: [x]\nruntime: 2h\nstart: {at: 16:00}\ndeadline: 18:00\n"), options(),
	); err != nil {
		t.Errorf("a window that fits exactly: %v", err)
	}
	file, err := jobfile.Parse(
		[]byte("command: [x]\nruntime: 1m\nstart: {notBefore: 2026-01-01T00:00:00Z}\n"), options(),
	)
	if err != nil ||
		file.Notes[0] != "start.notBefore 2026-01-01T02:00:00+02:00 is over: it may start right away" {
		t.Errorf("an earliest start that is over: %v, %v", file.Notes, err)
	}
}

// TestClockReadingsAgainstAWatch holds a reading's moment against a clock that is
// watched minute by minute.
func TestClockReadingsAgainstAWatch(t *testing.T) {
	t.Parallel()
	places := []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC",
	}
	// Days around every change of the clocks in 2026.
	days := []string{
		"2026-03-28", "2026-10-24", "2026-03-07", "2026-10-31", "2026-04-04", "2026-10-03", "2026-07-01",
	}
	rapid.Check(t, func(r *rapid.T) {
		loc := zone(t, rapid.SampledFrom(places).Draw(r, "place"))
		day, err := time.ParseInLocation(time.DateOnly, rapid.SampledFrom(days).Draw(r, "day"), loc)
		if err != nil {
			t.Fatal(err)
		}
		now := day.Add(time.Duration(rapid.IntRange(0, 30*60).Draw(r, "minutes")) * time.Minute)
		text := fmt.Sprintf("%02d:%02d", rapid.IntRange(0, 23).Draw(r, "hour"),
			rapid.IntRange(0, 59).Draw(r, "minute"))
		var want time.Time
		for at := now.Add(time.Minute); at.Before(now.Add(50 * time.Hour)); at = at.Add(time.Minute) {
			if at.Format("15:04") == text {
				want = at
				break
			}
		}
		file, err := jobfile.Parse([]byte("command: [x]\nruntime: 1s\nstart: {at: '"+text+"'}\n"),
			jobfile.Options{Now: now})
		if err != nil { // the next one would be in a gap, so the watch finds the day after
			if !strings.Contains(err.Error(), "does not come on") || want.Sub(now) < 22*time.Hour {
				r.Fatalf("%s after %s: %v, the watch shows it at %s", text, now, err, want)
			}
			return
		}
		if got := file.Spec.Window.At; !got.Equal(want) {
			r.Fatalf("%s after %s: %s, want %s", text, now, got.In(loc), want)
		}
	})
}

const placed = `
command: [x]
runtime: 1h
start: {at: tomorrow 14:00}
deadline: tomorrow 16:00
after: [aaaaaaaaaaaaaaaa, bbbb]
reservation: cccc
priority: -5
project: rendering
overrun: stop
split: if-needed
communication: 10MiB
count: 4
`

func TestPlacingKeys(t *testing.T) {
	t.Parallel()
	plan, err := jobfile.Load([]byte(placed), t.TempDir(), options())
	if err != nil {
		t.Fatal(err)
	}
	err = plan.Complete(func(ref jobfile.Ref) (grid.JobID, error) {
		return grid.JobID((ref.Text + strings.Repeat("z", 16))[:16]), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	job, err := plan.Job(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := grid.Job{
		Spec: grid.Spec{
			Kind: grid.KindCommand, Args: []string{"x"}, Need: job.Spec.Need,
			Runtime: time.Hour, Weights: grid.DefaultWeights(),
			Window: grid.Window{
				At:       time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC),
				Deadline: time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC),
			},
			Priority: -5, Project: "rendering", Reservation: "cccczzzzzzzzzzzz", Overrun: grid.OverrunStop,
		},
		Count: 4, TTL: time.Second, After: []grid.JobID{"aaaaaaaaaaaaaaaa", "bbbbzzzzzzzzzzzz"},
		Split: grid.SplitIfNeeded, CommBytes: 10 << 20,
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	roundTrip(t, job)
	unknown := errors.New("no such job")
	err = plan.Complete(func(jobfile.Ref) (grid.JobID, error) { return "", unknown })
	if !errors.Is(err, unknown) ||
		!strings.Contains(err.Error(), "job.yaml:6: after[0]: no such job; submit list") ||
		!strings.Contains(err.Error(), "job.yaml:7: reservation: no such job") {
		t.Errorf("Complete: %v", err)
	}
}

func TestReservationsAndFlooding(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]grid.Job{
		"reserve: 2h\nname: r\nproject: p\npriority: 3\nstart: {at: +30s}\n" +
			"resources: {cpus: 2}\ncount: 3\n": {
			Spec: grid.Spec{
				Name: "r", Kind: grid.KindReservation, Runtime: 2 * time.Hour, Project: "p", Priority: 3,
				Need: grid.Resources{
					MilliCPUs: 2000, MFLOPS: 1000, MemoryBytes: 128 << 20, DiskBytes: 64 << 20,
				},
				Window: grid.Window{At: now().Add(30 * time.Second).UTC()}, Weights: grid.DefaultWeights(),
			},
			Count: 3, TTL: time.Second,
		},
		"command: [x]\nruntime: 1m\nplacing: flood\nstart: {notBefore: +1m}\n": {
			Spec: grid.Spec{
				Kind: grid.KindCommand, Args: []string{"x"}, Runtime: time.Minute,
				Window: grid.Window{NotBefore: now().Add(time.Minute).UTC()},
				Need: grid.Resources{
					MilliCPUs: 1000, MFLOPS: 1000, MemoryBytes: 128 << 20, DiskBytes: 64 << 20,
				},
				Weights: grid.DefaultWeights(),
			},
			Count: 1, TTL: time.Second, Flood: true,
		},
	} {
		plan, err := jobfile.Load([]byte(text), t.TempDir(), options())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		job, err := plan.Job(nil)
		if diff := cmp.Diff(want, job); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		roundTrip(t, job)
	}
}

func TestMistakesInPlacing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"wasm: w\npriority: high": "job.yaml:2: priority: want a whole number " +
			"from -1000 to 1000, have \"high\"",
		"wasm: w\npriority: 1001": "priority: want a whole number from -1000",
		"wasm: w\nafter: [a, B]": "after[1]: want a job's id, or what it " +
			"begins with, have \"B\"; copy it from submit list",
		"wasm: w\nafter: {a: b}":                  "after: want a list",
		"wasm: w\nafter: ''":                      "after: want a job's id",
		"wasm: w\nreservation: abcdefghijklmnopq": "reservation: want a job's id",
		"wasm: w\noverrun: pause":                 "overrun: want one of suspend, stop, have \"pause\"",
		"wasm: w\nsplit: always":                  "split: want one of never, if-needed, greedy",
		"wasm: w\ncommunication: 10MiB": "communication: only the parts of a split job " +
			"exchange data; add split: if-needed",
		"wasm: w\nsplit: greedy\ncommunication: 10": "communication: want a size with a unit",
		"wasm: w\nplacing: everywhere":              "placing: want one of once, flood",
		"wasm: w\nplacing: flood\nsplit: never":     "placing: the parts of a split job cannot",
		"wasm: w\nplacing: flood\ndeadline: +1h": "placing: a job with a fixed start or a " +
			"deadline is promised by one site",
		"wasm: w\nretries: 101": "retries: want a whole number from 0 to 100, have \"101\"; " +
			"write it like 10",
		"wasm: w\nretries: -1":       "retries: want a whole number from 0 to 100",
		"wasm: w\nmax-failures: 0":   "max-failures: want a whole number from 1 to",
		"wasm: w\nmax-failures: 5 %": "max-failures: want a whole number from 1 to",
		"wasm: w\nsplit: never\nretries: 1": "retries: the parts of " +
			"a split job run together",
		"reserve: 2h\nstart: {at: 14:00}\nretries: 1": "retries: a reservation " +
			"only holds capacity",
		"wasm: w\nproject: " + strings.Repeat("x", 65): "project: want at most 64 bytes",
		"reserve: 2h": "job.yaml:1: start.at: a reservation needs " +
			"its start; add start: {at: 14:00}",
		"reserve: 2h\nstart: {notBefore: +1h}":   "start.at: a reservation needs its start",
		"reserve: 0s\nstart: {at: +1h}":          "reserve: want 1s to",
		"reserve: -1h\nstart: {at: +1h}":         "reserve: want a number with a unit",
		"reserve: 400d\nstart: {at: +1h}":        "reserve: want 1s to",
		"reserve: 2h\nstart: {at: +1h}\nwasm: w": "reserve: a reservation runs nothing",
		"reserve: 2h\nstart: {at: +1h}\ndeadline: +9h": "job.yaml:3: deadline: a reservation only " +
			"holds capacity; remove it",
		"reserve: 2h\nstart: {at: +1h}\nargs: [x]":         "args: a reservation only holds capacity",
		"reserve: 2h\nstart: {at: +1h}\nreservation: aaaa": "reservation: a reservation only holds",
		"wasm: w\nruntime: 0s":                             "runtime: want 1ms to",
		"wasm: w\nruntime: -5m":                            "runtime: want a number with a unit",
		"wasm: w\nruntime: 9999999999h":                    "runtime: want a number with a unit",
		"wasm: w\nreservatoin: a": "reservatoin: no such key; did you mean " +
			"reservation?",
		"wasm: w\nstart: {when: 14:00}": "start.when: no such key; want one of at, notBefore",
		"wasm: w\nstart: 14:00":         "start: want keys with values",
	} {
		_, err := jobfile.Parse([]byte(text), options())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}
