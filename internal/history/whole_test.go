package history

import (
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// summed is the whole summary of some entries as of so many seconds after the boot.
func summed(entries []entry, seconds int64, place *time.Location) summary {
	return summarize(entries, at(kindBeat, seconds, 0), place)
}

// left is a span on the Monday of these tests, in seconds; it ended so long before now.
func left(from, up, seconds, ago float64, end avail.Ending) avail.Span {
	const eight = 8 * 3600 // the boot was at eight
	return avail.Span{Week: eight + from, Age: from - up, Seconds: seconds, Ago: ago, End: end}
}

// All that is learned from some entries.
func TestWholeSummaries(t *testing.T) {
	wrong := func(k kind, seconds int64) entry {
		return entry{kind: k, wallMS: seconds * 1000, bootMS: seconds * 1000}
	}
	later := booted("c", 2)
	later.wallMS = at(kindBeat, 40, 0).wallMS
	for _, c := range []struct {
		name    string
		entries []entry
		now     int64
		want    summary
	}{
		{"nothing", nil, 10, summary{}},
		{"a start", []entry{booted("a", 5)}, 7, summary{
			counts: Counts{Runs: 1}, up: 5000, free: 5000,
			history: avail.History{Spans: []avail.Span{left(5, 5, 2, 0, avail.EndOpen)}},
		}},
		{"an end in order, now", []entry{booted("a", 0), at(kindStop, 5, 0)}, 5, summary{
			counts:  Counts{Runs: 1},
			history: avail.History{Spans: []avail.Span{left(0, 0, 5, 0, avail.EndOpen)}},
		}},
		{"an end in order, of the future", []entry{booted("a", 0), at(kindStop, 5, 0)}, 4, summary{
			counts:  Counts{Runs: 1},
			history: avail.History{Spans: []avail.Span{left(0, 0, 5, 0, avail.EndLeft)}},
		}},
		{
			"asleep while the owner is there",
			[]entry{
				booted("a", 0), at(kindBusy, 10, 0), at(kindBusy, 12, 0), at(kindSuspend, 30, 5000),
				at(kindJump, 31, 9), at(kindFree, 35, 0), at(kindFree, 36, 0),
			},
			40,
			summary{
				counts: Counts{Runs: 1, Suspends: 1, Jumps: 1}, up: 30_000, free: 35_000,
				history: avail.History{
					Spans: []avail.Span{
						left(0, 0, 10, 30, avail.EndLeft), left(35, 30, 5, 0, avail.EndOpen),
					},
					Downs: []float64{5},
				},
			},
		},
		{"asleep for longer than up", []entry{booted("a", 50), at(kindSuspend, 60, 1e9)}, 65, summary{
			counts: Counts{Runs: 1, Suspends: 1}, up: 60_000, free: 60_000,
			history: avail.History{
				Spans: []avail.Span{left(50, 50, 0, 15, avail.EndLeft), left(60, 60, 5, 0, avail.EndOpen)},
				Downs: []float64{10},
			},
		}},
		{"the owner is there", []entry{booted("a", 0), at(kindBusy, 10, 0)}, 40, summary{
			counts: Counts{Runs: 1}, busy: true,
			history: avail.History{Spans: []avail.Span{left(0, 0, 10, 30, avail.EndLeft)}},
		}},
		{
			"the owner was there before a crash",
			[]entry{booted("a", 0), at(kindBusy, 10, 0), at(kindBeat, 20, 0), booted("a", 30)},
			40,
			summary{
				counts: Counts{Runs: 2, Crashes: 1}, up: 30_000, free: 30_000,
				history: avail.History{
					Spans: []avail.Span{
						left(0, 0, 10, 30, avail.EndLeft), left(30, 30, 10, 0, avail.EndOpen),
					},
					Downs: []float64{10},
				},
			},
		},
		{
			"a clock that was wrong",
			[]entry{wrong(kindStart, 1), wrong(kindBusy, 4), wrong(kindFree, 6), wrong(kindBeat, 9), later},
			50,
			summary{
				counts: Counts{Runs: 2, Crashes: 1, WrongClocks: 1}, up: 2000, free: 2000,
				history: avail.History{Spans: []avail.Span{
					{Week: -1, Seconds: 3, End: avail.EndLeft},
					{Week: -1, Age: 5, Seconds: 3, End: avail.EndCrash},
					left(2, 2, 48, 0, avail.EndOpen),
				}},
			},
		},
		{"what is out of order", []entry{
			at(kindBeat, 1, 0), booted("a", 5), at(kindBusy, 4, 0), at(kindStop, 6, 0), at(kindBeat, 7, 0),
			booted("a", 8),
		}, 9, summary{
			counts: Counts{Runs: 2, Disordered: 3}, up: 8000, free: 8000,
			history: avail.History{
				Spans: []avail.Span{left(5, 5, 1, 3, avail.EndLeft), left(8, 8, 1, 0, avail.EndOpen)},
				Downs: []float64{2},
			},
		}},
	} {
		got := summed(c.entries, c.now, time.UTC)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(summary{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	east := summed([]entry{booted("a", 5)}, 7, time.FixedZone("east", 3600))
	if got, want := east.history.Spans[0].Week, left(3605, 0, 0, 0, 0).Week; got != want {
		t.Errorf("an hour to the east it is second %v of the week, want %v", got, want)
	}
}

// A time down between two clocks of which one cannot be right is not known, however short.
func TestTheTimeDownByClocksThatAreWrong(t *testing.T) {
	run := func(id string, wall time.Time) run {
		return run{entries: []entry{{kind: kindStart, wallMS: wall.UnixMilli(), bootID: id}}}
	}
	first := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	now := monday().UnixMilli()
	for name, c := range map[string]struct {
		before, after time.Time
		want          time.Duration
		known         bool
	}{
		"both right":         {first, first.Add(time.Hour), time.Hour, true},
		"wrong before":       {first.Add(-time.Second), first, 0, false},
		"wrong after":        {monday(), monday().Add(2 * time.Hour), 0, false},
		"an hour of the two": {monday(), monday().Add(time.Hour), time.Hour, true},
	} {
		got, known := downBetween(run("a", c.before), run("b", c.after), now)
		if got != c.want || known != c.known {
			t.Errorf("%s: %s, %t, want %s, %t", name, got, known, c.want, c.known)
		}
	}
}

// Runs of the first year that is believed may be old; those before it have a wrong clock.
func TestWhichOldRunsGo(t *testing.T) {
	first := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	young := booted("young", 0)
	for wall, kept := range map[time.Time]bool{
		first: false, first.Add(-time.Millisecond): true, monday(): false, monday().Add(1e6): true,
	} {
		old := entry{kind: kindStart, wallMS: wall.UnixMilli()}
		got := youngest([]entry{old, young}, monday().UnixMilli()+1, maxBytes)
		if (len(got) == 2) != kept {
			t.Errorf("of %s: %d runs are left", wall, len(got))
		}
	}
}

// What is written of readings that are out of bounds is within them.
func TestReadingsBecomeEntries(t *testing.T) {
	name := strings.Repeat("b", maxBootID)
	for _, c := range []struct {
		k    kind
		now  Reading
		want entry
	}{
		{kindStart, Reading{Wall: monday(), Boot: 1999 * time.Microsecond, BootID: name}, entry{
			kind: kindStart, wallMS: monday().UnixMilli(), bootMS: 1, bootID: name,
		}},
		{kindStart, Reading{Wall: monday(), BootID: name + "b"}, entry{
			kind: kindStart, wallMS: monday().UnixMilli(),
		}},
		{kindBeat, Reading{Wall: time.UnixMilli(maxMS), BootID: "a"}, entry{
			kind: kindBeat, wallMS: maxMS,
		}},
		{kindStop, Reading{Wall: time.UnixMilli(maxMS + 1)}, entry{kind: kindStop, wallMS: maxMS}},
		{kindStop, Reading{Wall: time.UnixMilli(-maxMS - 1)}, entry{kind: kindStop, wallMS: -maxMS}},
	} {
		if got := entryOf(c.k, c.now); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// What is wrong with a line is said; blank lines are nothing.
func TestWhatIsWrongWithALine(t *testing.T) {
	sum := func(body string) string {
		return fmt.Sprintf("%08x %s", crc32.ChecksumIEEE([]byte(body)), body)
	}
	fits := strings.Repeat("x", maxLineBytes)
	const no = "not a line of a history: "
	for text, want := range map[string]string{
		fits:                                   no + "wrong checksum",
		fits + "x":                             no + "longer than 128 bytes",
		"":                                     no + "wrong checksum",
		"beat 1 2":                             no + "wrong checksum",
		sum("beat 1"):                          no + "want 3 or 4 fields, have 2",
		sum("start 1 2 a b"):                   no + "want 3 or 4 fields, have 5",
		sum("beat x 2"):                        no + `want milliseconds, have "x"`,
		sum("beat 1 x"):                        no + `want milliseconds, have "x"`,
		sum("beat 1 2 3"):                      no + "too many fields",
		sum("free 1 2 3"):                      no + "too many fields",
		sum("jump 1 2"):                        no + "too few fields",
		sum("suspend 1 2"):                     no + "too few fields",
		sum("suspend 1 2 x"):                   no + `want milliseconds, have "x"`,
		sum("other 1 2"):                       no + "unknown kind",
		sum("start 1 2 " + fits[:maxBootID+1]): no + "name of the boot",
	} {
		if e, err := parseLine(text); err == nil || err.Error() != want {
			t.Errorf("%q: %+v, %v, want %q", text, e, err, want)
		}
	}
	for text, want := range map[string]int64{
		fmt.Sprint(maxMS): maxMS, fmt.Sprint(-maxMS): -maxMS, "0": 0,
		fmt.Sprint(maxMS + 1): 0, fmt.Sprint(-maxMS - 1): 0, "": 0,
	} {
		if got, err := milliseconds(text); got != want || (err == nil) != (text == fmt.Sprint(want)) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	beat := at(kindBeat, 1, 0)
	entries, damaged := parse([]byte("\n\nx\n" + string(beat.line()) + "\ny"))
	if diff := cmp.Diff([]entry{beat}, entries, cmp.AllowUnexported(entry{})); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"x", "y"}, damaged); diff != "" {
		t.Errorf("damaged (-want +got):\n%s", diff)
	}
}

// said is a log without times.
func said(m *machine) *slog.Logger {
	return slog.New(slog.NewTextHandler(&m.log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// All that one recorder writes, into its file and into the log.
func TestAWholeFile(t *testing.T) {
	m := newMachine(t)
	path := filepath.Join(m.dir, FileName)
	if err := os.WriteFile(path, append([]byte("?\n"), booted("z", 3).line()...), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.recorder, err = Open(m.dir, time.UTC, m.now, said(m)); err != nil {
		t.Fatal(err)
	}
	boot := m.now.Boot.Milliseconds()
	e := func(k kind, wall, since, value int64) entry {
		return entry{
			kind: k, wallMS: monday().UnixMilli() + wall*1000, bootMS: boot + since*1000, value: value,
		}
	}
	start := e(kindStart, 0, 0, 0)
	start.bootID = m.now.BootID
	want := []entry{booted("z", 3), start, e(kindBeat, 60, 60, 0), e(kindBeat, 90, 90, 0)}
	m.pass(90 * time.Second)
	m.now.Wall, m.now.Boot = m.now.Wall.Add(time.Hour+time.Minute), m.now.Boot+time.Minute
	m.recorder.Beat(m.now) // it slept for a minute, and its clock was set by an hour
	want = append(want, e(kindSuspend, 3750, 150, 60_000), e(kindJump, 3750, 150, 3_600_000),
		e(kindBeat, 3750, 150, 0))
	m.now.Wall = m.now.Wall.Add(-time.Hour)
	m.recorder.Owner(false, m.now)
	m.recorder.Owner(true, m.now)
	m.recorder.Owner(true, m.now)
	m.recorder.Owner(false, m.now)
	want = append(want, e(kindJump, 150, 150, -3_600_000), e(kindBusy, 150, 150, 0),
		e(kindFree, 150, 150, 0))
	m.pass(Every)
	recorder := m.recorder
	m.stop()
	want = append(want, e(kindBeat, 210, 210, 0), e(kindStop, 210, 210, 0))
	if err = recorder.Close(m.now); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	recorder.Owner(true, m.now)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, damaged := parse(raw)
	diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{}))
	if diff != "" || len(damaged) != 0 || int64(len(raw)) != recorder.size {
		t.Errorf("%d damaged, %d bytes of %d (-want +got):\n%s", len(damaged), recorder.size,
			len(raw), diff)
	}
	if got := recorder.Known(m.now).Counts.Unwritten; got != 0 {
		t.Errorf("%d lines were not written", got)
	}
	const log = `level=WARN msg="damaged lines of the history were put aside" lines=1 ` +
		`file=history.log.damaged
level=INFO msg="the machine slept" seconds=60
level=INFO msg="the clock was set" seconds=3600
level=INFO msg="the clock was set" seconds=-3600
`
	if diff := cmp.Diff(log, m.log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// The file is made shorter when it has grown beyond a bound, not at it.
func TestWhenTheFileIsMadeShorter(t *testing.T) {
	m := newMachine(t)
	m.open()
	beat := int64(len(entryOf(kindBeat, m.now).line()))
	m.recorder.size = compactAt - beat
	m.recorder.Beat(m.now)
	if m.recorder.size != compactAt {
		t.Errorf("at the bound %d bytes are counted", m.recorder.size)
	}
	m.recorder.Beat(m.now)
	info, err := os.Stat(filepath.Join(m.dir, FileName))
	if err != nil || info.Size() != m.recorder.size {
		t.Errorf("beyond it are %d bytes, %d are counted, %v", info.Size(), m.recorder.size, err)
	}
	start := entryOf(kindStart, m.now)
	if want := int64(len(start.line())) + beat; m.recorder.size != want {
		t.Errorf("%d bytes are left, want %d", m.recorder.size, want)
	}
}

// What cannot be written is counted and said once; what cannot be read is an error.
func TestTroubleWithTheFile(t *testing.T) {
	m := newMachine(t)
	var err error
	if m.recorder, err = Open(m.dir, time.UTC, m.now, said(m)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(m.dir, FileName)
	if err = m.recorder.file.Close(); err != nil {
		t.Fatal(err)
	}
	before := m.recorder.size
	m.pass(2 * Every)
	if k := m.known(); k.Counts.Unwritten != 2 || m.recorder.size != before {
		t.Errorf("%d lines are not written, %d bytes are", k.Counts.Unwritten, m.recorder.size-before)
	}
	m.recorder.size = maxBytes
	if err = os.Rename(m.dir, m.dir+"x"); err != nil {
		t.Fatal(err)
	}
	m.pass(Every)
	if err = os.Rename(m.dir+"x", m.dir); err != nil {
		t.Fatal(err)
	}
	want := `level=WARN msg="the history cannot be written; what the site learns is lost at its end"` +
		` error="write ` + path + `: file already closed"` + "\n"
	shorter := `level=WARN msg="the history cannot be made shorter" error=`
	log, found := strings.CutPrefix(m.log.String(), want)
	if !found || !strings.HasPrefix(log, shorter) || strings.Count(log, "\n") != 1 {
		t.Errorf("log %q, want %q and %q", m.log.String(), want, shorter)
	}
	m.stop() // there is no file to be closed
	other := newMachine(t)
	other.open()
	if err = other.recorder.file.Close(); err != nil {
		t.Fatal(err)
	}
	err = other.recorder.Close(m.now)
	if text := "close history: close " + filepath.Join(other.dir, FileName) +
		": file already closed"; err == nil ||
		err.Error() != text {
		t.Errorf("%v, want %q", err, text)
	}
	if err = other.recorder.Close(m.now); err != nil {
		t.Errorf("closed again: %v", err)
	}
	for place, want := range map[string]string{
		m.dir:                     "",
		filepath.Join(m.dir, "d"): "open history: %s: want a regular file; move it away",
		path:                      "open history: open %s: not a directory",
	} {
		file := filepath.Join(place, FileName)
		if place != m.dir && place != path {
			if err = os.MkdirAll(file, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(place, time.UTC, m.now, slog.New(slog.DiscardHandler))
		if text := strings.ReplaceAll(want, "%s", file); err == nil && want != "" ||
			err != nil && err.Error() != text {
			t.Errorf("%s: %v, want %q", place, err, text)
		}
		if got := r.Known(m.now).Counts.Unwritten; (got == 1) != (want != "") {
			t.Errorf("%s: %d lines are not written", place, got)
		}
		if err = r.Close(m.now); err != nil {
			t.Error(err)
		}
	}
}

// Damaged lines that cannot be put aside are counted and said.
func TestNothingCanBePutAside(t *testing.T) {
	m := newMachine(t)
	aside := filepath.Join(m.dir, asideName)
	if err := os.Mkdir(aside, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &Recorder{dir: m.dir, log: said(m)}
	r.putAside([]string{"a", "b"})
	want := `level=WARN msg="damaged lines of the history were put aside" lines=2 ` +
		`file=history.log.damaged
level=WARN msg="they could not be kept" error="open ` + aside + `: is a directory"
`
	if diff := cmp.Diff(want, m.log.String()); diff != "" || r.damaged != 2 {
		t.Errorf("%d are damaged; log (-want +got):\n%s", r.damaged, diff)
	}
}

// A clock since boot that is behind is no negative time.
func TestUpForNoTime(t *testing.T) {
	m := newMachine(t)
	m.open()
	now := m.now
	now.Boot -= time.Second
	k := m.recorder.Known(now)
	if k.Up != 0 || k.Free != 0 || k.Busy {
		t.Errorf("%+v", k)
	}
	now.Boot += 3 * time.Second
	if k = m.recorder.Known(now); k.Up != 2*time.Second || k.Free != 2*time.Second {
		t.Errorf("%+v", k)
	}
}
