package agent

import (
	"encoding/json"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// NewMachine makes a machine as the header of its journal says, for a replay.
func NewMachine(h store.Header) (step.Machine, error) {
	switch h.Machine {
	case siteName:
		var c site.Config
		if err := json.Unmarshal(h.Config, &c); err != nil {
			return nil, fmt.Errorf("configuration of the site machine: %w", err)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("configuration of the site machine: %w", err)
		}
		return site.New(c), nil
	case brokerName:
		var c broker.Config
		if err := json.Unmarshal(h.Config, &c); err != nil {
			return nil, fmt.Errorf("configuration of the submitter machine: %w", err)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("configuration of the submitter machine: %w", err)
		}
		return broker.New(c), nil
	default:
		return nil, fmt.Errorf("there is no machine %q", h.Machine)
	}
}
