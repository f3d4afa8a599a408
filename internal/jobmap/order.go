package jobmap

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Order asks for a map.
type Order struct {
	Words     []string // the command, joined by spaces for sh, or the arguments of the module
	Wasm      string   // the module's file; empty for a command
	Arguments []string // one task each
	Returns   []string // files that come back, with replacement strings
	Inputs    []string // files that every task gets
	NoFiles   bool     // arguments are words, even where there are files of that name
}

// Map is an array job to be.
type Map struct {
	Commands []string // of each task, as a person would type them
	Notes    []string // what may have been forgotten

	document map[string]any
}

// Document is the job file, without what is common to all jobs such as resources. The
// caller may add to it.
func (m *Map) Document() map[string]any { return m.document }

const (
	// Gathered is the directory on a site into which what comes back of a command is moved.
	Gathered = "/returned"

	home  = "/work" // of a command: where it starts
	shell = "/bin/sh"
	item  = "{{item}}"

	// The item is the command and the files that come back, as words of sh. Names begin
	// with ./ so that none is an option.
	gather = `eval "set -- $1"
(line=$1; shift $#; eval "$line")
code=$? missing=0
shift
mkdir ` + Gathered + ` || exit
for file do
	if [ -e "$file" ]; then
		case $file in ./*/*) mkdir -p "` + Gathered + `/${file%/*}" || missing=125 ;; esac
		mv "$file" "` + Gathered + `/$file" || missing=125
	elif [ "$code" = 0 ]; then
		echo "submit map: the command has not made ${file#./}" >&2
		missing=125
	fi
done
[ "$code" != 0 ] || exit "$missing"
exit "$code"`
)

// Make works out each task. It looks for files in the folder, in which the user is. The
// error names what is wrong and what to do; nothing has been sent then.
func (o Order) Make(folder string) (*Map, error) {
	switch {
	case len(o.Arguments) == 0:
		return nil, errors.New("no arguments, so there is nothing to run; give some behind ::: " +
			"or on standard input")
	case len(o.Arguments) > grid.MaxTasks:
		return nil, errTooMany
	}
	line := strings.Join(o.Words, " ")
	if o.Wasm == "" && strings.TrimSpace(line) == "" {
		return nil, errors.New("no command; write it before :::, or --wasm FILE")
	}
	common, err := o.commonFiles(folder, line)
	if err != nil {
		return nil, err
	}
	m := &maker{Order: o, folder: folder, common: common, returned: map[string]int{}}
	m.out.document = map[string]any{"inputs": m.inputs(common)}
	if o.Wasm == "" {
		for _, word := range forgotten(folder, line, common) {
			m.out.Notes = append(m.out.Notes,
				fmt.Sprintf("note: %s is not sent; --input %s sends it to every task", word, word))
		}
		err = m.commands(line)
	} else {
		err = m.module()
	}
	if err != nil {
		return nil, err
	}
	return &m.out, nil
}

// maker makes one map.
type maker struct {
	Order

	folder   string
	common   sent
	returned map[string]int // where a task writes -> its number
	out      Map
}

// inputs are files as a job file lists them. The dot keeps a name such as cid:x a name.
func (m *maker) inputs(files sent) []map[string]string {
	base := home
	if m.Wasm != "" {
		base = "/"
	}
	out := []map[string]string{}
	for _, file := range files {
		out = append(out, map[string]string{"path": path.Join(base, file), "from": "./" + file})
	}
	return out
}

// commands makes a task of each argument for a command line.
func (m *maker) commands(line string) error {
	command, err := parseTemplate(line)
	if err != nil {
		return err
	}
	if len(command.kinds()) == 0 {
		command.parts = []string{line + " ", whole, ""}
	}
	returns, err := m.parseReturns()
	if err != nil {
		return err
	}
	m.out.document["command"] = []string{shell, "-c", item}
	if len(returns) > 0 {
		if kinds := kindsOf(append([]template{command}, returns...)); m.plainly(line, kinds) {
			return m.returning(command, returns, kinds[0])
		}
		m.out.document["command"] = []string{shell, "-c", gather, "map", item}
		m.out.document["outputs"] = []map[string]string{
			{"path": Gathered, "to": "returned/{{index}}"},
		}
	}
	return m.eachItem(func(number int, argument string) (string, string, error) {
		text := command.fill(func(kind string) string {
			return quote(replaced(kind, argument, number))
		})
		value := text
		if len(returns) > 0 {
			files, err := m.filesOf(returns, number, argument)
			if err != nil {
				return "", "", err
			}
			value = quoteAll(append([]string{text}, files...))
		}
		return text, value, nil
	})
}

// plainly reports whether one text sets the tasks apart, and stands for itself in a line of sh and
// in a path.
func (m *maker) plainly(line string, kinds []string) bool {
	if len(kinds) != 1 || strings.Contains(line, "{{") {
		return false
	}
	for i, argument := range m.Arguments {
		value := replaced(kinds[0], argument, i+1)
		if !plain(value) || path.Clean(value) != value {
			return false
		}
	}
	return true
}

// returning makes a task of each argument whose files the site takes from where the command leaves
// them. Where the tasks are small, a script that gathers these takes longer than the command.
func (m *maker) returning(command template, returns []template, kind string) error {
	line := command.fill(func(string) string { return item })
	m.out.document["command"] = []string{shell, "-c", line}
	if words := strings.Split(line, " "); isSimple(words) {
		m.out.document["command"] = words
	}
	m.out.document["outputs"] = outputs(home, returns)
	return m.eachItem(func(number int, argument string) (string, string, error) {
		if _, err := m.filesOf(returns, number, argument); err != nil {
			return "", "", err
		}
		value := replaced(kind, argument, number)
		return command.fill(func(string) string { return value }), value, nil
	})
}

func (m *maker) parseReturns() ([]template, error) {
	var out []template
	for _, text := range m.Returns {
		t, err := parseTemplate(text)
		if err != nil {
			return nil, fmt.Errorf("--return: %w", err)
		}
		if found := t.unknown(); found != "" {
			return nil, fmt.Errorf("--return: %s is no replacement string; use {}, {.}, {/}, "+
				"{//}, {/.} or {#}", found)
		}
		out = append(out, t)
	}
	return out, nil
}

// filesOf are the files that come back of a task, from its working directory.
func (m *maker) filesOf(returns []template, number int, argument string) ([]string, error) {
	var out []string
	for _, t := range returns {
		name := t.fill(func(kind string) string { return replaced(kind, argument, number) })
		clean, err := local(name)
		if err != nil {
			return nil, fmt.Errorf("--return %q: %w", name, err)
		}
		if first, double := m.returned[clean]; double {
			return nil, fmt.Errorf("--return: tasks %d and %d would both write %s; put {} or {#} "+
				"into it", first, number, clean)
		}
		m.returned[clean] = number
		out = append(out, "./"+clean)
	}
	return out, nil
}

// eachItem adds an item for each argument, of what text gives for it: the command for
// people, and the value of the item.
func (m *maker) eachItem(text func(number int, argument string) (string, string, error)) error {
	items := make([]map[string]any, 0, len(m.Arguments))
	for i, argument := range m.Arguments {
		if err := checkText(argument); err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		shown, value, err := text(i+1, argument)
		if err == nil {
			err = checkText(value)
		}
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		own, err := m.ownFiles(argument)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		items = append(items, map[string]any{"value": value, "inputs": m.inputs(own)})
		m.out.Commands = append(m.out.Commands, shown)
	}
	m.out.document["items"] = items
	return nil
}

// checkText refuses what a task cannot be told.
func checkText(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("its text takes %d bytes, want at most %d; %s", len(text), maxText,
			intoFiles)
	case strings.ContainsRune(text, 0):
		return errors.New("it holds a zero byte, which no command takes; remove it")
	case !utf8.ValidString(text):
		return fmt.Errorf("%q is not UTF-8; rename the file", text)
	}
	return nil
}

// ownFiles names the file of an argument, unless every task has it.
func (m *maker) ownFiles(argument string) (sent, error) {
	if m.NoFiles {
		return nil, nil
	}
	name, err := argumentFile(m.folder, argument)
	if err != nil || name == "" || m.common.covers(name) {
		return nil, err
	}
	if inside := m.common.within(name); inside != "" {
		return nil, fmt.Errorf("%s is sent as a whole, and %s to every task; give the arguments "+
			"as files, or leave out --input %s", name, inside, inside)
	}
	if number := m.returned[name]; number > 0 {
		return nil, fmt.Errorf("--return: %s is an input, which tasks cannot change; "+
			"have the command write another file", name)
	}
	return sent{name}, nil
}

// module makes a task of each argument for a WebAssembly module.
func (m *maker) module() error {
	words := m.Words
	templates, err := parseAll(words)
	if err != nil {
		return err
	}
	if len(kindsOf(templates)) == 0 {
		words = append(slices.Clone(words), whole)
		templates = append(templates, template{parts: []string{"", whole, ""}})
	}
	returns, err := m.parseReturns()
	if err != nil {
		return err
	}
	kinds := kindsOf(append(slices.Clone(templates), returns...))
	if len(kinds) > 1 {
		return fmt.Errorf("a module's tasks can use one replacement string, have %s; use a "+
			"command, or have the module work out the rest", strings.Join(kinds, " and "))
	}
	args, shown := []string{}, append([]string{m.Wasm}, words...)
	for _, t := range templates {
		args = append(args, t.fill(func(string) string { return item }))
	}
	m.out.document["wasm"], m.out.document["args"] = m.Wasm, args
	m.out.document["outputs"] = outputs("/", returns)
	return m.eachItem(func(number int, argument string) (string, string, error) {
		if _, err := m.filesOf(returns, number, argument); err != nil {
			return "", "", err
		}
		value := replaced(kinds[0], argument, number)
		for i, t := range templates {
			shown[i+1] = t.fill(func(string) string { return value })
		}
		return quoteAll(shown), value, nil
	})
}

func parseAll(texts []string) ([]template, error) {
	var out []template
	for _, text := range texts {
		t, err := parseTemplate(text)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func kindsOf(templates []template) []string {
	var out []string
	for _, t := range templates {
		for _, kind := range t.kinds() {
			if !slices.Contains(out, kind) {
				out = append(out, kind)
			}
		}
	}
	return out
}

// outputs are those of tasks which one text sets apart, below the directory in which they start.
func outputs(base string, returns []template) []map[string]string {
	out := []map[string]string{}
	for _, t := range returns {
		name := t.fill(func(string) string { return item })
		out = append(out, map[string]string{"path": path.Join(base, name), "to": path.Clean(name)})
	}
	return out
}

// CommandOf gives the command that a task runs, as a person would type it, from the arguments of
// its job and its item.
func CommandOf(args []string, value string) string {
	switch {
	case len(args) == 3 && slices.Equal(args[:2], []string{shell, "-c"}):
		return strings.ReplaceAll(args[2], item, value)
	case slices.Equal(args, []string{shell, "-c", gather, "map", item}):
		if words, err := unquote(value); err == nil && len(words) > 0 {
			return words[0]
		}
		return value
	}
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = strings.ReplaceAll(arg, item, value)
	}
	return quoteAll(filled)
}
