package wasm

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPruneCacheKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "middle", "new"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		made := time.Unix(int64(1000*(i+1)), 0)
		if err := os.Chtimes(path, made, made); err != nil {
			t.Fatal(err)
		}
	}
	if err := pruneCache(dir, 250); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "middle" || entries[1].Name() != "new" {
		t.Errorf("left %v, %v; want middle and new", entries, err)
	}
	if err := pruneCache(filepath.Join(dir, "nowhere"), 0); err == nil {
		t.Error("no error for a cache that is not there")
	}
}
