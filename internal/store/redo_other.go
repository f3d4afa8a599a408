//go:build !linux

package store

import "os"

func syncData(file *os.File) error { return file.Sync() }
