package jobfile

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// dimensions reads map.dimensions: a list of names, or names with weights.
func (p *parser) dimensions(node *yaml.Node) {
	const field = "map.dimensions"
	remedy := "write [" + strings.Join(grid.DimensionNames(), ", ") + "] or {wait: 0.5}"
	var axes []grid.Axis
	add := func(line int, field, name string, weight float64) {
		d, err := grid.ParseDimension(name)
		if err != nil {
			p.fail(line, field, remedy, "there is no dimension %q", name)
			return
		}
		axes = append(axes, grid.Axis{Dimension: d, Weight: weight})
	}
	switch node.Kind {
	case yaml.MappingNode:
		p.mapping(node, field, func(name string, value *yaml.Node) bool {
			if slices.Contains(grid.DimensionNames(), name) {
				add(value.Line, field, name, p.number(value, field+"."+name, "weight"))
				return true
			}
			return false
		}, grid.DimensionNames())
	default:
		for _, name := range p.texts(node, field) {
			add(node.Line, field, name, 1)
		}
	}
	slices.SortFunc(axes, func(a, b grid.Axis) int { return cmp.Compare(a.Dimension, b.Dimension) })
	if err := grid.ValidateAxes(axes); err != nil {
		p.fail(node.Line, field, remedy, "%v", err)
		return
	}
	p.file.Spec.Axes = axes
}
