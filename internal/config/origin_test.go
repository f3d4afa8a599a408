package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// origins are those that Explain finds, by name.
func origins(t *testing.T, src Sources) map[string]Origin {
	t.Helper()
	_, all, err := Explain(src)
	if err != nil {
		t.Fatal(err)
	}
	by := make(map[string]Origin)
	for _, o := range all {
		by[o.Name] = o
	}
	return by
}

// A preset that is set after init reaches everything that nobody chose: the file
// holds nothing else. Versions that wrote all settings kept the preset from all of it.
func TestPresetAfterInit(t *testing.T) {
	t.Parallel()
	text := NewFile([]Value{{"name", "attic"}, {"ceilings.cpus", "2"}, {"owner.reserve", "1"}})
	text, err := Edit(text, []Value{{"preset", "wan"}})
	if err != nil {
		t.Fatal(err)
	}
	env := environ("HOME", "/home/u")
	got, err := LoadAgent(Sources{File: write(t, string(text)), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := Default(PresetWAN, env)
	want.Name, want.Ceilings.MilliCPUs, want.Owner.ReserveMilli = "attic", 2000, 1000
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("preset wan after init (-want +got):\n%s", diff)
	}
}

func TestNewFileHoldsWhatWasChosen(t *testing.T) {
	t.Parallel()
	text := string(NewFile([]Value{{"name", "attic"}, {"lease.length", "5s"}}))
	values, err := fromYAML("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, v := range values {
		said = append(said, v.name+" "+v.text)
	}
	if want := []string{"name attic", "lease.length 5s"}; !slices.Equal(said, want) {
		t.Errorf("the file says %q, want %q", said, want)
	}
	documented := 0
	for _, k := range AgentKeys(os.LookupEnv) {
		line := "\n#" + k.Name + ": " + quoted(k.Default) + "\n"
		if k.Name == "name" {
			line = "\nname: attic\n"
		}
		if k.Documented {
			documented++
		}
		if strings.Contains(text, line) != k.Documented {
			t.Errorf("the line %q is there: %t, want %t", line, !k.Documented, k.Documented)
		}
	}
	if documented < 18 || documented > 24 {
		t.Errorf("%d settings are documented, want about 20", documented)
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}

// The file that versions up to 0.1 wrote has all settings in it. It is read as ever;
// what only repeats defaults is told, and what keeps a preset out.
func TestOldFile(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/home/ada", "XDG_RUNTIME_DIR", "/run/user/1000")
	file := "testdata/written-by-0.yaml"
	got, err := LoadAgent(Sources{File: file, Required: true, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	want := Default(PresetLAN, env)
	want.Name, want.Owner.Yield = "attic", true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the old file (-want +got):\n%s", diff)
	}
	repeated := 0
	for name, o := range origins(t, Sources{File: file, Env: env}) {
		if strings.HasPrefix(name, "history.") || strings.HasPrefix(name, "standby.") ||
			strings.HasPrefix(name, "controller.") || strings.HasPrefix(name, "tes.") ||
			slices.Contains([]string{
				"placing.failover", "placing.statements", "placing.fault-half-life", "owner.name",
				"owner.move-after", "owner.free-disk", "owner.battery", "owner.hook", "owner.input",
				"lease.reserved", "owner.remote", "owner.metered", "owner.heat", "signers",
				"commands",
			}, name) || strings.HasPrefix(name, "in-use.") {
			continue // younger than the file
		}
		if o.Line == 0 || o.Layer != LayerFile || o.Preset != "" {
			t.Errorf("%s: line %d, %s, overrules %q", name, o.Line, o.Layer, o.Preset)
		}
		if o.Repeats {
			repeated++
		}
	}
	if repeated < 57 { // of 59: not the name, and not owner.yield if root runs the test
		t.Errorf("%d lines repeat defaults, want all but the name's", repeated)
	}

	var overruled, inherited []string
	for name, o := range origins(t, Sources{
		File: file, Env: env, Flags: map[string]string{"preset": "wan", "rates-up": "5Mbit/s"},
	}) {
		if o.Preset != "" {
			overruled = append(overruled, name)
		}
		if o.Inherited {
			inherited = append(inherited, name)
		}
	}
	slices.Sort(overruled)
	slices.Sort(inherited)
	reached := []string{
		"lease.length", "lease.margin", "listen", "nat.punch", "nat.relay", "rates.down", "rates.up",
	}
	if !slices.Equal(overruled, reached) {
		t.Errorf("preset wan is overruled for %v, want %v", overruled, reached)
	}
	if want := reached[:6]; !slices.Equal(inherited, want) { // rates.up was chosen now
		t.Errorf("by lines that repeat the defaults of lan: %v, want %v", inherited, want)
	}
}

func TestOriginsSayWhere(t *testing.T) {
	t.Parallel()
	by := origins(t, Sources{
		File: write(t, "preset: wan\nceilings: {cpus: 2}\nname: file\nadvanced:\n  lease.length: 20s\n"+
			"  jobs: {max-runtime: 24h}\n"),
		Env:   environ("HOME", "/h", "MRS_NAME", "env", "MRS_KINDS", "wasm,command"),
		Flags: map[string]string{"kinds": "wasm"},
	})
	for name, want := range map[string][3]string{ // value, place, what the preset would choose
		"preset":           {"wan", "file, line 1", ""},
		"ceilings.cpus":    {"2", "file, line 2", ""},
		"ceilings.memory":  {"0B", "default", ""},
		"name":             {"env", "environment MRS_NAME", ""},
		"kinds":            {"wasm", "flag --kinds", ""},
		"lease.length":     {"20s", "file, line 5", "15s"},
		"lease.margin":     {"2s", "preset wan", ""},
		"nat.relay":        {"auto", "preset wan", ""},
		"rates.up":         {"10Mbit/s", "preset wan", ""},
		"data.quota":       {"10GiB", "default", ""},
		"data.keep":        {"7d", "default", ""},
		"owner.patience":   {"10m", "default", ""},
		"jobs.max-runtime": {"24h", "file, line 6", ""},
	} {
		if o := by[name]; o.Value != want[0] || o.Place != want[1] || o.Preset != want[2] {
			t.Errorf("%s: %q from %q, overrules %q, want %q", name, o.Value, o.Place, o.Preset, want)
		}
	}
	if !by["jobs.max-runtime"].Repeats || by["ceilings.cpus"].Repeats || by["preset"].Repeats {
		t.Error("the line that repeats a default is not the one that was found")
	}
	if by["name"].Line != 3 {
		t.Errorf("name stands in line %d of the file, want 3", by["name"].Line)
	}
}

func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ceilngs: {cpus: 2}": "siteagent.yaml:1: ceilngs.cpus: no such setting; " +
			"did you mean ceilings.cpus?",
		"relay: use": "siteagent.yaml:1: relay: no such setting; " +
			"did you mean nat.relay?",
		"advanced:\n  lease: {len: 1}": "did you mean lease.length?",
		"wholly: wrong": "siteagent.yaml:1: wholly: no such setting; " +
			"remove it (siteagent help settings lists all)",
		"lease: {length: 3s}\nadvanced: {lease.length: 5s}": "siteagent.yaml:2: " +
			"lease.length: given twice; remove this or line 1",
		"name: x\napi: {listen: \"0.0.0.0:80\"}": "siteagent.yaml:2: api.listen: " +
			"want a loopback address",
		"name: x\npeers: [a]\nlease: {length: 1ms}": "siteagent.yaml:3: lease.length: want 100ms to",
		"preset: wlan": "siteagent.yaml:1: preset: want one of lan, wan, test, have \"wlan\"",
	} {
		_, err := LoadAgent(Sources{File: write(t, text+"\n"), Env: environ("HOME", "/h")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Whatever is wrong with a file, its owner still finds the agent.
func TestSocketOfABrokenFile(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/h", "XDG_RUNTIME_DIR", "/r")
	for text, want := range map[string]string{
		"api: {socket: /s}\nnaem: x\n":               "/s",
		"api:\n  socket: /s\nlease: {length: x}\n":   "/s",
		"name: [\napi: {socket: /s}\n":               "/s",
		"name: x\n\tdomain: y\napi.socket: /s\n":     "/s",
		"advanced:\n  api.socket: /s\npreset: new\n": "/s",
		"name: x\n":    "/r/mrs.sock",
		"a: [\nb: {\n": "/r/mrs.sock",
	} {
		if got := AgentSocket(Sources{File: write(t, text), Required: true, Env: env}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A preset's punching is given up with the relay that an owner does not want.
func TestRelayOffWithPresetWAN(t *testing.T) {
	t.Parallel()
	c, err := LoadAgent(Sources{
		File: write(t, "preset: wan\nnat: {relay: off}\n"), Env: environ("HOME", "/h"),
	})
	if err != nil || c.NAT.Punch || c.NAT.Relay != "off" {
		t.Errorf("%+v, %v", c.NAT, err)
	}
	if _, err = LoadAgent(Sources{
		File: write(t, "nat: {relay: off, punch: true}\n"), Env: environ("HOME", "/h"),
	}); err == nil {
		t.Error("punching without a relay was taken, though it was chosen")
	}
}

// Live settings are merged; a restart would change the rest.
func TestChanges(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/h")
	before, after := Default(PresetLAN, env), Default(PresetWAN, env)
	after.Ceilings.MilliCPUs, after.Price = 1500, price{Named: true, CoreHour: 0.02}
	merged := Merge(before, after)
	var rest []string
	for _, k := range Changes(merged, after) {
		if k.Live {
			t.Errorf("%s is live and was not merged", k.Name)
		}
		rest = append(rest, k.Name)
	}
	slices.Sort(rest)
	if want := []string{
		"lease.length", "lease.margin", "listen", "nat.punch", "nat.relay", "preset",
	}; !slices.Equal(rest, want) {
		t.Errorf("after a restart: %v, want %v", rest, want)
	}
	if merged.Ceilings.MilliCPUs != 1500 || merged.Price.CoreHour != 0.02 ||
		merged.Rates.UpBps != after.Rates.UpBps {
		t.Errorf("merged: %+v", merged)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "new", "f.yaml"), filepath.Join(dir, "link.yaml")
	if err := WriteFile(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file: %v, %v, want mode 0600", info, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, []byte("two")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "two" {
		t.Errorf("behind the link: %q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("a file that all may read: %v, %v, want mode 0644", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link: %v, %v", info, err)
	}
}

// People's units say the same as the numbers.
func TestUnitsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<42).Draw(t, "n")
		n = n >> rapid.IntRange(0, 40).Draw(t, "shift") << rapid.IntRange(0, 10).Draw(t, "back")
		if got, err := asSize().parse(sizeText(n)); err != nil || got != n {
			t.Fatalf("size %d: %s, %d, %v", n, sizeText(n), got, err)
		}
		if got, err := asRate().parse(rateText(n)); err != nil || got != n {
			t.Fatalf("rate %d: %s, %d, %v", n, rateText(n), got, err)
		}
		span := asSpan()
		if got, err := span.parse(span.show(millis(n))); err != nil || got != millis(n) {
			t.Fatalf("span %d ms: %s, %s, %v", n, span.show(millis(n)), got, err)
		}
	})
	for _, got := range [][2]string{
		{sizeText(4 << 30), "4GiB"},
		{sizeText(512 << 20), "512MiB"},
		{sizeText(1500), "1500B"},
		{rateText(50e6), "50Mbit/s"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s, want %s", got[0], got[1])
		}
	}
}

func millis(n int64) time.Duration { return time.Duration(n%1e12) * time.Millisecond }
