package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// verdict ends the program: a way out that was found is a leak.
func verdict(leaks []string) error {
	if len(leaks) > 0 {
		fmt.Println("leaked", strings.Join(leaks, "; "))
		os.Exit(3)
	}
	fmt.Println("contained")
	return nil
}

// reach tries to read, list or change files of the host.
func reach(args []string) error {
	var leaks []string
	for _, name := range args {
		if _, err := os.ReadFile(name); err == nil {
			leaks = append(leaks, "read "+name)
		}
		if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			f.Close()
			leaks = append(leaks, "open "+name)
		}
		if _, err := os.ReadDir(filepath.Dir(name)); err == nil && !strings.HasPrefix(name, "/proc/self/") {
			leaks = append(leaks, "list "+filepath.Dir(name))
		}
	}
	return verdict(leaks)
}

// seek looks for a process of the host whose command line holds the word, other
// than by an argument of its own.
func seek(args []string) error {
	var leaks []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), args[0]) && !strings.Contains(string(text), "seek") {
			leaks = append(leaks, name)
		}
	}
	return verdict(leaks)
}

// start tries to start programs.
func start(args []string) error {
	var leaks []string
	for _, name := range args {
		if p, err := os.StartProcess(name, []string{name}, &os.ProcAttr{}); err == nil {
			p.Kill()
			leaks = append(leaks, "start "+name)
		}
	}
	return verdict(leaks)
}

// outputs leaves strange things where outputs are expected.
func outputs(args []string) error {
	secret, dir := args[0], args[1]
	for name, text := range map[string]string{"/out/plain": "x", "/out/links/file": "x", "/out/pipes/file": "x", "/out/line\nbreak/a\nb": "x"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	// What follows is refused by some sandboxes, and of no use in the others.
	os.Symlink(secret, "/out/link")
	if os.Symlink(secret, "/out/links/link") != nil {
		os.RemoveAll("/out/links")
	}
	os.Link(secret, "/out/hard")
	os.Link("/in/file.txt", "/out/hard")
	os.RemoveAll("/swapped")
	os.Symlink(dir, "/swapped")
	if !strangeFiles() {
		os.RemoveAll("/out/pipes")
	}
	return nil
}

// fillOddly writes without end where that is hard to see.
func fillOddly(way, name string) error {
	switch way {
	case "hidden":
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
		os.Chmod(name, 0o300)
		os.Chmod("/out", 0o300)
		block := make([]byte, 64<<10)
		for i := 0; ; i++ {
			os.Chmod(name, 0o300)
			if err := os.WriteFile(filepath.Join(name, strconv.Itoa(i)), block, 0o644); err != nil {
				return err
			}
		}
	case "empty":
		for i := 0; ; i++ {
			if err := os.WriteFile(name+strconv.Itoa(i), nil, 0o644); err != nil {
				return err
			}
		}
	default:
		return burrow(name)
	}
}
