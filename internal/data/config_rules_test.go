package data

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Each field is refused beyond its bound, by itself, and taken at its bound.
func TestConfigBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, change := range map[string]func(*Config){
		"no directory":      func(c *Config) { c.Dir = "" },
		"nobody is served":  func(c *Config) { c.Allow = nil },
		"quota below 0":     func(c *Config) { c.QuotaBytes = -1 },
		"quota of two less": func(c *Config) { c.QuotaBytes = minQuota - 1 },
		"upload":            func(c *Config) { c.UploadBps = -1 },
		"download":          func(c *Config) { c.DownloadBps = -1 },
		"files":             func(c *Config) { c.Limits.Files = -1 },
		"bytes":             func(c *Config) { c.Limits.Bytes = -1 },
		"depth":             func(c *Config) { c.Limits.Depth = -1 },
		"nodes":             func(c *Config) { c.Limits.Nodes = -1 },
		"connect timeout":   func(c *Config) { c.ConnectTimeout = -1 },
		"stall timeout":     func(c *Config) { c.StallTimeout = -1 },
		"pause of probes":   func(c *Config) { c.ProbeEvery = -1 },
		"fetches":           func(c *Config) { c.Fetches = -1 },
		"all of them":       func(c *Config) { *c = Config{QuotaBytes: 1, Fetches: -1} },
	} {
		c := Config{Dir: dir, Allow: everybody}
		change(&c)
		if err := c.Validate(); !errors.Is(err, errConfig) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
		if _, err := openLocal(c); !errors.Is(err, errConfig) {
			t.Errorf("%s: opened with %v, want it refused", name, err)
		}
	}
	for _, quota := range []int64{0, minQuota} {
		c := Config{Dir: dir, Allow: everybody, QuotaBytes: quota}
		if err := c.Validate(); err != nil {
			t.Errorf("quota of %d: %v", quota, err)
		}
	}
}

// For what is left out Config and Limits say what is taken; what is set stays.
func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	want := Limits{Files: 100_000, Bytes: 1 << 40, Depth: 64, Nodes: 4_194_304}
	if c.Limits != want {
		t.Errorf("limits %+v, want %+v", c.Limits, want)
	}
	if c.ConnectTimeout != 10*time.Second || c.StallTimeout != time.Minute || c.Fetches != 16 {
		t.Errorf("timeouts of %s and %s, %d fetches", c.ConnectTimeout, c.StallTimeout, c.Fetches)
	}
	if c.Log == nil {
		t.Error("there is no log")
	}
	set := Config{
		Limits:         Limits{Files: 1, Bytes: 2, Depth: 3, Nodes: 4},
		ConnectTimeout: 5, StallTimeout: 6, Fetches: 7,
	}.withDefaults()
	if set.Limits != (Limits{Files: 1, Bytes: 2, Depth: 3, Nodes: 4}) ||
		set.ConnectTimeout != 5 || set.StallTimeout != 6 || set.Fetches != 7 {
		t.Errorf("what was set became %+v", set)
	}
}

// The store keeps to its defaults, and its clock is the machine's.
func TestOpenTakesTheDefaults(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	if cap(s.slots) != s.cfg.Fetches || s.cfg.Fetches == 0 || s.cfg.Limits.Files == 0 {
		t.Errorf("%d slots of %+v", cap(s.slots), s.cfg)
	}
	if s.cfg.Allow(peer.ID("x")) != everybody("x") || s.shares.limit != 0 {
		t.Errorf("a store without a quota has shares of %d", s.shares.limit)
	}
	if past := time.Since(s.now()); past < 0 || past > deadline {
		t.Errorf("the store's clock is %s late", past)
	}
}
