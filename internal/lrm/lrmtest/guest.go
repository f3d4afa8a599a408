package lrmtest

import (
	_ "embed" // the guest's source
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed testdata/guest/main.go
var guestSource []byte

// BuildGuest compiles the suite's program into dir for a system and architecture
// as Go names them, such as "wasip1" and "wasm". It needs the go command.
func BuildGuest(dir, goos, goarch string) (string, error) {
	source := filepath.Join(dir, "guest-source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	files := map[string][]byte{"main.go": guestSource, "go.mod": []byte("module guest\n\ngo 1.26\n")}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(source, name), text, 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, strings.Join([]string{"guest", goos, goarch}, "-"))
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".") //nolint:noctx // bounded by the test's own time
	build.Dir = source
	build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build guest: %w: %s", err, out)
	}
	return program, nil
}
