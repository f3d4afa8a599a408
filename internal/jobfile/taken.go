package jobfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// taken reads from as keys: the output of another job.
func (p *parser) taken(node *yaml.Node, field string) TakeRef {
	take := TakeRef{Job: Ref{Field: field + ".job"}}
	p.file.lines[field] = node.Line
	p.mapping(node, field, func(key string, value *yaml.Node) bool {
		switch key {
		case "job":
			take.Job = p.jobRef(value, field+".job")
		case "output":
			take.Output = p.sandboxPath(value, field+".output")
		case "each":
			take.Each = p.oneOf(value, field+".each", "false", "true") == 1
		default:
			return false
		}
		return true
	}, []string{"job", "output", "each"})
	p.require(node, field, "job", "output")
	return take
}

// refuseTaken is about inputs of single items.
func (p *parser) refuseTaken(inputs []InputRef, field string) {
	for i, in := range inputs {
		if in.isTaken() {
			name := fmt.Sprintf("%s[%d].from", field, i)
			p.fail(p.file.lines[name], name, "take it in the job's inputs, with each: true",
				"one item alone takes nothing of another job")
		}
	}
}

// checkEach refuses what a job of one task cannot ask for.
func (p *parser) checkEach(index int, in InputRef) {
	if in.Take.Each && !p.file.array() {
		field := fmt.Sprintf("inputs[%d].from.each", index)
		p.fail(p.file.lines[field], field, "remove it, or add count",
			"this job has one task, which cannot take one output of each")
	}
}
