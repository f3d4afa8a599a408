//go:build !linux

package wasm

func enclose(job) error { return nil }

// wallNotes tells the owner what of the second wall is missing.
func wallNotes() []string {
	return []string{
		"no second wall on this system: WebAssembly alone keeps programs in; Linux has Landlock",
	}
}
