package wasm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is written page by page is read as it was, with its empty pages, which take no space.
func TestPartsOfAState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		pages := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1}), 0, 40).Draw(t, "pages")
		short := rapid.IntRange(0, pageBytes-1).Draw(t, "short")
		data := make([]byte, max(len(pages)*pageBytes-short, 0))
		want := int64(0)
		for i, full := range pages {
			if full != 0 {
				data[i*pageBytes] = full
				want += int64(min(pageBytes, len(data)-i*pageBytes))
			}
		}
		if got := occupied(data); got != want {
			t.Errorf("%d bytes are in pages that are not empty, want %d", got, want)
		}
		f, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := &stateWriter{file: f}
		text := []byte(`{"Stdout":3}`)
		wrong := errors.Join(w.put(data), w.put([]byte("abc")),
			w.copy(strings.NewReader("file"), 4), w.end(text))
		all, err := os.ReadFile(f.Name())
		if wrong != nil || err != nil {
			t.Fatal(wrong, err)
		}
		size := int(padded(int64(len(data))))
		if len(all) != size+2*pageBytes+len(text)+tailBytes ||
			!bytes.Equal(all[:len(data)], data) ||
			occupied(all[len(data):size]) != 0 || string(all[size:size+4]) != "abc\x00" ||
			string(all[size+pageBytes:size+pageBytes+5]) != "file\x00" {
			t.Errorf("%d bytes are not as they were written", len(all))
		}
	})
}

// stateOfParts is a state with a description and so many bytes before it.
func stateOfParts(d any, parts int64) []byte {
	text, _ := json.Marshal(d)
	out := append(make([]byte, parts), text...)
	return append(binary.BigEndian.AppendUint32(out, uint32(len(text))), stateMagic...)
}

func goodState() (description, bounds) {
	random, _ := rand.NewChaCha8([32]byte{}).MarshalBinary()
	d := description{
		Module: "m", Steps: 3, Pages: 2, Globals: []uint64{1, math.MaxUint64}, Random: random,
		Stdout: 5, Stderr: pageBytes + 1, Entries: 3, Files: []savedFile{
			{Path: []byte("a"), Dir: true},
			{Path: []byte("a.b"), Bytes: 1},
			{Path: []byte("a/\xff"), Bytes: 9, Written: 7},
		},
	}
	return d, bounds{
		module: "m", globals: []exposed{{global{kind: typeI32}, ""}, {global{kind: 0x7e}, ""}},
		memory: 2 * pageBytes, disk: 10, output: pageBytes + 1, hidden: "ckpt",
	}
}

// A state is taken as a whole or refused with a reason.
func TestStatesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*description)
		want   string
	}{
		"good":             {func(*description) {}, ""},
		"module":           {func(d *description) { d.Module = "n" }, "another module"},
		"memory":           {func(d *description) { d.Pages = 3 }, "3 pages"},
		"stdout":           {func(d *description) { d.Stdout = pageBytes + 2 }, "printed more"},
		"stderr":           {func(d *description) { d.Stderr = 3 * pageBytes }, "printed more"},
		"clock":            {func(d *description) { d.Clock = -1 }, "clock"},
		"late clock":       {func(d *description) { d.Clock = math.MaxInt64 }, "clock"},
		"entries":          {func(d *description) { d.Entries = -1 }, "counts"},
		"many entries":     {func(d *description) { d.Entries = maxEntries + 1 }, "counts"},
		"globals":          {func(d *description) { d.Globals = d.Globals[:1] }, "variables"},
		"narrow global":    {func(d *description) { d.Globals[0] = 1 << 32 }, "too large"},
		"file twice":       {func(d *description) { d.Files[2].Path = d.Files[1].Path }, "place"},
		"without its dir":  {func(d *description) { d.Files[0].Dir = false }, "cannot be there"},
		"outside":          {func(d *description) { d.Files[0].Path = []byte("../a") }, "path"},
		"absolute":         {func(d *description) { d.Files[0].Path = []byte("/a") }, "path"},
		"unclean":          {func(d *description) { d.Files[2].Path = []byte("a/../b") }, "path"},
		"the root":         {func(d *description) { d.Files[0].Path = []byte(".") }, "path"},
		"no name":          {func(d *description) { d.Files[0].Path = nil }, "path"},
		"a zero byte":      {func(d *description) { d.Files[1].Path = []byte("a\x00") }, "path"},
		"in the hidden":    {func(d *description) { d.Files[2].Path = []byte("ckpt") }, "be there"},
		"too much on disk": {func(d *description) { d.Files[2].Bytes = 10 }, "disk"},
	} {
		d, b := goodState()
		c.change(&d)
		state := stateOfParts(d, d.size())
		got, err := readDescription(bytes.NewReader(state), int64(len(state)))
		if err == nil {
			err = got.check(b)
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, errState) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// One that is cut short, longer, or of something else is refused before anything is laid out.
func TestDamagedStates(t *testing.T) {
	t.Parallel()
	d, _ := goodState()
	state := stateOfParts(d, d.size())
	open := func(s []byte) error {
		_, err := readDescription(bytes.NewReader(s), int64(len(s)))
		return err
	}
	if err := open(state); err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"empty": {}, "short": state[:5], "cut at its end": state[:len(state)-1],
		"cut at its beginning": state[1:], "longer": append([]byte{0}, state...),
		"of a program":  []byte("step 17 of a program that saves its state itself"),
		"later version": append(bytes.Clone(state[:len(state)-1]), '2'),
		"long text":     []byte("{}\xff\xff\xff\xffmrsstep1"),
		"unknown field": stateOfParts(map[string]any{"Tables": 1}, 0),
		"no object":     stateOfParts(7, 0),
		"negative":      stateOfParts(description{Stdout: -1}, 0),
		"huge":          stateOfParts(description{Stderr: math.MaxInt64}, 0),
		"negative file": stateOfParts(description{Files: []savedFile{{Bytes: -pageBytes}}}, 0),
		"full dir": stateOfParts(
			description{Files: []savedFile{{Dir: true, Bytes: 1}}}, pageBytes),
		"behind it":  bytes.Replace(state, []byte("mrsstep1"), []byte("mrsstep0"), 1),
		"many files": stateOfParts(description{Files: make([]savedFile, maxEntries+1)}, 0),
		"two texts": append(binary.BigEndian.AppendUint32([]byte("{}{}"), 4),
			stateMagic...),
	} {
		if err := open(damaged); !errors.Is(err, errState) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

// FuzzStates looks that no file makes the reader fail or take more memory than it may, and that
// what it takes has the size that it says and nothing outside of the sandbox.
func FuzzStates(f *testing.F) {
	d, b := goodState()
	f.Add(stateOfParts(d, 0))
	d.Pages, d.Stdout, d.Stderr, d.Files = 0, 0, 0, nil
	f.Add(stateOfParts(d, 0))
	f.Add([]byte("{}\x00\x00\x00\x02mrsstep1"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, state []byte) {
		d, err := readDescription(bytes.NewReader(state), int64(len(state)))
		if err != nil {
			if !errors.Is(err, errState) {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		if size := d.size(); size < 0 || size >= int64(len(state)) {
			t.Fatalf("%d of %d bytes", size, len(state))
		}
		b.globals, b.module = make([]exposed, len(d.Globals)), d.Module
		if d.check(b) != nil {
			return
		}
		for _, f := range d.Files {
			if at := filepath.Join(dir, string(f.Path)); !strings.HasPrefix(at, dir+"/") {
				t.Errorf("%q leads to %s", f.Path, at)
			}
		}
	})
}
