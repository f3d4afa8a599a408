// Command quickstart may use anything but commands.
package main

import (
	_ "go.etcd.io/bbolt" // want "confined to internal/store"

	_ "github.com/mrsmesh/mrsmesh/cmd/submit" // want "examples/quickstart may not import cmd/submit"
	_ "github.com/mrsmesh/mrsmesh/internal/agent"
	_ "github.com/mrsmesh/mrsmesh/pkg/sim"
)
