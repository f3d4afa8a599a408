package lrmtest

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed testdata/guest/*.go
var guestSource embed.FS

const guestDir = "testdata/guest"

// BuildGuest compiles the suite's program into dir for a system and architecture
// as Go names them, such as "wasip1" and "wasm". It needs the go command.
func BuildGuest(dir, goos, goarch string) (string, error) {
	source := filepath.Join(dir, "guest-source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(
		filepath.Join(source, "go.mod"), []byte("module guest\n\ngo 1.26\n"), 0o600,
	); err != nil {
		return "", err
	}
	files, err := guestSource.ReadDir(guestDir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := guestSource.ReadFile(guestDir + "/" + file.Name())
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(source, file.Name()), text, 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, strings.Join([]string{"guest", goos, goarch}, "-"))
	//nolint:noctx // bounded by the test's own time
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".")
	build.Dir = source
	build.Env = append(
		os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
	)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build guest: %w: %s", err, out)
	}
	return program, nil
}
