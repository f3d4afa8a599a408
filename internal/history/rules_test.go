package history

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at is an entry some seconds after a boot on a Monday.
func at(k kind, seconds, value int64) entry {
	return entry{
		kind: k, wallMS: monday().UnixMilli() + seconds*1000, bootMS: seconds * 1000, value: value,
	}
}

func booted(id string, seconds int64) entry {
	e := at(kindStart, seconds, 0)
	e.bootID = id
	return e
}

// How long a site was down is known by the boot clock within one boot, else by wall clocks
// that can be right; what is below 0 or longer than is believed is not known.
func TestTheTimeDown(t *testing.T) {
	const second = 1000
	now := monday().Add(5 * 365 * 24 * time.Hour).UnixMilli()
	limit := longestDown.Milliseconds()
	cut := func(id string, boot, wall int64) run {
		e := booted(id, 0)
		e.bootMS, e.wallMS = boot, monday().UnixMilli()+wall
		return run{entries: []entry{e}}
	}
	for _, c := range []struct {
		name          string
		before, after run
		want          int64
		known         bool
	}{
		{"one boot, whatever the wall clock", cut("a", 0, 0), cut("a", 7*second, -9), 7 * second, true},
		{"one boot, immediately", cut("a", 5, 0), cut("a", 5, 0), 0, true},
		{"one boot, backwards", cut("a", 5, 0), cut("a", 4, 50), 0, false},
		{"another boot", cut("a", 900*second, 0), cut("b", 0, 60*second), 60 * second, true},
		{"unknown boots", cut("", 0, 0), cut("", 5*second, 60*second), 60 * second, true},
		{"another boot, backwards", cut("a", 0, 1), cut("b", 0, 0), 0, false},
		{"as long as is believed", cut("a", 0, 0), cut("b", 0, limit), limit, true},
		{"longer than is believed", cut("a", 0, 0), cut("b", 0, limit+1), 0, false},
		{"a wrong clock before", cut("a", 0, -60*365*24*3600*second), cut("b", 0, 0), 0, false},
		{"a wrong clock after", cut("a", 0, 0), cut("b", 0, 90*365*24*3600*second), 0, false},
	} {
		got, known := downBetween(c.before, c.after, now)
		if known != c.known || got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("%s: %s, known: %t, want %d ms, %t", c.name, got, known, c.want, c.known)
		}
	}
}

// A clock can be right from the first year to the last one, and up to an hour ahead of now.
func TestWhichClocksCanBeRight(t *testing.T) {
	far := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		name string
		wall time.Time
		now  int64
		want bool
	}{
		{"first year", time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC), far, true},
		{"before", time.Date(firstYear, 1, 1, 0, 0, 0, -1, time.UTC), far, false},
		{"last year", time.Date(lastYear+1, 1, 1, 0, 0, 0, -1, time.UTC), far, true},
		{"after", time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC), far, false},
		{"an hour ahead", monday().Add(time.Hour), monday().UnixMilli(), true},
		{"more", monday().Add(time.Hour + time.Millisecond), monday().UnixMilli(), false},
	} {
		r := run{entries: []entry{{kind: kindStart, wallMS: c.wall.UnixMilli()}}}
		if got := r.trusted(c.now); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A run goes from its start to the next one. What stands before the first start, after the
// end of a run, or goes back, is counted and left out; two entries of one moment are fine.
func TestEntriesBecomeRuns(t *testing.T) {
	list := []entry{
		at(kindBeat, 1, 0), booted("a", 5), at(kindBusy, 5, 0), at(kindFree, 4, 0),
		at(kindStop, 9, 0), at(kindBeat, 10, 0), booted("b", 1), at(kindBeat, 2, 0),
	}
	runs, disordered := runsOf(list)
	if len(runs) != 2 || disordered != 3 {
		t.Fatalf("%d runs, %d disordered, want 2 and 3: %+v", len(runs), disordered, runs)
	}
	opts := cmp.AllowUnexported(run{}, entry{})
	want := []run{
		{entries: []entry{list[1], list[2], list[4]}},
		{entries: []entry{list[6], list[7]}, last: true},
	}
	if diff := cmp.Diff(want, runs, opts); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if runs, disordered := runsOf(nil); len(runs) != 0 || disordered != 0 {
		t.Errorf("of nothing come %v, %d", runs, disordered)
	}
}

// A heartbeat is superfluous once something of the same run follows; the last one before a
// start tells when a run crashed, the last one of all that the site lives.
func TestWhichHeartbeatsStay(t *testing.T) {
	start, beat, stop := booted("a", 1), at(kindBeat, 2, 0), at(kindStop, 3, 0)
	for _, c := range []struct{ before, want []entry }{
		{[]entry{start, beat, beat, stop}, []entry{start, stop}},
		{[]entry{start, beat, stop}, []entry{start, stop}},
		{[]entry{start, beat, beat}, []entry{start, beat}},
		{[]entry{start, beat, start, beat, stop}, []entry{start, beat, start, stop}},
		{[]entry{start, beat}, []entry{start, beat}},
		{nil, []entry{}},
	} {
		if diff := cmp.Diff(c.want, compact(c.before), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// What is too old goes, a run at a time; the last run stays, and so does one with a clock
// that cannot be right. If all together are too long the oldest go.
func TestWhichRunsStay(t *testing.T) {
	old, young := booted("old", 0), booted("young", 100)
	beat := at(kindBeat, 50, 0)
	wrong := entry{kind: kindStart, wallMS: 1000}
	const long = 1 << 20
	size := len(old.line()) + len(young.line())
	for _, c := range []struct {
		name   string
		before []entry
		after  int64
		limit  int
		want   []entry
	}{
		{"all", []entry{old, young}, 0, long, []entry{old, young}},
		{"ended then", []entry{old, beat, young}, beat.wallMS, long, []entry{old, beat, young}},
		{"ended before", []entry{old, beat, young}, beat.wallMS + 1, long, []entry{young}},
		{"the last one", []entry{old}, beat.wallMS, long, []entry{old}},
		{"an unknown time", []entry{wrong, young}, beat.wallMS, long, []entry{wrong, young}},
		{"as long as they may be", []entry{old, young}, 0, size, []entry{old, young}},
		{"too long", []entry{old, young}, 0, size - 1, []entry{young}},
		{"none", nil, 0, 0, nil},
	} {
		got := youngest(c.before, c.after, c.limit)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A line says no more than its kind needs, and what is out of bounds is none.
func TestLinesOfAHistory(t *testing.T) {
	for _, c := range []struct {
		e    entry
		want string
	}{
		{entry{kind: kindBeat, wallMS: 1, bootMS: 2, value: 3, bootID: "x"}, "beat 1 2"},
		{entry{kind: kindStop, wallMS: 1, bootMS: 2, bootID: "x"}, "stop 1 2"},
		{entry{kind: kindJump, wallMS: 1, bootMS: 2, value: -3}, "jump 1 2 -3"},
		{entry{kind: kindSuspend, wallMS: 1, bootMS: 2, value: 3}, "suspend 1 2 3"},
		{entry{kind: kindStart, wallMS: 1, bootMS: 2, bootID: "x"}, "start 1 2 x"},
		{entry{kind: kindStart, wallMS: 1, bootMS: 2}, "start 1 2"},
	} {
		_, body, _ := strings.Cut(string(c.e.line()), " ")
		if body != c.want+"\n" {
			t.Errorf("%+v is %q, want %q", c.e, body, c.want)
		}
	}
	longest := strings.Repeat("b", maxBootID)
	for _, e := range []entry{
		{kind: kindStart, bootID: longest},
		{kind: kindBeat, wallMS: maxMS, bootMS: -maxMS},
		{kind: kindJump, value: -maxMS},
	} {
		if got, err := parseLine(strings.TrimSuffix(string(e.line()), "\n")); err != nil || got != e {
			t.Errorf("%+v comes back as %+v, %v", e, got, err)
		}
	}
	for _, e := range []entry{
		{kind: kindStart, bootID: longest + "b"},
		{kind: "other"},
		{kind: kindBeat, wallMS: maxMS + 1},
		{kind: kindBeat, bootMS: -maxMS - 1},
		{kind: kindJump, value: maxMS + 1},
		{kind: kindStart, bootID: "a b"},
	} {
		if got, err := parseLine(strings.TrimSuffix(string(e.line()), "\n")); err == nil {
			t.Errorf("%+v is taken for %+v", e, got)
		}
	}
}

// A span lasts from its begin to its end, is as old as its end, and nothing is in the future.
func TestSpansOfTheLastRun(t *testing.T) {
	entries := []entry{
		booted("a", 0), at(kindSuspend, 100, 40_000), at(kindBusy, 150, 0), at(kindFree, 170, 0),
		at(kindFree, 180, 0),
	}
	s := summarize(entries, at(kindBeat, 200, 0), time.UTC)
	var got [][3]float64
	for _, span := range s.history.Spans {
		got = append(got, [3]float64{span.Age, span.Seconds, span.Ago})
	}
	want := [][3]float64{{0, 60, 140}, {0, 50, 50}, {70, 30, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("age, length and time since the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{40}, s.history.Downs); diff != "" {
		t.Errorf("downs (-want +got):\n%s", diff)
	}
	if s.up != 100_000 || s.free != 170_000 || s.busy {
		t.Errorf("up since %d, free since %d, busy: %t", s.up, s.free, s.busy)
	}
	early := summarize(entries, at(kindBeat, 199, 0), time.UTC)
	if n := len(early.history.Spans); n != 3 {
		t.Fatalf("%d spans", n)
	}
	// A suspend cannot be longer than the machine was up, nor shorter than nothing.
	for value, want := range map[int64]float64{1e9: 0, -5: 100} {
		list := []entry{booted("a", 0), at(kindSuspend, 100, value)}
		short := summarize(list, at(kindBeat, 110, 0), time.UTC)
		if got := short.history.Spans[0].Seconds; got != want {
			t.Errorf("asleep for %d ms of 100 s: the span before is of %v s, want %v", value, got, want)
		}
	}
	// An entry of the future, as of a clock that was set back: its end is not in the future.
	s = summarize([]entry{booted("a", 100)}, at(kindBeat, 90, 0), time.UTC)
	if len(s.history.Spans) != 1 || s.history.Spans[0].Ago != 0 || s.history.Spans[0].Seconds != 0 {
		t.Errorf("spans %+v, want one of nothing, now", s.history.Spans)
	}
}

// Clocks that differ by less than the bounds were read one after the other; from there on the
// machine slept or its clock was set.
func TestWhatIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name              string
		wall, boot, awake time.Duration
		want              []kind
	}{
		{"nothing", time.Minute, time.Minute, time.Minute, nil},
		{"a busy machine", time.Minute, time.Minute, time.Minute - leastSuspend + 1, nil},
		{"slept", time.Minute, time.Minute, time.Minute - leastSuspend, []kind{kindSuspend}},
		{"a slow reading", time.Minute + leastJump - 1, time.Minute, time.Minute, nil},
		{"set ahead", time.Minute + leastJump, time.Minute, time.Minute, []kind{kindJump}},
		{"a slow reading back", time.Minute - leastJump + 1, time.Minute, time.Minute, nil},
		{"set back", time.Minute - leastJump, time.Minute, time.Minute, []kind{kindJump}},
		{"both", 0, time.Minute, 0, []kind{kindSuspend, kindJump}},
	} {
		m := newMachine(t)
		m.open()
		m.now.Wall, m.now.Boot = m.now.Wall.Add(c.wall), m.now.Boot+c.boot
		m.now.Awake += c.awake
		m.recorder.Beat(m.now)
		var got []kind
		for _, e := range m.recorder.entries {
			if e.kind == kindSuspend || e.kind == kindJump {
				got = append(got, e.kind)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		m.stop()
	}
}

// What ended more than two years ago goes, unless the clock of now cannot be right: then
// nothing is known to be old.
func TestWhatIsOldGoes(t *testing.T) {
	for _, c := range []struct {
		name string
		now  time.Time
		runs int
	}{
		{"in time", monday().Add(keepFor), 2},
		{"too late", monday().Add(keepFor + time.Millisecond), 1},
		{"the last year", time.Date(lastYear, 12, 31, 0, 0, 0, 0, time.UTC), 1},
		{"a clock of the far future", time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC), 2},
		{"a clock without a battery", time.Unix(0, 0), 2},
	} {
		m := newMachine(t)
		text := append(booted("a", 0).line(), booted("b", 60).line()...)
		if err := os.WriteFile(filepath.Join(m.dir, FileName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		m.now.Wall = c.now
		m.open()
		if got := m.known().Counts.Runs - 1; got != c.runs {
			t.Errorf("%s: %d of two runs are kept, want %d", c.name, got, c.runs)
		}
		m.stop()
	}
}

// A file that is far too long is read from where it is not, one that is no file not at all.
func TestReadingIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, size := range []int{0, 2 * maxBytes, 2*maxBytes + 3} {
		text := []byte(strings.Repeat("x", size))
		if size > 2*maxBytes {
			copy(text, "abc")
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readBounded(path)
		if err != nil || len(got) != min(size, 2*maxBytes) || strings.ContainsAny(string(got), "abc") {
			t.Errorf("of %d bytes are read %d, %v", size, len(got), err)
		}
	}
	if got, err := readBounded(filepath.Join(dir, "none")); err != nil || got != nil {
		t.Errorf("what is not there reads %q, %v", got, err)
	}
	if _, err := readBounded(dir); err == nil || !strings.Contains(err.Error(), dir) ||
		!strings.Contains(err.Error(), "move it away") {
		t.Errorf("a directory: %v", err)
	}
}

// Damaged lines are kept for people, up to a bound, by nobody else to be read.
func TestWhatIsPutAsideIsBounded(t *testing.T) {
	dir := t.TempDir()
	r := &Recorder{dir: dir, log: slog.New(slog.DiscardHandler)}
	r.putAside(nil)
	if _, err := os.Stat(filepath.Join(dir, asideName)); !os.IsNotExist(err) {
		t.Error("a file for nothing:", err)
	}
	first := "first"
	for _, long := range []string{ // the longest that fits, and a byte more
		strings.Repeat("d", asideBytes-len(first)-2), strings.Repeat("d", asideBytes-len(first)-1),
	} {
		r.damaged = 0
		r.putAside([]string{first, long, ""})
		want := first + "\n" + long + "\n"
		if len(want) > asideBytes {
			want = first + "\n\n"
		}
		text, err := os.ReadFile(filepath.Join(dir, asideName))
		if err != nil || string(text) != want {
			t.Errorf("%d bytes are put aside, %v, want %d", len(text), err, len(want))
		}
	}
	r.putAside(nil)
	info, err := os.Stat(filepath.Join(dir, asideName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if r.damaged != 3 {
		t.Errorf("%d lines are counted, want 3", r.damaged)
	}
}

// The name of a boot is one word that fits into a line; else the boot is unknown.
func TestTheNameOfABoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot_id")
	longest := strings.Repeat("b", maxBootID)
	for text, want := range map[string]string{
		"a-b\n": "a-b", longest + "\n": longest, longest + "b": "", "a b": "", "a\nb": "", "": "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := bootIDIn(path); got != want {
			t.Errorf("%q names the boot %q, want %q", text, got, want)
		}
	}
	if got := bootIDIn(path + ".none"); got != "" {
		t.Errorf("nothing names the boot %q", got)
	}
}

// The file takes a line that fits, and none beyond; what was not written is counted. It is as
// large as what was written, from the start on, and after the end nothing is.
func TestTheLastLineThatFits(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.stop()
	m.open()
	path := filepath.Join(m.dir, FileName)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if m.recorder.size != size() {
		t.Errorf("counted are %d bytes of %d", m.recorder.size, size())
	}
	beat := entryOf(kindBeat, m.now)
	m.recorder.size = maxBytes - int64(len(beat.line()))
	before := size()
	m.recorder.add(beat, false)
	m.recorder.add(beat, false)
	if got := size() - before; got != int64(len(beat.line())) || m.recorder.unsaved != 1 {
		t.Errorf("%d bytes of two lines are written, %d lines are not", got, m.recorder.unsaved)
	}
	recorder := m.recorder
	m.stop()
	before = size()
	unsaved := recorder.unsaved
	recorder.Beat(m.now)
	if n := len(recorder.entries); size() != before || recorder.entries[n-1].kind != kindStop ||
		recorder.unsaved != unsaved {
		t.Errorf("after the end %d bytes are written, %d lines are not", size()-before, recorder.unsaved)
	}
}
