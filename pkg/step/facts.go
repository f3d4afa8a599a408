package step

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Facts is a table of facts, keyed by kind and key. The zero value is not
// usable; NewFacts makes one.
type Facts struct {
	rows map[[2]string][]byte
}

// NewFacts returns an empty table.
func NewFacts() *Facts { return &Facts{rows: make(map[[2]string][]byte)} }

// Apply writes a fact into the table, or removes the row when Value is nil.
func (f *Facts) Apply(fact Fact) {
	key := [2]string{fact.Kind, fact.Key}
	if fact.Value == nil {
		delete(f.rows, key)
		return
	}
	f.rows[key] = fact.Value
}

// All lists the rows, ascending by kind and key.
func (f *Facts) All() []Fact {
	keys := slices.SortedFunc(maps.Keys(f.rows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
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
	sorted := slices.SortedFunc(slices.Values(facts), func(a, b Fact) int {
		return slices.Compare([]string{a.Kind, a.Key}, []string{b.Kind, b.Key})
	})
	rows := make([]encodedFact, 0, len(sorted))
	for _, f := range sorted {
		rows = append(rows, encodedFact{Kind: f.Kind, Key: f.Key, Value: f.Value})
	}
	text, err := json.Marshal(rows)
	if err != nil { // a machine persisted something that is no JSON
		panic(fmt.Sprintf("encode facts: %v", err))
	}
	return text
}

// DecodeFacts reads what EncodeFacts wrote. Empty input is an empty table.
func DecodeFacts(text []byte) ([]Fact, error) {
	if len(text) == 0 {
		return nil, nil
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

// NewFact makes a fact from a value that encoding/json can write.
func NewFact(kind, key string, value any) Fact {
	text, err := json.Marshal(value)
	if err != nil { // the machines persist plain structs of their own only
		panic(fmt.Sprintf("encode fact %s %s: %v", kind, key, err))
	}
	return Fact{Kind: kind, Key: key, Value: text}
}
