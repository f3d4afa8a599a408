package step

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// messages are all that an effect can carry, empty.
func messages() []protocol.Message {
	return []protocol.Message{
		protocol.Announce{},
		protocol.Reannounce{},
		protocol.NeedRequirements{},
		protocol.Requirements{},
		protocol.Bid{},
		protocol.Refuse{},
		protocol.Vacancy{},
		protocol.Award{},
		protocol.Accepted{},
		protocol.Declined{},
		protocol.Clear{},
		protocol.HoldOffer{},
		protocol.MayStart{},
		protocol.Renew{},
		protocol.Lease{},
		protocol.Progress{},
		protocol.Checkpointed{},
		protocol.Held{},
		protocol.Move{},
		protocol.Movable{},
		protocol.Testimony{},
		protocol.Bookings{},
		protocol.Booked{},
		protocol.Remap{},
		protocol.Remapped{},
		protocol.Favours{},
		protocol.FavoursNoted{},
		protocol.BorderQuery{},
		protocol.BorderAnswer{},
		protocol.BorderOrder{},
		protocol.BorderDeclined{},
		protocol.BorderRenew{},
		protocol.BorderLease{},
		protocol.BorderState{},
		protocol.BorderEnd{},
		protocol.BorderFence{},
		protocol.BorderReceipt{},
		protocol.Exited{},
		protocol.ExitAck{},
		protocol.Cancel{},
		protocol.Fence{},
		protocol.Hello{},
	}
}

// TestHashKnowsAllFields changes every field of every effect and message, at
// every depth, one at a time: each change must change the hash, and no two may
// give the same one.
func TestHashKnowsAllFields(t *testing.T) {
	hashes := map[uint64]string{}
	note := func(what string, e Effect) {
		t.Helper()
		h := HashEffects(0, []Effect{e})
		if other, taken := hashes[h]; taken {
			t.Errorf("%s and %s have the same hash", what, other)
		}
		hashes[h] = what
		if HashEffects(0, []Effect{e}) != h {
			t.Errorf("%s: the hash is another the second time", what)
		}
	}
	listed := map[string]bool{}
	for _, e := range effects() {
		if listed[typeName(e)] {
			continue // two of one type
		}
		listed[typeName(e)] = true
		empty := reflect.New(reflect.TypeOf(e)).Elem()
		asEffect := func() Effect { return empty.Interface().(Effect) }
		note(empty.Type().Name(), asEffect())
		changeEach(t, empty, empty.Type().Name(), func(what string) { note(what, asEffect()) })
	}
	listed = map[string]bool{}
	for _, m := range messages() {
		listed[typeName(m)] = true
	}
	for _, name := range slices.Concat(declared(t, "../protocol/messages.go", "Validate"),
		declared(t, "../protocol/promises.go", "Validate"), []string{"BorderOrder"}) {
		if !listed[name] {
			t.Errorf("message %s is not tested", name)
		}
	}
	for _, m := range messages() {
		empty := reflect.New(reflect.TypeOf(m)).Elem()
		asEffect := func() Effect { return Send{Message: empty.Interface().(protocol.Message)} }
		name := "Send of " + empty.Type().Name()
		note(name, asEffect())
		changeEach(t, empty, name, func(what string) { note(what, asEffect()) })
	}
}

// changeEach sets each leaf of v in turn, calls seen, and sets it back.
func changeEach(t *testing.T, v reflect.Value, name string, seen func(what string)) {
	t.Helper()
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	defer v.Set(old)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Interface:
		changeInterface(t, v, name, seen)
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		seen(name + ", one more")
		changeEach(t, v.Index(0), name+"[0]", seen)
		return
	case reflect.Array:
		changeEach(t, v.Index(v.Len()-1), name+"[last]", seen)
		return
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		seen(name + ", not nil")
		changeEach(t, v.Elem(), name, seen)
		return
	case reflect.Struct:
		changeFields(t, v, name, seen)
		return
	default:
		t.Errorf("%s is a %s, which HashEffects does not write", name, v.Kind())
		return
	}
	seen(name)
}

func changeInterface(t *testing.T, v reflect.Value, name string, seen func(what string)) {
	t.Helper()
	switch v.Type() {
	case reflect.TypeFor[protocol.Message](): // the messages' fields have a turn of their own
		v.Set(reflect.ValueOf(protocol.Cancel{Job: "of another kind"}))
	case reflect.TypeFor[Input]():
		v.Set(reflect.ValueOf(CancelJob{Command: 5}))
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(ErrNotEnded))
		seen(name + ", one error")
		v.Set(reflect.ValueOf(ErrTooManyJob))
	default:
		t.Errorf("%s is a %s, which HashEffects does not write", name, v.Type())
	}
	seen(name)
}

func changeFields(t *testing.T, v reflect.Value, name string, seen func(what string)) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(5, 0)))
		seen(name)
		v.Set(reflect.ValueOf(time.Unix(5, 1)))
		seen(name + " a nanosecond later")
		return
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			t.Errorf("%s.%s cannot be seen from outside", name, v.Type().Field(i).Name)
			continue
		}
		changeEach(t, v.Field(i), name+"."+v.Type().Field(i).Name, seen)
	}
}

func TestHashKeepsNeighboursApart(t *testing.T) {
	same := func(a, b []Effect) bool { return HashEffects(0, a) == HashEffects(0, b) }
	stop := func(name, id string) Effect { return StopTimer{Key: TimerKey{Name: name, ID: id}} }
	if same([]Effect{stop("ab", "c")}, []Effect{stop("a", "bc")}) {
		t.Error("where a text ends does not count")
	}
	if same([]Effect{stop("a", "")}, []Effect{stop("a", ""), nil}) {
		t.Error("an effect that is nil does not count")
	}
	discard := func(outputs ...grid.CID) Effect { return Discard{Outputs: outputs} }
	if same([]Effect{discard("ab")}, []Effect{discard("a", "b")}) {
		t.Error("the number of elements does not count")
	}
	empty := []Effect{Persist{Fact: Fact{Kind: "k", Value: []byte{}}}}
	if same([]Effect{Persist{Fact: Fact{Kind: "k"}}}, empty) {
		t.Error("removing a fact and writing an empty one have the same hash")
	}
	if !same([]Effect{Discard{}}, []Effect{Discard{Outputs: []grid.CID{}}}) {
		t.Error("a list that is nil and an empty one have different hashes")
	}
	// In two halves or in one: the seed is the hash so far.
	all := effects()
	half := HashEffects(HashEffects(0, all[:3]), all[3:])
	if again := HashEffects(HashEffects(0, all[:3]), all[3:]); half != again {
		t.Errorf("hash = %#x, then %#x", half, again)
	}
}

func BenchmarkHashEffects(b *testing.B) {
	var array []Effect
	for i := range 1000 {
		at := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: uint32(i)}, Token: 3}
		array = append(array,
			Persist{
				Fact: NewFact("task/1", at.Task.String(), map[string]any{
					"phase": "awarded", "token": 3, "site": "12D3KooWx", "distance": 0.25,
				}),
			},
			Report{Event: "awarded", Level: LevelInfo, Attempt: at, Site: "12D3KooWx", Value: 0.25})
	}
	b.ReportAllocs()
	for b.Loop() {
		HashEffects(0, array)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(array)), "ns/effect")
}

// What has no order and no value does not hide what kind of thing it is.
func TestHashNamesWhatItCannotWrite(t *testing.T) {
	texts := map[string]bool{}
	for _, v := range []any{map[string]int{}, func() {}, make(chan int), complex(1, 1)} {
		var w fieldWriter
		w.value(reflect.ValueOf(v))
		texts[string(w.text)] = true
	}
	if len(texts) != 4 || texts[""] {
		t.Errorf("%v", texts)
	}
}
