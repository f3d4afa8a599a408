//go:build !unix

package scripttest

import "os"

func signalsByName() map[string]os.Signal { return nil }
