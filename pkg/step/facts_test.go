package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawFact(t *rapid.T) Fact {
	kind := rapid.SampledFrom([]string{"job/1", "task/1", "ta"}).Draw(t, "kind")
	key := rapid.SampledFrom([]string{"", "a", "b", "sk/1"}).Draw(t, "key")
	if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
		return Fact{Kind: kind, Key: key}
	}
	return NewFact(kind, key, rapid.Int().Draw(t, "value"))
}

// The twin is a list in which the last entry of a row counts.
func TestFactsKeepTheLastValueOfEachRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, twin := NewFacts(), map[string]Fact{}
		for range rapid.IntRange(0, 20).Draw(t, "facts") {
			f := drawFact(t)
			facts.Apply(f)
			twin[f.Kind+"\x00"+f.Key] = f
			if f.Value == nil {
				delete(twin, f.Kind+"\x00"+f.Key)
			}
		}
		if got, most := facts.Bytes(), len(facts.Encode())+1; got > most || got < most-1 {
			t.Fatalf("about %d bytes, where %d are encoded", got, most-1)
		}
		all := facts.All()
		if len(all) != len(twin) {
			t.Fatalf("%d rows, want %d", len(all), len(twin))
		}
		for i, f := range all {
			if want := twin[f.Kind+"\x00"+f.Key]; !cmp.Equal(f, want) {
				t.Fatalf("row %v, want %v", f, want)
			}
			if i > 0 && (f.Kind < all[i-1].Kind || f.Kind == all[i-1].Kind && f.Key <= all[i-1].Key) {
				t.Fatalf("row %v is out of order", f)
			}
		}
		back, err := DecodeFacts(facts.Encode())
		if err != nil {
			t.Fatal(err)
		}
		again := NewFacts()
		for _, f := range rapid.Permutation(back).Draw(t, "order") {
			again.Apply(f)
		}
		if !bytes.Equal(facts.Encode(), again.Encode()) {
			t.Fatalf("equal tables have other bytes: %s and %s", facts.Encode(), again.Encode())
		}
	})
}

func TestDecodeFacts(t *testing.T) {
	if facts, err := DecodeFacts(nil); facts != nil || err != nil {
		t.Errorf("DecodeFacts(nil) = %v, %v", facts, err)
	}
	if _, err := DecodeFacts([]byte("[{]")); err == nil {
		t.Error("DecodeFacts of broken JSON gives no error")
	}
	if got, want := string(NewFacts().Encode()), "[]"; got != want {
		t.Errorf("an empty table is %s, want %s", got, want)
	}
}

// The twin is encoding/json.
func TestAppendFactsWritesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type row struct {
			Kind  string          `json:"kind"`
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value,omitempty"`
		}
		rows, facts := []row{}, []Fact{}
		for range rapid.IntRange(0, 5).Draw(t, "facts") {
			f := NewFact(rapid.String().Draw(t, "kind"), rapid.String().Draw(t, "key"),
				rapid.String().Draw(t, "value"))
			if rapid.Bool().Draw(t, "remove") {
				f.Value = nil
			}
			facts, rows = append(facts, f), append(rows, row{f.Kind, f.Key, f.Value})
		}
		text := AppendFacts([]byte("before"), facts)
		var back []row
		if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("before")), &back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !cmp.Equal(rows, back) {
			t.Fatalf("%q reads as %v, want %v", text, back, rows)
		}
	})
}

func TestNewRandGivesEachEntityItsOwnSequence(t *testing.T) {
	seen := map[string]string{}
	for seed := range uint64(4) {
		for _, entity := range []string{"", "site", "broker"} {
			for incarnation := range uint64(4) {
				name := fmt.Sprint(seed, entity, incarnation)
				r, same := NewRand(seed, entity, incarnation), NewRand(seed, entity, incarnation)
				text := ""
				for range 4 {
					text += fmt.Sprint(r.Uint64(), " ")
				}
				if other, taken := seen[text]; taken {
					t.Errorf("%s and %s draw the same", name, other)
				}
				seen[text] = name
				if got := fmt.Sprint(same.Uint64(), " "); text[:len(got)] != got {
					t.Errorf("%s draws %s, then %s", name, text, got)
				}
			}
		}
	}
	// The values are part of replays and of every simulation's outcome.
	r := NewRand(42, "site", 1)
	if got, want := fmt.Sprint(r.Uint64(), r.Uint64()), goldenRand; got != want {
		t.Errorf("NewRand(42, site, 1) draws %s, want %s", got, want)
	}
}

const goldenRand = "14206734521050873775 5033745487267273381"

// Facts are sorted by kind and key whatever order they come in, without touching the caller's.
func TestEncodeFactsSorts(t *testing.T) {
	sorted := []Fact{NewFact("a", "x", 1), NewFact("a", "y", 2), NewFact("b", "", 3)}
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}} {
		var facts []Fact
		for _, i := range order {
			facts = append(facts, sorted[i])
		}
		given := slices.Clone(facts)
		if got, want := EncodeFacts(facts), AppendFacts(nil, sorted); !bytes.Equal(got, want) {
			t.Errorf("order %v: %s", order, got)
		}
		if !cmp.Equal(given, facts) {
			t.Errorf("order %v: the caller's became %v", order, facts)
		}
	}
}

// Plain kinds and keys stand as they are, without a way through encoding/json, which would
// write some of them otherwise; and one text is made for all rows.
func TestAppendFactsIsQuick(t *testing.T) {
	plain := ""
	for r := ' '; r <= '~'; r++ {
		if r != '"' && r != '\\' {
			plain += string(r)
		}
	}
	f := Fact{Kind: plain, Key: plain + plain, Value: []byte("7")}
	want := `[{"kind":"` + f.Kind + `","key":"` + f.Key + `","value":7}]`
	if got := string(AppendFacts(nil, []Fact{f})); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, f := range []Fact{
		{Kind: strings.Repeat("k", 9999)},
		{Key: strings.Repeat("k", 9999)},
		{Value: bytes.Repeat([]byte("1"), 9999)},
		{},
	} {
		facts := slices.Repeat([]Fact{f}, 100)
		if n := testing.AllocsPerRun(3, func() { AppendFacts(nil, facts) }); n > 1 {
			t.Errorf("%v allocations for one text", n)
		}
	}
}

// Times are in milliseconds since 1970, and 0 is no time.
func TestTimesOfFacts(t *testing.T) {
	for _, c := range []struct {
		at time.Time
		ms int64
	}{
		{time.Time{}, 0},
		{time.Unix(0, 1e6), 1},
		{time.Unix(0, -1e6), -1},
		{time.Unix(5, 7e6+999), 5007},
	} {
		if got := MS(c.at); got != c.ms {
			t.Errorf("MS(%v) = %d, want %d", c.at, got, c.ms)
		}
		got, want := FromMS(c.ms), c.at.Truncate(time.Millisecond)
		if !got.Equal(want) || got.IsZero() != c.at.IsZero() || got.Location() != time.UTC {
			t.Errorf("FromMS(%d) = %v, want %v", c.ms, got, want)
		}
	}
}

// What has no JSON form cannot be persisted; nobody writes half a fact.
func TestNewFactPanicsOnWhatHasNoForm(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it does not")
		}
	}()
	NewFact("kind", "key", math.Inf(1))
}

// Whatever a text is, the quick reader gives what the one of all JSON gives, or leaves it to that.
func FuzzPlainFacts(f *testing.F) {
	for _, seed := range []string{
		"[]", `[{"kind":"a","key":"b","value":{"c":["}",1]}}]`, `[{"kind":"a","key":"b"}]`,
		`[{"kind":"a","key":"b","value":null},{"kind":"a","key":"c","value":"\\\""}]`,
		`[{"kind":"a","key":"b","value":1}`, `[{"kind":"a","key":"b","value":1}],`,
		`[{"kind":"a","key":"b","value":}]`, `[{"kind":"\u0061","key":"b","value":1 }]`,
		`[{"kind":"a","key":"b","value":{]}}]`, `[{"kind":"a","key":"b","value":1},]`,
		`[{"kind":"a","key":"b","value":1 }]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, plain := decodePlain(text)
		if !plain {
			return
		}
		var rows []encodedFact
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatalf("%q is read as %v, and is %v", text, got, err)
		}
		if len(rows) != len(got) {
			t.Fatalf("%q is read as %d rows, want %d", text, len(got), len(rows))
		}
		for i, r := range rows {
			if want := (Fact{Kind: r.Kind, Key: r.Key, Value: r.Value}); !cmp.Equal(got[i], want) {
				t.Fatalf("%q: row %d is read as %v, want %v", text, i, got[i], want)
			}
		}
	})
}

// What the machines write is read the quick way.
func TestFactsAreReadTheQuickWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := rapid.SliceOfN(rapid.Custom(drawFact), 1, 20).Draw(t, "facts")
		got, plain := decodePlain(AppendFacts(nil, facts))
		if !plain || !cmp.Equal(got, facts) {
			t.Fatalf("%v is read as %v: %t", facts, got, plain)
		}
	})
}

func BenchmarkDecodeFacts(b *testing.B) {
	var facts []Fact
	for i := range 1000 {
		facts = append(facts, NewFact("task/1", fmt.Sprint("aaaaaaaaaaaaaaaa.", i), map[string]any{
			"phase": "awarded", "token": i, "site": strings.Repeat("x", 52), "distance": .123456,
			"awarded_ms": 1_700_000_000_000, "accepted": true, "line": 12345678901234,
		}))
	}
	text := AppendFacts(nil, facts)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := DecodeFacts(text); err != nil {
			b.Fatal(err)
		}
	}
}
