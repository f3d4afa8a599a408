package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// parsed reads a text and gives a text: the value as it is written, or the error. A value beside
// an error is told.
func parsed[V any](as codec[V], text string) string {
	v, err := as.parse(text)
	if err == nil {
		return as.show(v)
	}
	var none V
	if diff := cmp.Diff(none, v, cmp.AllowUnexported(price{})); diff != "" {
		return "an error and a value: " + diff
	}
	return err.Error()
}

// What is read comes back as it is written, and what cannot be read gives an error and no
// value.
func TestReadingAndWritingValues(t *testing.T) {
	t.Parallel()
	const milli = "want a number of at least 0, such as 1.5, have "
	const cost = "want a number of at least 0, such as 0.02, have "
	for _, c := range []struct{ got, want string }{
		{parsed(asMilli(), "1.5"), "1.5"},
		{parsed(asMilli(), ".0014"), "0.001"},
		{parsed(asMilli(), "x"), milli + `"x"`},
		{parsed(asMilli(), "-1"), milli + `"-1"`},
		{parsed(asBool(), "1"), "true"},
		{parsed(asBool(), "f"), "false"},
		{parsed(asBool(), "on"), `want true or false, have "on"`},
		{parsed(asPart(), "0.125"), "0.125"},
		{parsed(asPart(), "2"), `want a number from 0 to 1, have "2"`},
		{parsed(asFines(), ""), ""},
		{parsed(asFines(), " b=.5, a=2 "), "a=2,b=0.5"},
		{parsed(asFines(), "a"), `want SITE=NUMBER with a number of at least 0, have "a"`},
		{parsed(asFines(), "a=-1"), `want SITE=NUMBER with a number of at least 0, have "a=-1"`},
		{parsed(asPrice(), ""), ""},
		{parsed(asPrice(), "0.02"), "0.02"},
		{parsed(asPrice(), "x"), cost + `"x"`},
		{parsed(asCount[int]("n"), " 7% "), "7"},
		{parsed(asCount[int]("n"), "x"), `want a whole number of at least 0, have "x"`},
		{parsed(asWord("a", "b"), "b"), "b"},
		{parsed(asWord("a", "b"), "c"), `want one of a, b, have "c"`},
		{parsed(asList[string](), " a, ,b ,"), "a,b"},
		{parsed(asList[string](), ""), ""},
		{parsed(asKinds(), "command, wasm,wasm"), "wasm,command"},
		{parsed(asKinds(), " ,"), "no kind of work: want wasm, command or both; " +
			"to give nothing, pause the site"},
		{parsed(asSpan(), "48h"), "2d"},
		{parsed(asSpan(), "24h"), "24h"},
		{parsed(asSpan(), "49h"), "49h"},
		{parsed(asSpan(), "60m"), "1h"},
		{parsed(asSpan(), "90m"), "1h30m"},
		{parsed(asSpan(), "90s"), "1m30s"},
		{parsed(asSpan(), "60s"), "1m"},
		{parsed(asSpan(), "0s"), "0s"},
		{parsed(asSize(), "1024KiB"), "1MiB"},
		{parsed(asSize(), "1TiB"), "1TiB"},
		{parsed(asSize(), "3GiB"), "3GiB"},
		{parsed(asSize(), "1025B"), "1025B"},
		{parsed(asSize(), "0B"), "0B"},
		{parsed(asRate(), "1000Mbit/s"), "1Gbit/s"},
		{parsed(asRate(), "5000bit/s"), "5kbit/s"},
		{parsed(asRate(), "1001bit/s"), "1001bit/s"},
		{parsed(asRate(), "0bit/s"), "0bit/s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	kinds, err := parseKinds("wasm,shell")
	if kinds != nil || err == nil || !strings.Contains(err.Error(), `"shell"`) {
		t.Errorf("%v, %v", kinds, err)
	}
}

// What is wrong with a file is said with its line, once.
func TestWhatIsSaidOfAFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"name: x\nname: y\n":                "f:2: name: given twice; remove one",
		"name: x\nadvanced: {name: y}\n":    "f:2: name: given twice; remove this or line 1",
		"lease: {length: 1s, length: 2s}\n": "f:1: lease.length: given twice; remove one",
		"listen: [[a]]\n":                   "f:1: listen: want a list of plain texts without commas",
		"listen:\n- a\n- 'b,c'\n":           "f:3: listen: want a list of plain texts without commas",
		"domain: &a x\nname: *a\n": "f:2: name: anchors and aliases are not allowed here; " +
			"write the value out",
		"\nhello\n": `f:2: want settings as name: value, have "hello"`,
		"- a\n":     `f:1: want settings as name: value, have ""`,
	} {
		values, err := Says([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "configuration:") ||
			strings.ReplaceAll(err.Error(), "configuration:", "f:") != want {
			t.Errorf("%q says %v, %v, want %q", text, values, err, want)
		}
	}
	for text, want := range map[string]map[string]string{
		"":                                       {},
		"# nothing\n":                            {},
		"null\n":                                 {},
		"name:\n":                                {},
		"name: ~\n":                              {},
		"name: ''\n":                             {"name": ""},
		"name: 'null'\n":                         {"name": "null"},
		"listen: []\n":                           {"listen": ""},
		"listen: [a, b]\n":                       {"listen": "a,b"},
		"a: {b: {c: 1}}\n":                       {"a.b.c": "1"},
		"advanced: {a.b: 1, advanced: {c: 2}}\n": {"a.b": "1", "advanced.c": "2"},
	} {
		got, err := Says([]byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// What is wrong is said of the strongest source that gives the setting, or something below it.
func TestWhereAMistakeStands(t *testing.T) {
	t.Parallel()
	load := func(text string, env, flags []string) string {
		set := map[string]string{}
		for i := 0; i+1 < len(flags); i += 2 {
			set[flags[i]] = flags[i+1]
		}
		_, err := LoadAgent(Sources{
			File: "/dir/f", Text: []byte(text), Env: environ(append(env, "HOME", "/h")...), Flags: set,
		})
		if err == nil {
			return ""
		}
		return err.Error()
	}
	env := func(pairs ...string) []string { return pairs }
	const listen = "listen[1]: want a multiaddr, such as /ip4/127.0.0.1/tcp/4801, have \"b\""
	const site = "want a multiaddr that ends in /p2p/ID, have \"b\""
	for _, c := range []struct{ got, want string }{
		{load("listen: [/a, b]", nil, nil), "f:1: " + listen},
		{load("listen: [/a]", env("MRS_LISTEN", "/a,b"), nil), "environment, MRS_LISTEN: " + listen},
		{
			load("\nlisten: [/a]", env("MRS_LISTEN", "/a"), env("listen", "/a,b")),
			"flag --listen: " + listen,
		},
		{load("bootstrap: b", nil, nil), "f:1: bootstrap[0]: " + site},
		{load("log.level: loud", nil, nil), "f:1: log.level: want one of debug, info, warn, error, " +
			"have \"loud\""},
		{
			load("api: {socket: 'off', listen: ''}", nil, nil),
			"f:1: api: no socket and no address; give api.socket or api.listen",
		},
		{
			load("name: ''", nil, nil),
			"f:1: name: want 1 to 63 printable characters, have \"\"",
		},
		{
			load("data: {keep: 1s}\njobs.max-runtime: 1ms", nil, nil),
			"f:2: jobs.max-runtime: want 1s to 8784h0m0s, have 1ms\n" +
				"f:1: data.keep: want 1m0s to 87840h0m0s, have 1s",
		},
		{
			load("nme: 1", env("MRS_NAME", "x"), nil), "f:1: nme: no such setting; did you mean name?",
		},
		{load("x.cpus: 1", nil, nil), "f:1: x.cpus: no such setting; did you mean ceilings.cpus?"},
		{load("", nil, nil), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s\nwant %s", c.got, c.want)
		}
	}
	few := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa")
	for _, c := range []struct {
		known []string
		want  string
	}{
		{few, "q: no such setting; remove it (known: " + strings.Join(few, ", ") + ")"},
		{
			append(few[:10:10], "lambda"),
			"q: no such setting; remove it (siteagent help settings lists all)",
		},
	} {
		if got := Unknown("q", c.known).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A file may be absent if it is not required, and is read up to a size.
func TestFilesThatAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := environ("HOME", "/h")
	sized := func(name string, size int) string {
		path := filepath.Join(dir, name)
		text := "name: a\n" + strings.Repeat("#", size-len("name: a\n"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fits, large := sized("fits", maxFileBytes), sized("large", maxFileBytes+1)
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		src  Sources
		name string
		want string
	}{
		{Sources{File: fits, Required: true}, "a", ""},
		{Sources{File: large}, "", "read configuration " + large + ": larger than 1.0 MiB"},
		{Sources{File: none}, "", ""},
		{
			Sources{File: none, Required: true},
			"",
			"read configuration " + none + ": stat " + none + ": no such file or directory",
		},
		{
			Sources{File: filepath.Join(fits, "x")},
			"",
			"read configuration " + filepath.Join(fits, "x") + ": stat " + filepath.Join(fits, "x") +
				": not a directory",
		},
		{Sources{File: dir}, "", "read configuration: read " + dir + ": is a directory"},
		{Sources{}, "", ""},
		{Sources{File: large, Text: []byte("name: b")}, "b", ""},
	} {
		values, err := fromFile(c.src)
		name, _ := strongest(values, "name")
		if got := text(err); got != c.want || name.text != c.name {
			t.Errorf("%+v: name %q, %q, want %q, %q", c.src.File, name.text, got, c.name, c.want)
		}
	}
	for size, want := range map[int]string{salvageMost: "/s", salvageMost + 1: "/h/mrs.sock"} {
		lines := "name: [\napi: {socket: /s}\n" + strings.Repeat("#\n", size-3)
		path := filepath.Join(dir, "broken")
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		got := AgentSocket(Sources{File: path, Env: environ("XDG_RUNTIME_DIR", "/h/")})
		if got != want {
			t.Errorf("of %d lines: %s, want %s", size, got, want)
		}
	}
	if c, err := LoadAgent(Sources{Env: env}); err != nil || c.StateDir != "/h/.local/state/mrs" {
		t.Errorf("%s, %v", c.StateDir, err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The command line has settings and a file of its own.
func TestWhatSubmitIsTold(t *testing.T) {
	t.Parallel()
	got, err := LoadSubmit(Sources{
		File: "f", Text: []byte("runtime: 5m\ndomain: lab\naddr: /a\n"),
		Env:   environ("MRS_TOKEN", "hush", "MRS_ADDR", "/b"),
		Flags: map[string]string{"output": "json"},
	})
	want := Submit{Addr: "/b", Token: "hush", Domain: "lab", Output: "json", Runtime: 5 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = LoadSubmit(Sources{
		File: "f", Text: []byte("runtme: 5m\n"),
		Flags: map[string]string{"output": "xml", "runtime": "x"},
	})
	for _, part := range []string{
		"f:1: runtme: no such setting; did you mean runtime?",
		"flag --runtime: runtime: invalid: duration \"x\"",
		"flag --output: output: want one of table, wide, json, yaml, name, have \"xml\"",
	} {
		if !strings.Contains(text(err), part) {
			t.Errorf("%v, want %q", err, part)
		}
	}
	for secret, want := range map[Secret]string{"": `"" ""`, "x": `[redacted] "[redacted]"`} {
		raw, err := secret.MarshalText()
		if got := secret.String() + " " + secret.GoString(); secret == "" {
			want = ` ""`
			if got != want || string(raw) != "" {
				t.Errorf("nothing is %q, %q", got, raw)
			}
		} else if got != want || err != nil || string(raw) != "[redacted]" {
			t.Errorf("%q, %q, %v", got, raw, err)
		}
	}
}

// Sockets, tokens and files lie where the environment says, if it says where from the root.
func TestPlacesByTheEnvironment(t *testing.T) {
	t.Parallel()
	tmp := filepath.Base(filepath.Dir(socketPath(environ())))
	for _, c := range []struct{ got, want string }{
		{socketPath(environ()), "/tmp/" + tmp + "/mrs.sock"},
		{socketPath(environ("TMPDIR", "/var/t")), "/var/t/" + tmp + "/mrs.sock"},
		{socketPath(environ("TMPDIR", "t")), "/tmp/" + tmp + "/mrs.sock"},
		{socketPath(environ("XDG_RUNTIME_DIR", "r", "LOCALAPPDATA", "l")), "/tmp/" + tmp + "/mrs.sock"},
		{socketPath(environ("XDG_RUNTIME_DIR", "/r", "LOCALAPPDATA", "/l")), "/r/mrs.sock"},
		{socketPath(environ("LOCALAPPDATA", "/l", "TMPDIR", "/t")), "/l/mrs/mrs.sock"},
		{SubmitFile(environ("HOME", "/h")), "/h/.config/mrs/submit.yaml"},
		{SubmitFile(environ("XDG_CONFIG_HOME", "/c")), "/c/mrs/submit.yaml"},
		{SubmitFile(environ("XDG_CONFIG_HOME", "c", "HOME", "")), "/.config/mrs/submit.yaml"},
		{AgentFile(environ("HOME", "/h", "USERPROFILE", "/u")), "/h/.config/mrs/siteagent.yaml"},
		{StateTokenPath(environ("XDG_STATE_HOME", "/s")), "/s/mrs/api.token"},
		{Agent{StateDir: "/s"}.TokenPath(), "/s/api.token"},
		{Agent{StateDir: "/s", API: API{TokenFile: "/t"}}.TokenPath(), "/t"},
	} {
		if c.got != filepath.FromSlash(c.want) {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	if !strings.HasPrefix(tmp, "mrs-") || tmp == "mrs-" {
		t.Errorf("a user's own folder is %q", tmp)
	}
}

// Each of several changes is made, or the error names the one that could not be.
func TestEditsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	const no = "the file cannot be changed here; use an editor"
	for _, c := range []struct {
		before, name, text, want string
	}{
		{"name: |\n  x\n", "name", "y", "name: " + no},
		{"name: |\n  x\n", "name", "-", "name: " + no},
		{"name: >-\n  x\n", "name", "-", "name: " + no},
		{"name: \"a\n  b\"\n", "name", "y", "name: " + no},
		{"name: 'a\n  b'\n", "name", "-", "name: " + no},
		{"name: a\n  b\n", "name", "y", "name: " + no},
		{"peers: [a, \"b\n  c\"]\n", "peers", "y", "peers: " + no},
		{"? name\n", "name", "y", "name: " + no},
		{"? name", "name", "-", "name: " + no},
		{"? name", "name", "y", "name: " + no},
		{"name: x\n", "#", "y", no},
		{"peers:\n- a\n- b\nname: x\n", "peers", "z", no},
		{"hello", "name", "y", no + ": configuration:1: want settings as name: value, have \"hello\""},
		{"hello", "name", "-", no + ": configuration:1: want settings as name: value, have \"hello\""},
		{"{name: x, advanced: {dht: true}}\n", "nat.punch", "true", no},
	} {
		got, err := edited(t, c.before, Value{c.name, c.text})
		if text(err) != c.want || got != "" {
			t.Errorf("%s of %q: %q, %v, want %q", c.name, c.before, got, err, c.want)
		}
	}
	got, err := Edit([]byte("name: x\n"), []Value{{"a: b", "y"}, {"name", "y"}})
	if got != nil || !strings.HasPrefix(text(err), "name: configuration: not YAML: ") {
		t.Errorf("%q, %v", got, err)
	}
	got, err = Remove([]byte("name: x\nlog: {level: |\n x}\n"), []string{"name"})
	if got != nil || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

// However a value is written, another one takes its place, or it goes, and nothing else does.
func TestEveryWayToWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, name, set, unset string }{
		{"name: 'it''s' # x\n", "name", "name: z # x\n", ""},
		{"name: \"a\\\"b\" # x\n", "name", "name: z # x\n", ""},
		{"name :\ndomain: d\n", "name", "name : z\ndomain: d\n", "domain: d\n"},
		{"\"name\":\n", "name", "\"name\": z\n", ""},
		{"{name: , domain: d}\n", "name", "{name: z , domain: d}\n", "{domain: d}\n"},
		{"{domain: d, name: }\n", "name", "{domain: d, name: z }\n", "{domain: d}\n"},
		{"peers: [] # x\n", "peers", "peers: z # x\n", ""},
		{"peers: [ ] # ]\n", "peers", "peers: z # ]\n", ""},
		{"peers: [a, 'b]'  ] # c\n", "peers", "peers: z # c\n", ""},
		{"peers: [a,\n  b]\nname: x\n", "peers", "peers: z\nname: x\n", "name: x\n"},
		{"peers:\n - a\n - b\nname: x\n", "peers", "peers:\n z\nname: x\n", "name: x\n"},
		{
			"{a: 1,\n name: x\n ,\n b: 2}\n", "name",
			"{a: 1,\n name: z\n ,\n b: 2}\n", "{a: 1,\n \n b: 2}\n",
		},
		{"{a: 1,\n name: x\n}\n", "name", "{a: 1,\n name: z\n}\n", "{a: 1}\n"},
		{"{ name: x }", "name", "{ name: z }", "{}"},
		{"{name: x,a: 1}", "name", "{name: z,a: 1}", "{a: 1}"},
		{"a: {b: {c: 1}}\nd: 2\n", "a.b.c", "a: {b: {c: z}}\nd: 2\n", "d: 2\n"},
		{"d: 2\na:\n  b:\n    c: 1 # x\n", "a.b.c", "d: 2\na:\n  b:\n    c: z # x\n", "d: 2\n"},
		{"a: {b: {c: 1}, d: 2}\n", "a.b.c", "a: {b: {c: z}, d: 2}\n", "a: {d: 2}\n"},
		{"a:\n  b:\n    c: 1\n  d: 2\n", "a.b.c", "a:\n  b:\n    c: z\n  d: 2\n", "a:\n  d: 2\n"},
		{"a:\n  b: {c: 1, d: 2}\n", "a.b.c", "a:\n  b: {c: z, d: 2}\n", "a:\n  b: {d: 2}\n"},
		{"d: {a: {b: {c: 1}}}\n", "d.a.b.c", "d: {a: {b: {c: z}}}\n", ""},
		{"d: {a: {b: {c: 1}}, e: 2}\n", "d.a.b.c", "d: {a: {b: {c: z}}, e: 2}\n", "d: {e: 2}\n"},
		{"d: {a: {b: {c: 1}, e: 2}}\n", "d.a.b.c", "d: {a: {b: {c: z}, e: 2}}\n", "d: {a: {e: 2}}\n"},
		{"#", "name", "#\nname: z\n", "#"},
		{"ä: ü\nname: x", "name", "ä: ü\nname: z", "ä: ü\n"},
		{
			"advanced:\n  dht: true", "nat.punch", "advanced:\n  nat.punch: z\n  dht: true",
			"advanced:\n  dht: true",
		},
	} {
		for text, want := range map[string]string{"z": c.set, "-": c.unset} {
			got, err := edited(t, c.before, Value{c.name, text})
			if err != nil || got != want {
				t.Errorf("%s of %q to %s: %q, %v, want %q", c.name, c.before, text, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		"": `""`, "a": "a", "null": `"null"`, "true": "true", "1.5": "1.5", "~": `"~"`, "a b": `"a b"`,
		"/x": "/x", "-x": `"-x"`, "a\"b": `"a\"b"`, "x:y": `"x:y"`, "50Mbit/s": "50Mbit/s",
	} {
		if got := quoted(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}

// A merged configuration has each live setting of the one and all others of the other.
func TestMergedSettings(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/h")
	before := sound()
	after, err := LoadAgent(Sources{Env: env, Flags: map[string]string{
		"name": "other", "ceilings-gflops": "2.5", "price": "0.5", "owner-hours": "mon-fri 18:00-08:00",
		"kinds": "wasm,command", "owner-patience": "90s", "log-level": "warn", "dht": "true",
	}})
	if err != nil {
		t.Fatal(err)
	}
	merged := Merge(before, after)
	for _, k := range AgentKeys(env) {
		want := before.ValueOf(k.Name)
		if k.Live {
			want = after.ValueOf(k.Name)
		}
		if got := merged.ValueOf(k.Name); got != want {
			t.Errorf("%s is %s, want %s", k.Name, got, want)
		}
	}
	if got := len(Changes(before, before)); got != 0 {
		t.Errorf("%d settings differ from themselves", got)
	}
	bad := sound()
	bad.Owner.ReserveMilli = -1
	said := ""
	func() {
		defer func() { said, _ = recover().(string) }()
		Merge(before, bad)
	}()
	if want := "owner.reserve cannot be read back: want a number of at least 0, such as 1.5, " +
		"have \"-0.001\""; said != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// Members may be named by no more than their addresses.
func TestMistakesInAddresses(t *testing.T) {
	t.Parallel()
	a := sound()
	a.Peers = []grid.SiteID{""}
	a.Listen, a.Bootstrap = []string{"a"}, []string{"/b"}
	want := []string{
		"peers[0]: ",
		"listen[0]: want a multiaddr, such as /ip4/127.0.0.1/tcp/4801, have \"a\"",
		"bootstrap[0]: want a multiaddr that ends in /p2p/ID, have \"/b\"",
	}
	got := strings.Split(text(a.Validate()), "\n")
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}
