//go:build !linux

package store

import "os"

// identityOf tells a file from every copy of it; nil: the system does not tell.
func identityOf(*os.File) []byte { return nil }
