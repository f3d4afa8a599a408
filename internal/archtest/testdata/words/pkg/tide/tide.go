// Package tide speaks in phrases that were given up.
package tide

const (
	rare  = "once in a Blue Moon"        // want "say seldom"
	stuff = "made of green cheese"       // want "say lunar regolith"
	fine  = "blue lagoon, green cheeses" // neither is one
)

// want "say seldom": a phrase counts where it begins, once in a blue
// moon. A comment may speak of green cheese, because nobody else reads it.
const (
	wrapped = `two lines`
	plural  = "blue  moons" // want "say seldom"
)
