package protocol

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Each limit of what a controller hears and says has the last value that is taken and the first
// that is not.
func TestEachLimitOfTheControllersMessagesIsExact(t *testing.T) {
	bookings := func(c func(*Bookings)) Message { return changed(t, "bookings", c) }
	booking := func(c func(*Booking)) Message {
		return bookings(func(m *Bookings) {
			m.Held = append([]Booking(nil), m.Held...)
			c(&m.Held[0])
		})
	}
	remap := func(c func(*Remap)) Message { return changed(t, "remap", c) }
	for name, c := range map[string]struct{ last, first Message }{
		"term": {
			bookings(func(m *Bookings) { m.Term = 1 }), bookings(func(m *Bookings) { m.Term = 0 }),
		},
		"number": {
			bookings(func(m *Bookings) { m.Number = 1 }),
			bookings(func(m *Bookings) { m.Number = 0 }),
		},
		"works": {
			bookings(func(m *Bookings) { m.Works = m.Capacity }),
			bookings(func(m *Bookings) { m.Works.MilliCPUs = m.Capacity.MilliCPUs + 1 }),
		},
		"bookings": {
			bookings(func(m *Bookings) { m.Held = manyBookings(MaxBookings - 1) }),
			bookings(func(m *Bookings) { m.Held = manyBookings(MaxBookings) }),
		},
		"price": {
			bookings(func(m *Bookings) { m.Priced, m.Price = true, MaxPrice }),
			bookings(func(m *Bookings) { m.Priced, m.Price = true, 2*MaxPrice }),
		},
		"no price": {
			bookings(func(m *Bookings) { m.Priced, m.Price = true, 1 }),
			bookings(func(m *Bookings) { m.Price = 1 }),
		},
		"no number": {
			bookings(func(m *Bookings) { m.Priced = true }),
			bookings(func(m *Bookings) { m.Priced, m.Price = true, math.NaN() }),
		},
		"order": {
			bookings(func(m *Bookings) { m.Held = manyBookings(2) }),
			bookings(func(m *Bookings) {
				m.Held = manyBookings(2)
				m.Held[1].Attempt = m.Held[0].Attempt
			}),
		},
		"gone": {
			bookings(func(m *Bookings) { m.Gone = nil }),
			bookings(func(m *Bookings) { m.Gone = []grid.AttemptID{{}} }),
		},
		"begun": {
			booking(func(b *Booking) { b.StartsIn = 0 }),
			booking(func(b *Booking) { b.StartsIn = -1 }),
		},
		"start": {
			booking(func(b *Booking) { b.StartsIn = grid.MaxRuntime }),
			booking(func(b *Booking) { b.StartsIn = grid.MaxRuntime + 1 }),
		},
		"short": {
			booking(func(b *Booking) { b.Lasts = 1 }),
			booking(func(b *Booking) { b.Lasts = 0 }),
		},
		"long": {
			booking(func(b *Booking) { b.Lasts = grid.MaxRuntime }),
			booking(func(b *Booking) { b.Lasts = grid.MaxRuntime + 1 }),
		},
		"age": {
			booking(func(b *Booking) { b.BookedAgo = maxAgo }),
			booking(func(b *Booking) { b.BookedAgo = maxAgo + 1 }),
		},
		"data": {
			booking(func(b *Booking) { b.DataBytes = 0 }),
			booking(func(b *Booking) { b.DataBytes = -1 }),
		},
		"submitter": {
			booking(func(b *Booking) { b.Submitter = "a" }),
			booking(func(b *Booking) { b.Submitter = "" }),
		},
		"interval": {
			remap(func(m *Remap) { m.Before = 1 }),
			remap(func(m *Remap) { m.Before = 0 }),
		},
		"far": {
			remap(func(m *Remap) { m.Before = grid.MaxRuntime }),
			remap(func(m *Remap) { m.Before = grid.MaxRuntime + 1 }),
		},
		"site": {
			remap(func(m *Remap) { m.Site = "a" }), remap(func(m *Remap) { m.Site = "" }),
		},
		"moves": {
			remap(func(m *Remap) { m.Moves = manyMoves(MaxMoves) }),
			remap(func(m *Remap) { m.Moves = manyMoves(MaxMoves + 1) }),
		},
		"moved": {
			remap(func(m *Remap) { m.Moves = manyMoves(1) }),
			remap(func(m *Remap) { m.Moves = []RemapMove{{To: "a"}} }),
		},
		"elsewhere": {
			Remapped{Term: 1, Number: 1, Elsewhere: make([]grid.TaskID, 0)},
			Remapped{Term: 1, Number: 1, Elsewhere: make([]grid.TaskID, 1)},
		},
		"accounts": {
			Favours{Term: 1, Accounts: manyAccounts(MaxAccounts)},
			Favours{Term: 1, Accounts: manyAccounts(MaxAccounts + 1)},
		},
		"others": {
			FavoursNoted{Term: 1, Others: manyAccounts(2)},
			FavoursNoted{Term: 1, Others: []Account{{Domain: "b"}, {Domain: "b"}}},
		},
		"given": {
			Favours{Term: 1, Accounts: []Account{{Domain: "a", GivenCoreMS: MaxFavour}}},
			Favours{Term: 1, Accounts: []Account{{Domain: "a", GivenCoreMS: MaxFavour + 1}}},
		},
		"taken": {
			FavoursNoted{Term: 1, Own: []Account{{Domain: "a"}}},
			FavoursNoted{Term: 1, Own: []Account{{Domain: "a", TakenCoreMS: -1}}},
		},
		"favours": {Favours{Term: 1}, Favours{}},
		"noted":   {FavoursNoted{Term: 1}, FavoursNoted{}},
		"answer":  {Booked{Term: 1, Number: 1}, Booked{Term: 1}},
	} {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last value is refused: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, grid.ErrInvalid) {
			t.Errorf("%s: the first value beyond: %v, want %v", name, err, grid.ErrInvalid)
		}
	}
}

func numbered(i int) grid.TaskID { return grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: uint32(i)} }

// manyBookings are as long as bookings can be.
func manyBookings(n int) []Booking {
	var list []Booking
	for i := range n {
		list = append(list, Booking{
			Attempt:   grid.AttemptID{Task: numbered(i), Token: math.MaxUint64},
			Submitter: grid.SiteID(strings.Repeat("s", 100)), StartsIn: grid.MaxRuntime,
			Lasts: time.Second, BookedAgo: maxAgo, Scales: true, DataBytes: math.MaxInt64,
			Need: grid.Resources{
				MilliCPUs: 1 << 30, MemoryBytes: 1 << 50, DiskBytes: 1 << 50,
				MFLOPS: 1 << 30, NetBps: 1 << 50,
			},
		})
	}
	return list
}

func manyMoves(n int) []RemapMove {
	var list []RemapMove
	for i := range n {
		list = append(list, RemapMove{
			Task: numbered(i), To: grid.SiteID(strings.Repeat("s", 100)),
		})
	}
	return list
}

// manyAccounts are as long as accounts can be.
func manyAccounts(n int) []Account {
	var list []Account
	for i := range n {
		list = append(list, Account{
			Domain:      grid.SiteID(fmt.Sprintf("%0100d", i)),
			GivenCoreMS: MaxFavour, TakenCoreMS: MaxFavour,
		})
	}
	return list
}

// The largest message of each kind can be sent.
func TestTheLargestOfTheControllersMessagesFit(t *testing.T) {
	bookings := Bookings{Term: 1, Number: 1, Held: manyBookings(MaxBookings)}
	remapped := Remapped{Term: 1, Number: 1}
	for i := range MaxMoves {
		remapped.Elsewhere = append(remapped.Elsewhere, numbered(i))
	}
	for _, m := range []Message{
		bookings, remapped,
		FavoursNoted{Term: 1, Own: manyAccounts(MaxAccounts), Others: manyAccounts(MaxAccounts)},
		Remap{Term: 1, Number: 1, Site: "a", Before: time.Hour, Moves: manyMoves(MaxMoves)},
	} {
		if raw, err := Encode(m); err != nil || len(raw) > MaxMessageBytes {
			t.Errorf("%T: %d bytes, %v", m, len(raw), err)
		}
	}
}

// What submitters are told by a controller goes to their machines, on behalf of owners, too; what a
// controller is told goes to no other machine.
func TestWhoseTheControllersMessagesAre(t *testing.T) {
	for _, c := range []struct {
		name                      string
		broker, controller, named bool
	}{
		{"bookings", false, true, false},
		{"booked", false, false, false},
		{"remap", true, false, true},
		{"remapped", false, true, true},
	} {
		m := goldenMessages()[c.name]
		same := ForBroker(m) == c.broker && ForController(m) == c.controller
		if !same || betweenMachines(m) != c.named {
			t.Errorf("%s: for the broker %v, for the controller %v, on behalf %v", c.name,
				ForBroker(m), ForController(m), betweenMachines(m))
		}
	}
}
