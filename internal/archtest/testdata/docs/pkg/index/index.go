//go:build linux

package index // want "pkg/index has no package doc"

// A lone comment is no package doc.
