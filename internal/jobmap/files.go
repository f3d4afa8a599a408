package jobmap

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sent names the files and directories that go along with a task, relative to the present
// directory, clean, with slashes.
type sent []string

// covers reports whether a name, or a directory above it, is sent.
func (s sent) covers(name string) bool {
	for _, one := range s {
		if name == one || strings.HasPrefix(name, one+"/") {
			return true
		}
	}
	return false
}

// within is the first name that is sent and lies below a directory, empty if none does.
func (s sent) within(dir string) string {
	for _, one := range s {
		if strings.HasPrefix(one, dir+"/") {
			return one
		}
	}
	return ""
}

// without leaves out what lies below a directory.
func (s sent) without(dir string) sent {
	return slices.DeleteFunc(s, func(one string) bool { return strings.HasPrefix(one, dir+"/") })
}

// local is a name as it is sent. Names that lead out of the present directory, and those
// that a job file would read as something else, are refused.
func local(name string) (string, error) {
	clean := filepath.ToSlash(filepath.Clean(name))
	switch {
	case !filepath.IsLocal(name):
		return "", errors.New("it is outside the present directory; change to a directory above " +
			"it, or copy it here")
	case clean == ".":
		return "", errors.New("it is the present directory itself; name what is in it")
	case strings.Contains(clean, "{{"):
		return "", errors.New("its name holds {{, which job files replace; rename it")
	}
	return clean, nil
}

// argumentFile is the file that an argument names, empty if it names none.
func argumentFile(folder, argument string) (string, error) {
	full := argument
	if !filepath.IsAbs(full) {
		full = filepath.Join(folder, argument)
	}
	if argument == "" {
		return "", nil
	}
	if !exists(full) { // it is a word, which the command may know what to do with
		return "", nil
	}
	name, err := local(argument)
	if err != nil {
		return "", fmt.Errorf("%s is a file here, and files are sent along: %w; "+
			"or send none, with --no-files", argument, err)
	}
	return name, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// commonFiles are the files that every task gets: those of --input, and the program if it
// is one of ours.
func (o Order) commonFiles(folder, line string) (sent, error) {
	var out sent
	for _, input := range o.Inputs {
		if filepath.IsLocal(input) && !exists(filepath.Join(folder, input)) {
			return nil, fmt.Errorf("--input %s: no such file or directory here; check the name",
				input)
		}
		name, err := local(input)
		if err != nil {
			return nil, fmt.Errorf("--input %s: %w", input, err)
		}
		if !out.covers(name) {
			out = append(out.without(name), name)
		}
	}
	if o.Wasm != "" || o.NoFiles {
		return out, nil
	}
	program, err := ownProgram(folder, line, out)
	if program != "" && !out.covers(program) {
		out = append(out, program)
	}
	return out, err
}

// ownProgram is the first word of a command where that is a path below the present
// directory, such as ./count. Other programs are those of the sites.
func ownProgram(folder, line string, given sent) (string, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if !plain(first) || !strings.Contains(first, "/") || filepath.IsAbs(first) ||
		strings.Contains(first, "=") {
		return "", nil
	}
	info, err := os.Stat(filepath.Join(folder, first))
	if err != nil && given.covers(path.Clean(first)) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: no such program here; check the name, or name one of the "+
			"sites' without a slash", first)
	}
	if info.Mode()&0o100 == 0 && !info.IsDir() {
		return "", fmt.Errorf("%s cannot be run; `chmod +x %s`, or name the program that reads it",
			first, first)
	}
	name, err := local(first)
	if err != nil {
		return "", fmt.Errorf("%s is sent along: %w", first, err)
	}
	return name, nil
}

// forgotten lists the words of a command that name files here and are not sent.
func forgotten(folder, line string, common sent) []string {
	var out []string
	for word := range strings.FieldsSeq(line) {
		if !plain(word) || !filepath.IsLocal(word) {
			continue
		}
		info, err := os.Stat(filepath.Join(folder, word))
		if err == nil && info.Mode().IsRegular() && !common.covers(path.Clean(word)) {
			out = append(out, word)
		}
	}
	return out
}
