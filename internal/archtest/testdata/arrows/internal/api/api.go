// Package api keeps the router, and does not know the agent.
package api

import (
	_ "github.com/go-chi/chi/v5"
	_ "github.com/spf13/cobra" // want "confined to cmd"

	_ "github.com/mrsmesh/mrsmesh/internal/agent" // want "internal/api may not import internal/agent"
)
