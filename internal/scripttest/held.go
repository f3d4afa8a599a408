package scripttest

import (
	"context"
	"os"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
)

// Commands is the setting with which agents of tests run commands on this machine: as by default
// where the kernel can hold all that they take, else as an owner must allow it.
func Commands() string { return commands() }

var commands = sync.OnceValue(func() string { //nolint:gochecknoglobals // tried once
	dir, err := os.MkdirTemp("", "mrs-commands-")
	if err != nil {
		return config.CommandsUnbounded
	}
	defer os.RemoveAll(dir) // made above, and empty but for what a trial left
	settings, err := native.DefaultConfig(dir)
	if err != nil {
		return config.CommandsUnbounded
	}
	adapter, err := native.New(context.Background(), settings)
	if err != nil || len(adapter.Probe(context.Background()).Kinds) == 0 {
		return config.CommandsUnbounded
	}
	return config.CommandsBounded
})
