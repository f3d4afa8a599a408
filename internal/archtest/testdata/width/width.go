// Package width has one line that is too wide.
package width

const narrow = "a link may be as long as it is: https://example.org/0123456789012345678901234567890123456789"

const wide = "0123456789012345678901234567890123456789012345678901234567890123456789" // want "columns"
