package step

import (
	"encoding/binary"
	"math"
	"math/bits"
	"reflect"
	"time"
)

// HashEffects folds effects, in their order, into a hash that starts from seed:
// 0, or the hash so far. Equal effects give equal hashes in every process and on
// every machine; errors count by their text, times by the moment they name. A
// list that is nil counts as one that is empty, because they mean the same to
// the driver that carries the effect out.
//
// It is worked out for every step of every machine. So the effects' own fields
// are folded, without a text in between: every field of every type counts by
// itself, also one that is added later.
func HashEffects(seed uint64, effects []Effect) uint64 {
	w := fieldWriter{text: make([]byte, 0, 512)}
	hash := fold(seed, nil)
	for _, e := range effects {
		w.text = w.text[:0]
		w.effect(e)
		hash = fold(hash, w.text)
	}
	return hash
}

// The multipliers of fold are odd numbers without a pattern: the fractional
// parts of the square roots of 2, 3 and 5.
const (
	foldLength = 0x6a09e667f3bcc909
	foldWord   = 0xbb67ae8584caa73b
	foldTail   = 0x3c6ef372fe94f82b
)

// fold mixes a text into a hash, eight bytes at a time: the two halves of each
// product, combined, depend on all bits of both factors.
func fold(hash uint64, text []byte) uint64 {
	hash = mix(hash^uint64(len(text)), foldLength)
	for len(text) >= 8 {
		hash = mix(hash^binary.LittleEndian.Uint64(text), foldWord)
		text = text[8:]
	}
	var tail [8]byte
	copy(tail[:], text)
	return mix(hash^binary.LittleEndian.Uint64(tail[:]), foldTail)
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^foldTail, b)
	return high ^ low
}

// fieldWriter writes values so that two of one type have the same text only if
// they are equal: numbers with a fixed width, everything else behind its length.
type fieldWriter struct {
	text []byte
}

func (w *fieldWriter) number(n uint64) { w.text = binary.LittleEndian.AppendUint64(w.text, n) }

func (w *fieldWriter) str(s string) {
	w.text = append(binary.AppendUvarint(w.text, uint64(len(s))), s...)
}

func (w *fieldWriter) flag(set bool) {
	if set {
		w.text = append(w.text, 1)
		return
	}
	w.text = append(w.text, 0)
}

// effect writes the name of the effect's type and its fields.
func (w *fieldWriter) effect(e Effect) {
	w.str(typeName(e))
	switch e := e.(type) {
	case nil:
	case Persist: // the most frequent one, whose bytes are there already
		w.str(e.Fact.Kind)
		w.str(e.Fact.Key)
		w.flag(e.Fact.Value == nil) // which removes the row
		w.text = append(binary.AppendUvarint(w.text, uint64(len(e.Fact.Value))), e.Fact.Value...)
	case Reply:
		w.number(e.Command)
		w.str(string(e.Job))
		if w.flag(e.Err != nil); e.Err != nil {
			w.str(e.Err.Error())
		}
	default:
		w.value(reflect.ValueOf(e))
	}
}

// value writes what fields of effects and messages can be. Maps have no order,
// functions and channels no value: TestHashKnowsAllFields refuses them.
func (w *fieldWriter) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		w.flag(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.number(uint64(v.Int()))
	case reflect.Uint8:
		w.text = append(w.text, byte(v.Uint()))
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.number(math.Float64bits(v.Float()))
	case reflect.String:
		w.str(v.String())
	case reflect.Struct:
		w.fields(v)
	case reflect.Array, reflect.Slice:
		w.list(v)
	case reflect.Pointer, reflect.Interface:
		w.pointed(v)
	default:
		w.str("a " + v.Kind().String())
	}
}

func (w *fieldWriter) fields(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if at, ok := reflect.TypeAssert[time.Time](v); ok {
			w.number(uint64(at.Unix()))
			w.number(uint64(at.Nanosecond()))
		}
		return
	}
	for i := range v.NumField() { //nolint:modernize // Fields costs more than the rest
		w.value(v.Field(i))
	}
}

func (w *fieldWriter) list(v reflect.Value) {
	w.text = binary.AppendUvarint(w.text, uint64(v.Len()))
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		w.text = append(w.text, v.Bytes()...)
		return
	}
	for i := range v.Len() {
		w.value(v.Index(i))
	}
}

func (w *fieldWriter) pointed(v reflect.Value) {
	if w.flag(!v.IsNil()); v.IsNil() {
		return
	}
	inner := v.Elem()
	if v.Kind() == reflect.Interface {
		w.str(inner.Type().Name())
	}
	w.value(inner)
}
