package main

import (
	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/figures"
)

// figureFlags are the directories that figures go to.
type figureFlags struct{ figures.Album }

func (f *figureFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.SVG, "svg", "", "draw figures into this directory, which is made if needed")
	flags.StringVar(&f.PNG, "png", "", "the same as pixels")
}
