package tes

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of one task.
const (
	maxList      = 1_000    // executors, inputs, outputs, volumes, tags, variables
	maxTaskBytes = 16 << 20 // of a request
	maxTextBytes = 64 << 10 // of a name, a tag
)

// work is a task that was looked through: its paths are those of the sandbox.
type work struct {
	task    TesTask  // as it is shown: defaults filled in, what the server sets left out
	notes   []string // what was left out, for its log
	amounts amounts
	inputs  []string // paths, in the order of the task's
	mounts  []int    // the inputs that are directories which the task may change, ascending
	outputs []target // likewise
	volumes []string
	steps   []stage
}

// target is an output of a task.
type target struct {
	path   string // in the sandbox, with wildcards
	prefix string // of a path with wildcards: what is taken off a match; else empty
	url    string
}

// stage is an executor of a task.
type stage struct {
	command               []string
	env                   [][2]string // ascending by name
	workdir               string      // empty = where the sandbox begins
	stdin, stdout, stderr string      // empty = none, or kept for the log
	ignoreError           bool
}

// check looks a task through. images are the patterns of those that the owner allows, mounts the
// inputs that are directories which the task may change.
func check(task TesTask, images []string, mounts []int) (work, error) {
	task.Id, task.State, task.Logs, task.CreationTime = nil, nil, nil, nil
	w := work{task: task, mounts: mounts}
	var err error
	w.notes, err = w.withoutUnknown()
	for _, look := range []func() error{
		func() error { return err },
		w.checkTexts, func() error { return w.checkSteps(images) }, w.checkInputs, w.checkOutputs,
		w.checkVolumes, w.checkApart,
	} {
		if wrong := look(); wrong != nil {
			return w, wrong
		}
	}
	w.amounts, err = amountsOf(task.Resources)
	return w, err
}

// withoutUnknown notes which parameters are left out.
func (w *work) withoutUnknown() (notes []string, err error) {
	if w.task.Resources != nil {
		copied := *w.task.Resources
		w.task.Resources = &copied
	}
	unknown, err := keepKnown(w.task.Resources)
	for _, key := range unknown {
		notes = append(notes, "backend parameter "+quoted(key)+" is unknown here and was left out")
	}
	return notes, err
}

func (w *work) checkTexts() error {
	for field, text := range map[string]*string{
		"name": w.task.Name, "description": w.task.Description,
	} {
		if text != nil && len(*text) > maxTextBytes {
			return invalid(field, "longer than 64 KiB", "shorten it")
		}
	}
	if w.task.Tags != nil && len(*w.task.Tags) > maxList {
		return tooMany("tags")
	}
	return nil
}

func tooMany(field string) error {
	return invalid(field, fmt.Sprintf("more than %d", maxList), "split the task")
}

func (w *work) checkSteps(images []string) error {
	if len(w.task.Executors) == 0 {
		return invalid("executors", "the task has none", "give at least one")
	}
	if len(w.task.Executors) > maxList {
		return tooMany("executors")
	}
	for i, e := range w.task.Executors {
		field := fmt.Sprintf("executors[%d]", i)
		if err := checkImage(field+".image", e.Image, images); err != nil {
			return err
		}
		s, err := stageOf(field, e)
		if err != nil {
			return err
		}
		w.steps = append(w.steps, s)
	}
	return nil
}

func checkImage(field, image string, images []string) error {
	if image == "" {
		return invalid(field, "the executor names no image", "name one")
	}
	if slices.ContainsFunc(images, func(pattern string) bool { return matches(pattern, image) }) {
		return nil
	}
	remedy := "the owner of this agent can allow it with the setting tes.images"
	if len(images) > 0 {
		remedy += ", which names " + strings.Join(images, ", ")
	}
	return invalid(field, "no site here has the image "+quoted(image)+": images are not fetched, "+
		"and tasks run with the programs of the sites", remedy)
}

// matches reports whether a pattern, in which * stands for any text, fits all of a name.
func matches(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, fits := strings.CutPrefix(name, first)
	if !fits {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return strings.HasSuffix(name, last)
}

func stageOf(field string, e TesExecutor) (s stage, err error) {
	s.command, s.ignoreError = e.Command, e.IgnoreError != nil && *e.IgnoreError
	if len(e.Command) == 0 || e.Command[0] == "" {
		return s, invalid(field+".command", "empty", "name a program and its arguments")
	}
	for _, word := range e.Command {
		if strings.ContainsRune(word, 0) {
			return s, invalid(field+".command", "holds a zero byte", "leave it out")
		}
	}
	if e.Workdir != nil && *e.Workdir != "" {
		if s.workdir, err = placeOf(field+".workdir", *e.Workdir); err != nil {
			return s, err
		}
	}
	for _, stream := range []struct {
		name  string
		given *string
		into  *string
	}{
		{"stdin", e.Stdin, &s.stdin},
		{"stdout", e.Stdout, &s.stdout},
		{"stderr", e.Stderr, &s.stderr},
	} {
		if *stream.into, err = streamOf(field+"."+stream.name, stream.given); err != nil {
			return s, err
		}
	}
	s.env, err = variables(field+".env", e.Env)
	return s, err
}

func variables(field string, env *map[string]string) (list [][2]string, err error) {
	if env == nil {
		return nil, nil
	}
	if len(*env) > maxList {
		return nil, tooMany(field)
	}
	for name, value := range *env {
		if name == "" || name[0] == '-' || strings.ContainsAny(name, "=\x00") ||
			strings.ContainsRune(value, 0) {
			return nil, invalid(field, "the variable "+quoted(name)+" cannot be set",
				"a name has no = and does not begin with -, and no zero byte is in it or its value")
		}
		list = append(list, [2]string{name, value})
	}
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list, nil
}

func (w *work) checkInputs() error {
	if w.task.Inputs == nil {
		return nil
	}
	list := slices.Clone(*w.task.Inputs)
	w.task.Inputs = &list
	if len(list) > maxList {
		return tooMany("inputs")
	}
	for i := range list {
		field, in := fmt.Sprintf("inputs[%d]", i), &list[i]
		p, err := placeOf(field+".path", in.Path)
		if err != nil {
			return err
		}
		if p == "/" {
			return invalid(field+".path", "an input cannot be the root itself", "choose /data")
		}
		if in.Type, err = typeOf(field+".type", in.Type); err != nil {
			return err
		}
		content, address := in.Content != nil, in.Url != nil && *in.Url != ""
		switch {
		case !content && !address:
			return invalid(field+".url", "neither a url nor content is given", "give one of them")
		case *in.Type == DIRECTORY && literal(*in):
			return invalid(field+".content", "a directory cannot have content", "give a url")
		}
		w.inputs = append(w.inputs, p)
	}
	return nil
}

// literal reports whether the content of an input stands in the task itself.
func literal(in TesInput) bool {
	return in.Content != nil && (*in.Content != "" || in.Url == nil || *in.Url == "")
}

// typeOf fills the type of a file in.
func typeOf(field string, given *TesFileType) (*TesFileType, error) {
	file := FILE
	switch {
	case given == nil || *given == "":
		return &file, nil
	case !given.Valid():
		return nil, invalid(field, "unknown: "+quoted(string(*given)),
			"write FILE or DIRECTORY")
	default:
		return given, nil
	}
}

func (w *work) checkOutputs() error {
	if w.task.Outputs == nil {
		return nil
	}
	list, bytes := slices.Clone(*w.task.Outputs), 0
	w.task.Outputs = &list
	if len(list) > maxList {
		return tooMany("outputs")
	}
	for i := range list {
		field, out := fmt.Sprintf("outputs[%d]", i), &list[i]
		t := target{url: out.Url}
		var err error
		if t.path, err = placeOf(field+".path", out.Path); err != nil {
			return err
		}
		if t.path == "/" {
			return invalid(field+".path", "an output cannot be the root itself", "choose /data")
		}
		if out.Type, err = typeOf(field+".type", out.Type); err != nil {
			return err
		}
		if wild(t.path) {
			if t.prefix, err = prefixOf(field, *out, t.path); err != nil {
				return err
			}
		}
		w.outputs = append(w.outputs, t)
		if bytes += len(t.path); bytes > maxTextBytes {
			return invalid("outputs", "the paths take more than 64 KiB in all", "write a directory")
		}
	}
	return nil
}

// prefixOf is the directory that is taken off what matches an output's wildcards.
func prefixOf(field string, out TesOutput, p string) (string, error) {
	if out.PathPrefix == nil || *out.PathPrefix == "" {
		return "", invalid(field+".path_prefix", "required with wildcards in the path",
			"give the directory that is taken off the paths of the files")
	}
	prefix, err := placeOf(field+".path_prefix", *out.PathPrefix)
	if err != nil {
		return "", err
	}
	if wild(prefix) || !below(p, prefix) || p == prefix {
		return "", invalid(field+".path_prefix",
			"want a directory without wildcards that the path begins with",
			"such as /data of /data/*.txt")
	}
	return prefix, nil
}

func (w *work) checkVolumes() error {
	if w.task.Volumes == nil {
		return nil
	}
	if len(*w.task.Volumes) > maxList {
		return tooMany("volumes")
	}
	for i, given := range *w.task.Volumes {
		p, err := placeOf(fmt.Sprintf("volumes[%d]", i), given)
		if err != nil {
			return err
		}
		w.volumes = append(w.volumes, p)
	}
	return nil
}

// checkApart refuses what would be written into an input: inputs cannot be written to.
func (w *work) checkApart() error {
	for i, in := range w.inputs {
		for j, other := range w.inputs {
			if i != j && below(other, in) {
				return inInput(fmt.Sprintf("inputs[%d].path", j), in)
			}
		}
		if w.isMount(i) {
			continue
		}
		for j, out := range w.outputs {
			if below(out.path, in) {
				return inInput(fmt.Sprintf("outputs[%d].path", j), in)
			}
		}
		for j, s := range w.steps {
			for name, p := range map[string]string{"stdout": s.stdout, "stderr": s.stderr} {
				if p != "" && below(p, in) {
					return inInput(fmt.Sprintf("executors[%d].%s", j, name), in)
				}
			}
		}
	}
	return nil
}

func inInput(field, input string) error {
	return invalid(field, "stands in an input, which cannot be written to: "+quoted(input),
		"choose a path beside it")
}

// title is a task's name as a job's may be.
func title(task TesTask) string {
	if task.Name == nil {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, *task.Name)
	const most = 128
	if len(name) > most {
		name = name[:most]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(name, "{{", "{"), "")
}
