// Package order lets the random order of maps leak out.
package order

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

type table map[string]int

type alias = map[string]int

type either interface{ map[int]int | table2 }

type table2 map[int]int

func leaks(m map[string]int, t table, a alias) (names []string) {
	for name := range m { // want "order of a map"
		names = append(names, name)
	}
	for range t { // want "order of a map"
	}
	for k, v := range a { // want "order of a map"
		_, _ = k, v
	}
	for name := range maps.Keys(m) { // want "maps.Keys walks a map"
		names = append(names, name)
	}
	for _, v := range maps.All(m) { // want "maps.All walks a map"
		_ = v
	}
	names = slices.Collect(maps.Keys(m))                 // want "maps.Keys walks a map"
	names = slices.AppendSeq(names, maps.Keys[table](t)) // want "maps.Keys walks a map"
	_ = slices.Collect(maps.Values(m))                   // want "maps.Values walks a map"
	_ = reflect.ValueOf(m).MapKeys()                     // want "order of a map"
	return names
}

func generic[M ~map[K]V, K comparable, V any](m M) {
	for range m { // want "order of a map"
	}
}

func union[E either](e E) {
	for range e { // want "order of a map"
	}
}

func fine(m map[string]int) (sum int) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		sum += m[name]
	}
	for _, v := range slices.SortedFunc(maps.Values(m), cmp.Compare[int]) {
		sum += v
	}
	for i, r := range "a list" {
		sum += i + int(r)
	}
	clear(m)
	return sum
}

func slicesAreFine[S ~[]E, E any](s S) (n int) {
	for range s {
		n++
	}
	return n
}
