package main

import "github.com/spf13/pflag"

type figureFlags struct{ svg, png string }

func (f *figureFlags) addTo(*pflag.FlagSet) {}
