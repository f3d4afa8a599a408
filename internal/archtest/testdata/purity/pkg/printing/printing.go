// Package printing talks to the terminal.
package printing

import (
	"fmt"
	"io"
)

func prints(n int) {
	fmt.Println(n)    // want "prints nothing"
	fmt.Printf("", n) // want "prints nothing"
	println(n)        // want "prints nothing"
	fmt.Scanln(&n)    // want "prints nothing"
}

func fine(w io.Writer, n int) string {
	fmt.Fprintln(w, n)
	return fmt.Sprintf("%d", n)
}
