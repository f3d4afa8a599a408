package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// usualColumns is the width assumed of a terminal that does not tell its own.
const usualColumns = 80

// lookAt finds out whether standard error is a terminal that can be redrawn, and how wide.
func (a *app) lookAt(stderr io.Writer) {
	file, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return
	}
	a.terminal = true
	a.width = func() int { // each time: people change the size of windows
		columns, _, err := term.GetSize(int(file.Fd()))
		if err != nil {
			return 0
		}
		return columns
	}
}

// columns is the terminal's present width.
func (a *app) columns() int {
	if a.width != nil {
		if columns := a.width(); columns > 0 {
			return columns
		}
	}
	return usualColumns
}
