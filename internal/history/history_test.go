package history

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// machine is a computer with clocks that a test turns.
type machine struct {
	t        *testing.T
	dir      string
	now      Reading
	recorder *Recorder
	log      bytes.Buffer
}

// monday is Monday, 2026-03-02, 08:00 UTC.
func monday() time.Time { return time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) }

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{
		t: t, dir: t.TempDir(),
		now: Reading{Wall: monday(), Boot: time.Minute, Awake: time.Minute, BootID: "boot-0"},
	}
	t.Cleanup(func() {
		if m.recorder != nil {
			_ = m.recorder.Close(m.now)
		}
	})
	return m
}

func (m *machine) open() {
	m.t.Helper()
	recorder, err := Open(m.dir, time.UTC, m.now, slog.New(slog.NewTextHandler(&m.log, nil)))
	if err != nil {
		m.t.Fatal(err)
	}
	m.recorder = recorder
}

// pass lets time pass, with heartbeats.
func (m *machine) pass(d time.Duration) {
	for ; d > 0; d -= Every {
		step := min(d, Every)
		m.now.Wall, m.now.Boot, m.now.Awake = m.now.Wall.Add(step), m.now.Boot+step, m.now.Awake+step
		m.recorder.Beat(m.now)
	}
}

// off switches the machine off for a while: a new boot.
func (m *machine) off(d time.Duration) {
	m.now = Reading{Wall: m.now.Wall.Add(d), Boot: time.Minute, BootID: m.now.BootID + "x"}
}

func (m *machine) stop() {
	m.t.Helper()
	if err := m.recorder.Close(m.now); err != nil {
		m.t.Error(err)
	}
	m.recorder = nil
}

// crash loses everything that is only in memory.
func (m *machine) crash() { _ = m.recorder.file.Close(); m.recorder = nil }

func (m *machine) known() Known { return m.recorder.Known(m.now) }

func hours(n float64) float64 { return n * 3600 }

// ends shortens spans to what most tests are about.
func ends(spans []avail.Span) []string {
	var list []string
	for _, s := range spans {
		list = append(list, fmt.Sprintf("%s+%.2fh age %.2fh %s",
			weekTime(s.Week), s.Seconds/3600, s.Age/3600,
			[]string{"open", "crash", "left"}[s.End]))
	}
	return list
}

func weekTime(week float64) string {
	if week < 0 {
		return "?"
	}
	minutes := int(week) / 60
	days := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	return fmt.Sprintf("%s %02d:%02d", days[minutes/1440], minutes/60%24, minutes%60)
}

func (m *machine) want(counts Counts, spans ...string) {
	m.t.Helper()
	k := m.known()
	if diff := cmp.Diff(spans, ends(k.History.Spans)); diff != "" {
		m.t.Errorf("spans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counts, k.Counts); diff != "" {
		m.t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestStopsAndCrashesOverRestarts(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(9 * time.Hour)
	m.stop()
	m.off(15 * time.Hour)
	m.open()
	m.pass(2*time.Hour + 30*time.Second)
	m.crash()
	m.off(time.Hour)
	m.open()
	m.pass(30 * time.Minute)
	m.want(Counts{Runs: 3, Crashes: 1},
		"mon 08:00+9.00h age 0.00h left", "tue 08:00+2.01h age 0.00h crash",
		"tue 11:00+0.50h age 0.00h open")
	k := m.known()
	if diff := cmp.Diff([]float64{hours(15), hours(1)}, k.History.Downs); diff != "" {
		t.Errorf("times down (-want +got):\n%s", diff)
	}
	if k.Up != 30*time.Minute || k.Free != k.Up || k.Busy {
		t.Errorf("now = %+v", k)
	}
	if got := k.History.Spans[0].Ago; got != hours(18.5)+30 {
		t.Errorf("the first span ended %v s ago", got)
	}
}

func TestTheOwner(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(time.Hour)
	m.recorder.Owner(true, m.now)
	m.recorder.Owner(true, m.now)
	m.pass(2 * time.Hour)
	if k := m.known(); !k.Busy || k.Free != 0 || k.Up != 3*time.Hour {
		t.Errorf("while the owner is there: %+v", k)
	}
	m.recorder.Owner(false, m.now)
	m.pass(time.Hour)
	if k := m.known(); k.Busy || k.Free != time.Hour || k.Up != 4*time.Hour {
		t.Errorf("after the owner left: %+v", k)
	}
	m.want(Counts{Runs: 1}, "mon 08:00+1.00h age 0.00h left", "mon 11:00+1.00h age 3.00h open")
}

func TestSuspend(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(time.Hour)
	// Awake does not advance
	m.now.Wall, m.now.Boot = m.now.Wall.Add(8*time.Hour), m.now.Boot+8*time.Hour
	m.pass(time.Hour)
	m.want(Counts{Runs: 1, Suspends: 1}, "mon 08:00+1.02h age 0.00h left",
		"mon 17:01+0.98h age 0.00h open")
	k := m.known()
	if len(k.History.Downs) != 1 || k.History.Downs[0] != hours(8) || k.Up != 59*time.Minute {
		t.Errorf("%+v", k)
	}
	if !strings.Contains(m.log.String(), "the machine slept") {
		t.Errorf("log = %s", m.log.String())
	}
}

// The clock of the boot says how long, the wall clock's last reading when.
func TestClocksThatJump(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"ahead": 90 * time.Minute, "back": -90 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.now.Wall = m.now.Wall.Add(-by) // wrong when the machine starts, and set right later
			m.open()
			m.pass(time.Hour)
			m.now.Wall = m.now.Wall.Add(by)
			m.pass(time.Hour)
			m.want(Counts{Runs: 1, Jumps: 1}, "mon 08:00+2.00h age 0.00h open")
			if !strings.Contains(m.log.String(), "the clock was set") {
				t.Errorf("log = %s", m.log.String())
			}
		})
	}
}

// Machines without a battery start in 1970, some firmware in 2100.
func TestClocksThatAreWrong(t *testing.T) {
	for _, year := range []int{1970, 2150, 2250} {
		t.Run(fmt.Sprint(year), func(t *testing.T) {
			m := newMachine(t)
			m.now.Wall = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			m.open()
			m.pass(2 * time.Hour)
			m.crash()
			m.now = Reading{Wall: monday(), Boot: time.Minute, BootID: "boot-1"}
			m.open()
			m.pass(time.Hour)
			m.want(Counts{Runs: 2, Crashes: 1, WrongClocks: 1},
				"?+2.00h age 0.00h crash", "mon 08:00+1.00h age 0.00h open")
			if k := m.known(); len(k.History.Downs) != 0 {
				t.Errorf("times down = %v, want none: nobody knows", k.History.Downs)
			}
		})
	}
}

// An agent that is restarted within one boot was down as long as that boot's clock says.
func TestRestartWithinOneBoot(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(time.Hour)
	m.stop()
	m.now.Wall = m.now.Wall.Add(-24 * time.Hour) // and somebody sets the clock
	m.now.Boot += 10 * time.Minute
	m.open()
	if k := m.known(); len(k.History.Downs) != 1 || k.History.Downs[0] != 600 {
		t.Errorf("times down = %v, want 600 s", k.History.Downs)
	}
}

func TestDamagedLinesArePutAside(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(time.Hour)
	m.stop()
	path := filepath.Join(m.dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte("rubbish\n\x00\xff\n"), text...)
	broken = append(broken, text[:20]...) // a line that was cut off
	if err = os.WriteFile(path, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	m.off(time.Hour)
	m.open()
	m.want(Counts{Runs: 2, Damaged: 3}, "mon 08:00+1.00h age 0.00h left",
		"mon 10:00+0.00h age 0.00h open")
	aside, err := os.ReadFile(filepath.Join(m.dir, asideName))
	if err != nil || !bytes.Contains(aside, []byte("rubbish")) {
		t.Errorf("put aside: %q, %v", aside, err)
	}
	if !strings.Contains(m.log.String(), "put aside") {
		t.Errorf("log = %s", m.log.String())
	}
	m.stop()
	if text, err = os.ReadFile(path); err != nil || bytes.Contains(text, []byte("rubbish")) {
		t.Errorf("the file still has the damage: %v", err)
	}
}

func TestAFileThatCannotBeUsed(t *testing.T) {
	m := newMachine(t)
	if err := os.Mkdir(filepath.Join(m.dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	recorder, err := Open(m.dir, time.UTC, m.now, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("no error")
	}
	m.recorder = recorder
	m.pass(time.Hour)
	m.want(Counts{Runs: 1, Unwritten: 61}, "mon 08:00+1.00h age 0.00h open")
}

// The file stays small, and what is two years old goes.
func TestTheFileIsBounded(t *testing.T) {
	m := newMachine(t)
	var text []byte
	const days, perDay = 1100, 30
	for d := range days {
		start := monday().Add(time.Duration(d-days) * 24 * time.Hour)
		for i := range perDay {
			e := entry{
				kind: kindBusy, wallMS: start.Add(time.Duration(i) * time.Minute).UnixMilli(),
				bootMS: int64(i) * 60_000,
			}
			switch {
			case i == 0:
				e.kind = kindStart
			case i%2 == 0:
				e.kind = kindFree
			}
			text = append(text, e.line()...)
		}
	}
	if len(text) < maxBytes {
		t.Fatalf("the test wants a file that is too long, has %d bytes", len(text))
	}
	path := filepath.Join(m.dir, FileName)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m.open()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	k := m.known()
	if info.Size() > keepBytes+maxLineBytes || k.Counts.Runs < 100 || k.Counts.Runs > 731 {
		t.Errorf("%d bytes, %d runs", info.Size(), k.Counts.Runs)
	}
	for _, s := range k.History.Spans {
		if s.Ago > keepFor.Seconds() {
			t.Fatalf("a span of %v s ago", s.Ago)
		}
	}
}

func TestHeartbeatsForAWeekAreBounded(t *testing.T) {
	m := newMachine(t)
	m.open()
	m.pass(14 * 24 * time.Hour)
	info, err := os.Stat(filepath.Join(m.dir, FileName))
	if err != nil || info.Size() > compactAt+maxLineBytes {
		t.Errorf("%v bytes, %v", info.Size(), err)
	}
	m.want(Counts{Runs: 1}, "mon 08:00+336.00h age 0.00h open")
}

func TestLinesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := entry{
			kind: rapid.SampledFrom(
				[]kind{kindStart, kindBeat, kindStop, kindSuspend, kindJump, kindBusy, kindFree},
			).Draw(t, "kind"),
			wallMS: rapid.Int64Range(-maxMS, maxMS).Draw(t, "wall"),
			bootMS: rapid.Int64Range(-maxMS, maxMS).Draw(t, "boot"),
		}
		switch e.kind {
		case kindSuspend, kindJump:
			e.value = rapid.Int64Range(-maxMS, maxMS).Draw(t, "value")
		case kindStart:
			e.bootID = rapid.StringMatching(`[0-9a-f-]{0,36}`).Draw(t, "boot id")
		default:
		}
		line := e.line()
		back, err := parseLine(strings.TrimSuffix(string(line), "\n"))
		if err != nil || back != e || len(line) > maxLineBytes {
			t.Fatalf("%q gives %+v, %v, want %+v", line, back, err, e)
		}
		at := rapid.IntRange(0, len(line)-2).Draw(t, "at")
		line[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := parseLine(strings.TrimSuffix(string(line), "\n")); err == nil {
			t.Fatalf("%q is accepted", line)
		}
	})
}

// FuzzHistory gives the reader any file: what comes out can be learned from.
func FuzzHistory(f *testing.F) {
	now := entry{kind: kindBeat, wallMS: monday().UnixMilli(), bootMS: 10_000_000}
	var good []byte
	for i, k := range []kind{
		kindStart, kindBeat, kindBusy, kindFree, kindSuspend, kindJump, kindStop, kindStart,
	} {
		good = append(good,
			entry{kind: k, wallMS: now.wallMS, bootMS: int64(i) * 1000, value: 500}.line()...)
	}
	f.Add(good, int64(5))
	f.Add([]byte("rubbish\n"), int64(0))
	f.Fuzz(func(t *testing.T, text []byte, scale int64) {
		entries, damaged := parse(text)
		if len(entries) == 0 { // most inputs fail the checksum: let the bytes speak for themselves
			for i := 0; i+2 < len(text) && i < 3000; i += 3 {
				kinds := []kind{kindStart, kindBeat, kindStop, kindSuspend, kindJump, kindBusy, kindFree}
				entries = append(entries, entry{
					kind: kinds[int(text[i])%len(kinds)], wallMS: int64(int8(text[i+1])) * (scale % maxMS),
					bootMS: int64(int8(text[i+2])) * (scale % maxMS),
					value:  int64(int8(text[i])) * (scale % maxMS),
				})
			}
		}
		s := summarize(compact(entries), now, time.UTC)
		short := youngest(entries, now.wallMS, 1000)
		if len(short) > len(entries) || len(damaged) > len(text) {
			t.Error("more came out than went in")
		}
		m, err := avail.Fit(s.history, avail.DefaultPriors(), nil, 0)
		if err != nil {
			t.Fatalf("cannot be learned from: %v", err)
		}
		if p, err := m.Survival(avail.Query{For: 3600}); err != nil || !(p >= 0 && p <= 1) {
			t.Fatalf("survival = %v, %v", p, err)
		}
	})
}
