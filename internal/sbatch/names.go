package sbatch

import (
	"fmt"
	"strings"
)

// Names says how the files of a batch job are called.
type Names struct {
	Output, Error string // patterns; Error is empty: errors go where the output goes
	Name          string // of the job
	Array         bool
}

// The patterns without --output.
const (
	singleOutput = "slurm-%j.out"
	arrayOutput  = "slurm-%A_%a.out"
)

// expand replaces %j, %A, %a, %x and %%.
func expand(pattern string, values map[byte]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		if i == len(pattern) {
			return "", fmt.Errorf("%q ends with %%", pattern)
		}
		value, known := values[pattern[i]]
		switch {
		case pattern[i] == '%':
			b.WriteByte('%')
		case !known:
			return "", fmt.Errorf("%%%c in %q is not known here; use %%j, %%A, %%a or %%x",
				pattern[i], pattern)
		default:
			b.WriteString(value)
		}
	}
	return b.String(), nil
}

// Files are the names for one task: index is its place in the job, item its index as the user knows
// it. Where the second is empty, both streams go into the first.
func (n Names) Files(job string, index uint32, item string) (output, failed string, err error) {
	values := map[byte]string{'j': job, 'A': job, 'a': item, 'x': n.Name}
	if n.Array {
		values['j'] = fmt.Sprintf("%s.%d", job, index)
	}
	if output, err = expand(n.Output, values); err != nil || n.Error == "" {
		return output, "", err
	}
	failed, err = expand(n.Error, values)
	return output, failed, err
}
