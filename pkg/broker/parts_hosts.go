package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The environment of a part: how many there are, which it is, and where they are.
const (
	envParts = "MRS_PARTS"
	envPart  = "MRS_PART"
	envHosts = "MRS_HOSTS"
)

// partEnv adds the variables of a part, and replaces those that are there.
func partEnv(env []grid.EnvVar, parts int, hosts string) []grid.EnvVar {
	own := []grid.EnvVar{
		{Name: envHosts, Value: hosts},
		{Name: envPart, Value: "{{index}}"},
		{Name: envParts, Value: strconv.Itoa(parts)},
	}
	all := slices.DeleteFunc(slices.Clone(env), func(e grid.EnvVar) bool {
		return slices.ContainsFunc(own, func(o grid.EnvVar) bool { return o.Name == e.Name })
	})
	all = append(all, own...)
	slices.SortFunc(all, func(a, b grid.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// envBytes is an upper bound of what these variables add to an award.
func envBytes(hosts string) int { return len(hosts) + 128 }

// hostList names the sites of the parts in order, each with how many it has:
// "NAME:COUNT,NAME:COUNT". A site whose name is taken, or no name, goes by its ID.
func hostList(d desk, shares []share) string {
	used := make(map[string]bool)
	list := make([]string, 0, len(shares))
	for _, s := range shares {
		name := d.name(s.site)
		if name == "" || used[name] || strings.ContainsAny(name, ":,{} \t\r\n") {
			name = string(s.site)
		}
		used[name] = true
		list = append(list, fmt.Sprintf("%s:%d", name, s.parts))
	}
	return strings.Join(list, ",")
}
