package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// unchosen is a text in the program of all mutants. The last digits say which of them it is;
// a copy with other digits is another one, and so is each process that it starts of itself,
// with whatever environment.
const (
	digits   = "000000"
	unchosen = "the mutant that this program is to be: " + digits
)

// chooser is the file that is added to a package whose functions hold mutants.
const chooser = `package %s

import "strconv"

var mrsMutantText = "` + unchosen + `"

var mrsMutant, _ = strconv.Atoi(mrsMutantText[len(mrsMutantText)-len("` + digits + `"):])
`

// choose copies the program that holds all mutants as one of them.
func choose(from, to string, number int) error {
	program, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return err
	}
	if n := bytes.Count(program, []byte(unchosen)); n != 1 {
		return fmt.Errorf("%s has %d places that say which mutant it is, want one", from, n)
	}
	chosen := fmt.Appendf(nil, "%s%0*d", strings.TrimSuffix(unchosen, digits), len(digits), number)
	at := bytes.Index(program, []byte(unchosen))
	copy(program[at:], chosen)
	return os.WriteFile(to, program, 0o700) //nolint:gosec // G306: a program, for its owner
}

// together is the text of a file with all mutants in it, numbered as they stand in the list
// from 1: each function does as before, unless it is told to be one of its mutants.
// It costs one compilation for all.
func together(text []byte, mutants map[int]mutant) []byte {
	bodies := make(map[body][]int)
	for number, m := range mutants {
		bodies[m.body] = append(bodies[m.body], number)
	}
	var order []body
	for b, numbers := range bodies {
		slices.Sort(numbers)
		order = append(order, b)
	}
	slices.SortFunc(order, func(a, b body) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	at := 0
	for _, b := range order {
		out.Write(text[at:b.from])
		for _, number := range bodies[b] {
			m := mutants[number]
			inner := slices.Concat(text[b.from:m.from], []byte(m.with), text[m.to:b.to])
			fmt.Fprintf(&out, "\nif mrsMutant == %d {\n%s\n", number, inner)
			if !b.returns {
				out.WriteString("return\n")
			}
			out.WriteString("}\n")
		}
		at = b.from
	}
	out.Write(text[at:])
	return out.Bytes()
}

// buildTogether makes the test program that holds all mutants of a package which need not be
// alone.
func (l laboratory) buildTogether(
	ctx context.Context, t *tests, pkg string, mutants []mutant,
) (string, error) {
	byFile := make(map[string]map[int]mutant)
	for i, m := range mutants {
		if m.body.alone {
			continue
		}
		if byFile[m.file] == nil {
			byFile[m.file] = make(map[int]mutant)
		}
		byFile[m.file][i+1] = m
	}
	if len(byFile) == 0 {
		return "", nil
	}
	name, err := list(ctx, pkg, "{{.Name}}")
	if err != nil {
		return "", err
	}
	texts := map[string][]byte{
		filepath.Join(filepath.Dir(mutants[0].file), "mrs_mutant.go"): fmt.Appendf(nil, chooser, name[0]),
	}
	for file, here := range byFile {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return "", err
		}
		texts[file] = together(text, here)
	}
	program := strings.ReplaceAll(t.pkg, "/", "_") + ".all.test"
	return l.build(ctx, t.pkg, program, texts)
}
