// Command submit talks to the agent over HTTP only.
package main

import (
	_ "github.com/spf13/cobra"

	_ "github.com/mrsmesh/mrsmesh/examples/quickstart" // want "cmd/submit may not import examples/quickstart"
	_ "github.com/mrsmesh/mrsmesh/internal/api/client"
	_ "github.com/mrsmesh/mrsmesh/internal/p2p" // want "cmd/submit may not import internal/p2p"
)
