//go:build !unix

package config

import "io/fs"

// keepOwner does nothing: a new file gets its owner from the directory.
func keepOwner(string, fs.FileInfo) error { return nil }
