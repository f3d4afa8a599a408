package step

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Facts is a table of facts, keyed by kind and key. The zero value is an empty
// table.
type Facts struct {
	rows map[[2]string][]byte
	size int
}

// NewFacts returns an empty table.
func NewFacts() *Facts { return new(Facts) }

// Apply writes a fact into the table, or removes the row when Value is nil.
func (f *Facts) Apply(fact Fact) {
	key := [2]string{fact.Kind, fact.Key}
	if old, has := f.rows[key]; has {
		f.size -= fact.about(old)
	}
	if fact.Value == nil {
		delete(f.rows, key)
		return
	}
	if f.rows == nil {
		f.rows = make(map[[2]string][]byte)
	}
	f.rows[key] = fact.Value
	f.size += fact.about(fact.Value)
}

// about tells the bytes that a row with this value takes in AppendFacts, without escapes.
func (f Fact) about(value []byte) int { return aroundFact + len(f.Kind) + len(f.Key) + len(value) }

// aroundFact has the bytes that stand around kind, key and value of a row.
const aroundFact = len(`{"kind":"","key":"","value":},`)

// Bytes is about what Encode would take, without doing it: exactly that plus one where no kind or
// key needs an escape and there is a row.
func (f *Facts) Bytes() int { return len(`[]`) + f.size }

// Get is the value of a row; nil if there is none.
func (f *Facts) Get(kind, key string) []byte { return f.rows[[2]string{kind, key}] }

// All lists the rows, ascending by kind and key.
func (f *Facts) All() []Fact {
	keys := slices.SortedFunc(maps.Keys(f.rows), func(a, b [2]string) int {
		return slices.Compare(a[:], b[:])
	})
	all := make([]Fact, 0, len(keys))
	for _, k := range keys {
		all = append(all, Fact{Kind: k[0], Key: k[1], Value: f.rows[k]})
	}
	return all
}

// Encode is EncodeFacts(f.All()).
func (f *Facts) Encode() []byte { return EncodeFacts(f.All()) }

type encodedFact struct {
	Kind  string          `json:"kind"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// EncodeFacts writes facts, sorted by kind and key, as one JSON array. Equal
// tables give equal bytes.
func EncodeFacts(facts []Fact) []byte {
	if !slices.IsSortedFunc(facts, byRow) {
		facts = slices.SortedFunc(slices.Values(facts), byRow)
	}
	return AppendFacts(nil, facts)
}

func byRow(a, b Fact) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
}

// AppendFacts appends facts to text in the order they have, as one JSON array,
// which DecodeFacts reads. The values are JSON already and are taken as they
// are: there can be very many of them, in the middle of a machine's work. A row
// that is removed has no value.
func AppendFacts(text []byte, facts []Fact) []byte {
	size := len(`[]`)
	for _, f := range facts {
		size += f.about(f.Value)
	}
	text = append(slices.Grow(text, size), '[')
	for i, f := range facts {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendText(append(text, `{"kind":`...), f.Kind)
		text = appendText(append(text, `,"key":`...), f.Key)
		if len(f.Value) > 0 {
			text = append(append(text, `,"value":`...), f.Value...)
		}
		text = append(text, '}')
	}
	return append(text, ']')
}

// appendText appends a string as JSON. Kinds and keys are plain, as a rule.
func appendText(text []byte, s string) []byte {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' && r != '"' && r != '\\' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return append(append(append(text, '"'), s...), '"')
	}
	return append(text, mustMarshal(s, "text")...)
}

// mustMarshal is the JSON of what has one: texts, and the plain structs that the machines
// persist.
func mustMarshal(v any, what ...string) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", strings.Join(what, " "), err))
	}
	return text
}

// DecodeFacts reads what EncodeFacts wrote. Empty input is an empty table.
func DecodeFacts(text []byte) ([]Fact, error) {
	if len(text) == 0 {
		return nil, nil
	}
	if facts, plain := decodePlain(text); plain {
		return facts, nil
	}
	var rows []encodedFact
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("decode facts: %w", err)
	}
	facts := make([]Fact, 0, len(rows))
	for _, r := range rows {
		facts = append(facts, Fact{Kind: r.Kind, Key: r.Key, Value: r.Value})
	}
	return facts, nil
}

// NewFact makes a fact from a value that encoding/json can write. It panics on others.
func NewFact(kind, key string, value any) Fact {
	return Fact{Kind: kind, Key: key, Value: mustMarshal(value, "fact", kind, key)}
}

// MS is a time as facts have it: in ms since 1970 UTC, 0 for the zero time.
func MS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMS is the time that MS wrote, in UTC, cut to the millisecond.
func FromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
