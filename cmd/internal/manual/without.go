//go:build !manual

package manual

import "github.com/spf13/cobra"

// Commands are what this package adds to a program: without the tag none.
func Commands() []*cobra.Command { return nil }
