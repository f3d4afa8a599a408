// Package argument validates the arguments of mathematics: numbers that must lie in a
// range, infinity included. The rooms that compute in float64 (pkg/index, pkg/avail, pkg/metrics
// and those below pkg/papers) share its errors, so that a caller tells nonsense from "no answer"
// in the same way everywhere. It knows nothing of the nouns of pkg/grid, which validate
// themselves.
package argument

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid is the cause of an error about an argument that is no number,
	// negative, or outside its range.
	ErrInvalid = errors.New("invalid argument")

	// ErrUndefined is the cause of an error about arguments that are valid and have no
	// answer, such as the mean of nothing.
	ErrUndefined = errors.New("undefined")
)

// Amount reports a value that is no number or negative. Infinity is an amount.
func Amount(name string, v float64) error {
	if !(v >= 0) {
		return fmt.Errorf("%w: %s: want a number of at least 0, have %v", ErrInvalid, name, v)
	}
	return nil
}

// Positive reports a value that is no number, 0 or negative. Infinity is positive.
func Positive(name string, v float64) error {
	if !(v > 0) {
		return fmt.Errorf("%w: %s: want more than 0, have %v", ErrInvalid, name, v)
	}
	return nil
}

// Probability reports a value that is no number from 0 to 1.
func Probability(name string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return fmt.Errorf("%w: %s: want 0 to 1, have %v", ErrInvalid, name, v)
	}
	return nil
}

// AtLeast reports a number of things below the lowest one allowed.
func AtLeast(name string, least, n int64) error {
	if n < least {
		return fmt.Errorf("%w: %s: want at least %d, have %d", ErrInvalid, name, least, n)
	}
	return nil
}

// Product is the product of amounts, in which nothing of anything is nothing, also of infinity:
// it is never NaN. Of no factors it is 1.
func Product(factors ...float64) float64 {
	product := 1.0
	for _, f := range factors {
		if f == 0 {
			return 0
		}
		product *= f
	}
	return product
}
