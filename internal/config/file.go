package config

import (
	"fmt"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// File is the configuration as a YAML file with every setting, its meaning and
// its value, which LoadAgent reads back.
func (c Agent) File() []byte {
	var b strings.Builder
	b.WriteString("# The configuration of one site. Flags and variables MRS_* are stronger than this file.\n")
	group := ""
	for _, s := range agentSettings() {
		head, name, nested := strings.Cut(s.name, ".")
		indent := ""
		if nested {
			indent = "  "
			if head != group {
				fmt.Fprintf(&b, "%s:\n", head)
			}
			group = head
		} else {
			name, group = head, ""
		}
		fmt.Fprintf(&b, "%s%s: %q # %s\n", indent, name, s.get(&c), s.help)
	}
	return []byte(b.String())
}

// Members lists who may take part: the listed peers, and the sites of the
// bootstrap addresses.
func (c Agent) Members() []grid.SiteID {
	members := append([]grid.SiteID{}, c.Peers...)
	for _, addr := range c.Bootstrap {
		if _, id, found := strings.Cut(addr, "/p2p/"); found {
			members = append(members, grid.SiteID(id))
		}
	}
	return members
}
