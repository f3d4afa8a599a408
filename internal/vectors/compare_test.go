package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
)

// number is a float64 that JSON may write as "NaN", "+Inf" or "-Inf"; null or a
// missing key leaves it absent.
type number struct {
	value float64
	known bool
}

func (n *number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = number{}
		return nil
	}
	v, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	*n = number{v, true}
	return err
}

// or is the number, or what stands for an absent one.
func (n number) or(absent float64) float64 {
	if !n.known {
		return absent
	}
	return n.value
}

// errInput says that a value is of no kind that the typed functions take: a
// fraction where they count, a word that they have no constant for. The vectors
// call that an invalid argument, like a number out of its range.
var errInput = errors.New("invalid input")

// integer is a whole number; anything else, also NaN and infinity, is an errInput.
// null or a missing key leaves it absent.
type integer struct {
	value int64
	known bool
}

func (n *integer) UnmarshalJSON(text []byte) error {
	var v number
	if err := v.UnmarshalJSON(text); err != nil {
		return err
	}
	if v.value != math.Trunc(v.value) || math.Abs(v.value) > 1<<62 {
		return fmt.Errorf("%w: %s is no whole number", errInput, text)
	}
	*n = integer{int64(v.value), v.known}
	return nil
}

// word finds what a word stands for; an unknown word is an errInput.
func word[T any](words map[string]T, name string) (T, error) {
	value, ok := words[name]
	if !ok {
		return value, fmt.Errorf("%w: %q is not known", errInput, name)
	}
	return value, nil
}

// floats is the values of a list.
func floats(list []number) []float64 {
	values := make([]float64, len(list))
	for i, n := range list {
		values[i] = n.value
	}
	return values
}

// record is an output that has parts; nil is null.
type record map[string]any

// compare returns nil if an output equals what the vectors want: a float64, a number or a
// list of float64 within the tolerance, a record part by part, anything else exactly.
func compare(got any, want json.RawMessage) error {
	switch got := got.(type) {
	case float64:
		return compareNumbers([]number{{got, true}}, wrap(want))
	case number:
		return compareNumbers([]number{got}, wrap(want))
	case []float64:
		list := make([]number, len(got))
		for i, v := range got {
			list[i] = number{v, true}
		}
		return compareNumbers(list, want)
	case record:
		return compareParts(got, want)
	default:
		return compareExactly(got, want)
	}
}

// wrap makes a list of one value.
func wrap(text json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage("["), text...), ']')
}

func compareNumbers(got []number, want json.RawMessage) error {
	var list []number
	if err := json.Unmarshal(want, &list); err != nil {
		return fmt.Errorf("decode %s: %w", want, err)
	}
	if len(list) != len(got) {
		return fmt.Errorf("got %v, want %s", got, want)
	}
	for i, n := range list {
		if got[i].known != n.known || n.known && !near(got[i].value, n.value) {
			return fmt.Errorf("[%d]: got %v, want %v", i, got[i], n)
		}
	}
	return nil
}

// compareParts compares the parts that the vectors name.
func compareParts(got record, want json.RawMessage) error {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(want, &parts); err != nil {
		return fmt.Errorf("decode %s: %w", want, err)
	}
	if (got == nil) != (parts == nil) {
		return fmt.Errorf("got %v, want %s", got, want)
	}
	for key, part := range parts {
		if err := compare(got[key], part); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func compareExactly(got any, want json.RawMessage) error {
	have, err := json.Marshal(got)
	if err != nil {
		return err
	}
	if a, b := canonical(have), canonical(want); a != b {
		return fmt.Errorf("got %s, want %s", a, b)
	}
	return nil
}

// canonical writes JSON with its keys in order and without spaces.
func canonical(text []byte) string {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err.Error()
	}
	out, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// near is the comparison rule. Only an infinity is near an infinity, and nothing
// is near NaN.
func near(a, b float64) bool {
	if a == b {
		return true
	}
	size := max(math.Abs(a), math.Abs(b))
	return !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

func TestCompare(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		got  any
		want string
		same bool
	}{
		{1.0, `1`, true},
		{1 + 9e-10, `1`, true},
		{1 + 2e-9, `1`, false},
		{9e-13, `0`, true},
		{2e-12, `0`, false},
		{math.Copysign(0, -1), `0`, true},
		{inf, `"+Inf"`, true},
		{inf, `1`, false},
		{5.0, `"+Inf"`, false},
		{-inf, `"+Inf"`, false},
		{nan, `1`, false},
		{nan, `"NaN"`, false},
		{nan, `null`, false},
		{number{}, `null`, true},
		{number{}, `0`, false},
		{number{1, true}, `null`, false},
		{[]float64{1, inf}, `[1, "+Inf"]`, true},
		{[]float64{1}, `[1, 2]`, false},
		{[]float64{1, 2}, `[1, 3]`, false},
		{[]string{"b", "a"}, `["b", "a"]`, true},
		{[]string{"b", "a"}, `["a", "b"]`, false},
		{map[string]int64{"b": 2, "a": 1}, `{"b": 2, "a": 1}`, true},
		{map[string]int64{"a": 1}, `{"b": 2, "a": 1}`, false},
		{true, `true`, true},
		{(*string)(nil), `null`, true},
		{(*string)(nil), `"a"`, false},
		{1.0, `{`, false},
		{record{"a": 1.0, "b": "x"}, `{"a": 1.0000000001, "b": "x"}`, true},
		{record{"a": 1.0, "b": "x"}, `{"a": 1, "b": "y"}`, false},
		{record{"a": 1.0}, `{"a": 1, "b": "y"}`, false},
		{record(nil), `null`, true},
		{record(nil), `{}`, false},
		{record{}, `null`, false},
		{record{}, `{`, false},
	} {
		if err := compare(c.got, json.RawMessage(c.want)); (err == nil) != c.same {
			t.Errorf("compare(%v, %s) = %v, want same = %v", c.got, c.want, err, c.same)
		}
	}
}

func TestIntegers(t *testing.T) {
	for text, want := range map[string]*integer{
		`5`: {5, true}, `5.0`: {5, true}, `-1e2`: {-100, true}, `null`: {}, `1.5`: nil,
		`"NaN"`: nil, `"+Inf"`: nil, `1e300`: nil,
	} {
		var got integer
		err := json.Unmarshal([]byte(text), &got)
		if want == nil && !errors.Is(err, errInput) || want != nil && (err != nil || got != *want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}
