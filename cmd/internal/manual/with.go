//go:build manual

package manual

import (
	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/cmd/internal/manual/pages"
)

// Commands are what this package adds to a program: the command that writes its pages.
func Commands() []*cobra.Command { return []*cobra.Command{pages.Command()} }
