// Package grid says it again.
package grid // want "second package doc"

const Limit = 1 // the comment behind it will do

// Sizes of things.
const (
	Small = iota
	Large
)

const (
	// Width is how wide.
	Width  = 3
	Height = 1 + // want "exported Height"
		3
	depth = 5
)

var ErrBare, errOwn = error(nil), // want "ErrBare"
	error(nil)

// Site is documented.
type Site struct{ Name string }

type Bare struct{} // want "exported Bare"

// The group's comment is not enough for types.
type (
	Inner struct{} // want "exported Inner"
	// Other is documented.
	Other struct{}
)

func Free() {} // want "exported Free"

// Documented is documented.
func Documented() {}

func (Site) String() string { return "" } // want "exported String"

func (s *Site) Grow() {} // want "exported Grow"

// Shrink is documented.
func (s *Site) Shrink() {}

type list[T any] struct{}

func (list[T]) Len() int { return 0 }

// List is documented.
type List[T any] struct{}

func (*List[T]) Len() int { return 0 } // want "exported Len"

//go:noinline
func Directive() {} // want "exported Directive"
