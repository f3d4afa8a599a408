// Package grid is wrong on purpose: each marked name is used by no other package.
package grid

// Site is named by pkg/index.
type Site struct {
	At    Place
	inner Hidden
}

// Place is met in a field of Site.
type Place struct{}

// Hidden is met in no field that others see.
type Hidden struct{} // want "grid.Hidden"

// Name is called by pkg/index.
func (s *Site) Name() Text { return "" }

// Text is met in a result.
type Text string

// String satisfies fmt.Stringer, which internal/store imports.
func (t Text) String() string { return string(t) }

// Error satisfies error.
func (t Text) Error() string { return string(t) }

// Shout satisfies nothing.
func (t Text) Shout() string { return string(t) } // want "grid.Text.Shout"

// Measure satisfies index.Measurer.
func (s *Site) Measure() int { return Bound }

// Bound is used here only.
const Bound = 1 // want "grid.Bound"

// Limit is used by a program.
const Limit = 2

// Twin is used by a test of another package.
func Twin() int { return 1 } // want "grid.Twin (tests of other packages use it)"

// Pair is used with its parameter's type.
func Pair[T any](list List[T]) int { return len(list) }

// List is met in a parameter.
type List[T any] []T
