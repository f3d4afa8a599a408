package grid_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestParseBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"512MiB": 512 << 20, "1.5 GiB": 3 << 29, "10B": 10, "2kB": 2000, "0B": 0, " 1TB ": 1e12,
		"1KiB": 1 << 10, "1MiB": 1 << 20, "1GiB": 1 << 30, "1TiB": 1 << 40, "1PiB": 1 << 50,
		"1MB": 1e6, "1GB": 1e9, "1B": 1, "8PiB": 1 << 53, "8192TiB": 1 << 53, "0.5B": 1, "0.4B": 0,
	} {
		if got, err := grid.ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "512", "MiB", "-1MiB", "NaNB", "InfB", "9000PiB", "5 mib", "1e400GiB",
		"9007199254740994B",
	} {
		if got, err := grid.ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"20Mbit/s": 20e6, "1.5 Gbit/s": 15e8, "7bit/s": 7, " 2kbit/s ": 2000, "0bit/s": 0,
		"9007199254740992bit/s": 1 << 53, "0.5bit/s": 1, "0.4bit/s": 0,
	} {
		if got, err := grid.ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "20", "Mbit/s", "-1bit/s", "NaNbit/s", "20MB/s", "20mbit/s", "1e16bit/s",
		"9007199254740994bit/s", "Infbit/s",
	} {
		if got, err := grid.ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10m": 10 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour,
		"250ms": 250 * time.Millisecond, "0s": 0, "1d0s": 24 * time.Hour, "7d1ns": 7*24*time.Hour + 1,
		"65535d": 65535 * 24 * time.Hour, "08d": 192 * time.Hour,
		"65535d989207h47m16.854775807s": math.MaxInt64,
	} {
		if got, err := grid.ParseSpan(text); err != nil || got != want {
			t.Errorf("ParseSpan(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "10", "-5m", "d", "1.5d", "999999d", "soon", "65536d", "65535d2562047h",
		"1d-1s", "-1d", "1ad", "65535d989207h47m16.854775808s",
	} {
		if got, err := grid.ParseSpan(text); err == nil {
			t.Errorf("ParseSpan(%q) = %s, want an error", text, got)
		}
	}
}

func TestNearestWord(t *testing.T) {
	t.Parallel()
	known := []string{"resources", "runtime", "args", "env"}
	for word, want := range map[string]string{
		"resorces": "resources", "Runtme": "runtime", "arg": "args", "agrs": "args", "zzz": "",
		"ragv": "", "rezouzzes": "resources", "zezouzzes": "", "nev": "env", "evn": "env", "nve": "",
		"rags": "args", "arsg": "args", "env": "env", "ENV": "env", "envs": "env", "nv": "env",
		"xenv": "env", "xxargs": "args", "xyargs": "args", "argsxy": "args",
	} {
		if got := grid.NearestWord(word, known); got != want {
			t.Errorf("NearestWord(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestASiteThatRunsNothingReservesNothing(t *testing.T) {
	t.Parallel()
	if (grid.Capability{}).Runs(grid.KindReservation) {
		t.Error("a site that runs no kind of work would hold capacity for a reservation")
	}
	wasm := grid.Capability{Kinds: []grid.WorkKind{grid.KindWasm}}
	if !wasm.Runs(grid.KindReservation) || !wasm.Runs(grid.KindWasm) || wasm.Runs(grid.KindCommand) {
		t.Error("a site that runs wasm runs that and holds reservations, no more")
	}
}

// Names of others stay readable, and steer no terminal.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "attic": "attic", "Zürich 東京": "Zürich 東京", "a\x1b[31mb": "a?[31mb",
		"a\nb\tc\r": "a?b?c?", "\x7f\u0085\u009b2J": "???2J", "a\xff\xfeb": "a?b",
		"exe.\u202egpj": "exe.?gpj",
	} {
		if got := grid.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		got := grid.Plain(text)
		if len(got) > len(text) || grid.Plain(got) != got {
			t.Fatalf("Plain(%q) = %q", text, got)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("Plain(%q) = %q", text, got)
			}
		}
	})
}
