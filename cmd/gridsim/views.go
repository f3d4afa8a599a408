package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/play"
)

// views are the ways in which a record of what happened is shown.
type views struct {
	svg, html string // files; empty: none
	all       bool   // decisions and messages
}

// addTo adds the flags that choose them.
func (v *views) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&v.html, "html", "", "write a page to step through to this file")
	flags.StringVar(&v.svg, "svg", "", "draw the line of time of each site to this file")
	flags.BoolVar(&v.all, "all", false, "print all decisions and messages, however many there are")
}

// write writes the pictures that were asked for.
func (v *views) write(record *play.Record, title string) error {
	page := func(out io.Writer) error { return record.WritePage(out, title) }
	return errors.Join(writeTo(v.svg, record.WriteSVG), writeTo(v.html, page))
}

// writeTo writes a file, if it has a name.
func writeTo(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
