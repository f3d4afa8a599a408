package sbatch

import (
	"fmt"
	"strings"
)

// Option is the option that a field of the job file comes from, such as --send for
// "inputs[1].from". A field that no option has set is not known.
func (b Batch) Option(field string) (g Given, known bool) {
	if strings.HasPrefix(field, "inputs[") {
		return b.inputOption(field)
	}
	for _, one := range []struct{ key, option string }{
		{"resources.memory", "mem"},
		{"resources.memory", "mem-per-cpu"},
		{"resources.cpus", "cpus-per-task"},
		{"runtime", "time"},
		{"limit", "time"},
		{"start", "begin"},
		{"deadline", "deadline"},
		{"after", "dependency"},
		{"items", "array"},
		{"name", "job-name"},
		{"env", "export"},
		{"outputs", "return"},
	} {
		rest, isKey := strings.CutPrefix(field, one.key)
		if !isKey || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if one.option == "return" && len(b.Returns) > 0 {
			return Given{Name: one.option}, true
		}
		if g, known = b.Given[one.option]; known {
			return g, true
		}
	}
	return Given{}, false
}

// inputOption tells inputs apart, which are the script, what is sent along, and what is read.
func (b Batch) inputOption(field string) (g Given, known bool) {
	var number int
	if _, err := fmt.Sscanf(field, "inputs[%d]", &number); err != nil || number == 0 {
		return g, false
	}
	if number <= len(b.Inputs) {
		return Given{Name: "send", Value: b.Inputs[number-1]}, true
	}
	g, known = b.Given["input"]
	return g, known
}
