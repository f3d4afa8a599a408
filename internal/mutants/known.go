package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// readKnown reads the list of equivalent mutants: each as String gives it, a colon and the
// reason. Empty lines and those that begin with # are for people.
func readKnown(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of equivalent mutants: %w", err)
	}
	defer f.Close()
	known := make(map[string]string)
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		end := strings.LastIndex(line, "`: ")
		if end < 0 {
			return nil, fmt.Errorf("%s:%d: want FILE FUNC: `LINE` -> `LINE`: REASON", path, number)
		}
		known[line[:end+1]] = line[end+3:]
	}
	return known, lines.Err()
}
