//go:build !linux

package main

import (
	"os"
	"strconv"
)

func systemVerbs() map[string]func(args []string) error {
	return make(map[string]func(args []string) error)
}

func strangeFiles() bool { return false }

// burrow makes directories in each other as far as names reach, again and again.
func burrow(name string) error {
	for i := 0; ; i++ {
		deep := name + strconv.Itoa(i)
		for range 400 {
			if err := os.MkdirAll(deep, 0o755); err != nil {
				return err
			}
			deep += "/d"
		}
	}
}
