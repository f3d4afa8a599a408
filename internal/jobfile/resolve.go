package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Plan is a job file whose files were found: what must be stored, and what the
// job will be then.
type Plan struct {
	File    *File
	Sources []Source // each content once; what Job wants identifiers for, in this order
	name    string   // of the job file
	module  int      // index into Sources, -1 for a command
	inputs  []slot
	items   []planItem

	after       []grid.JobID // of Complete
	takes       []grid.Take  // likewise
	reservation grid.JobID   // likewise

	signedPart   grid.SignedPart // 0: nobody has signed it
	signature    []byte          // the file
	moduleDigest string          // of a module that was signed by itself

	// KeyName names the key for which the sources of an encrypted job were stored. Who stores them
	// makes it, at random, before Job.
	KeyName string
}

// slot is an input whose content is Sources[source].
type slot struct {
	path   string
	source int
}

type planItem struct {
	value  string
	inputs []slot
}

// Stored is the answer of the data room about one source.
type Stored struct {
	CID   grid.CID
	Bytes int64
	Dir   bool
}

// Resolve finds the files of a job file in its folder. The error is an Errors
// with everything that is missing or leads out of the folder. It works on what
// Parse gave beside an error too.
func (f *File) Resolve(name, folder string) (*Plan, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open folder of the job file: %w", err)
	}
	defer func() { _ = root.Close() }() // only read from
	r := &resolver{
		file: f, root: root, folder: folder, plan: &Plan{File: f, name: name, module: -1},
		known: map[string]int{},
	}
	r.run()
	if len(r.errs) > 0 {
		return nil, r.errs.sorted(name)
	}
	return r.plan, nil
}

type resolver struct {
	file   *File
	root   *os.Root
	folder string
	plan   *Plan
	errs   Errors
	known  map[string]int // text of a from -> index in plan.Sources, -1 = failed
}

func (r *resolver) fail(field, remedy, format string, args ...any) {
	r.errs = append(r.errs, &FieldError{
		Line: r.file.lines[field], Field: field, Text: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

func (r *resolver) run() {
	if r.file.Spec.Kind == grid.KindWasm && r.file.Wasm.Text != "" {
		r.plan.module = r.source(r.file.Wasm, r.file.Wasm.Text)
		r.checkModule()
		r.readOnly()
	}
	for _, in := range r.file.Inputs {
		if !own(in.From.Text) && !in.isTaken() {
			r.plan.inputs = append(r.plan.inputs,
				slot{path: in.Path, source: r.source(in.From, in.From.Text)})
		}
	}
	for i, item := range r.expandItems() {
		r.addItem(i, item)
	}
	r.signature()
	r.checkEncrypt()
	r.checkTargets()
}

// checkModule refuses what cannot be a module before anything is sent.
func (r *resolver) checkModule() {
	if r.plan.module < 0 || r.plan.Sources[r.plan.module].CID != "" {
		return
	}
	source := r.plan.Sources[r.plan.module]
	magic, err := source.head(4)
	if source.Dir || err != nil || string(magic) != "\x00asm" {
		r.fail("wasm", "compile it for WASI preview 1 (GOOS=wasip1 GOARCH=wasm go build)",
			"want a WebAssembly module, %s is none", r.file.Wasm.Text)
	}
}

// readOnly sends the module without its x bit, which compilers set and which nothing
// needs: it is read and not run, and the same module has the same identifier. The same
// file named as an input keeps its bit.
func (r *resolver) readOnly() {
	if r.plan.module < 0 || !r.plan.Sources[r.plan.module].Executable {
		return
	}
	r.plan.Sources[r.plan.module].Executable = false
	delete(r.known, r.file.Wasm.Text)
}

// expandItems is the list of items, that of the glob, or, where inputs differ by
// index, one for each task. It is empty when all tasks have the same inputs.
func (r *resolver) expandItems() []ItemRef {
	f := r.file
	if f.Glob != "" {
		return r.expandGlob()
	}
	if len(f.Items) > 0 {
		return f.Items
	}
	for _, in := range f.Inputs {
		if own(in.From.Text) {
			return make([]ItemRef, f.Count)
		}
	}
	return nil
}

func (r *resolver) expandGlob() []ItemRef {
	matches, err := fs.Glob(r.root.FS(), path.Clean(filepath.ToSlash(r.file.Glob)))
	if err != nil || len(matches) == 0 {
		r.fail("items.glob", "check the pattern; it is relative to the job file", "nothing matches %s",
			r.file.Glob)
		return nil
	}
	if len(matches) > grid.MaxTasks {
		r.fail("items.glob", "split the job", "%d files match, want at most %d",
			len(matches), grid.MaxTasks)
		return nil
	}
	items := make([]ItemRef, len(matches))
	for i, match := range matches { // sorted by fs.Glob within each folder, and folders in order
		items[i].Value = match
	}
	return items
}

// fill replaces a task's own words.
func fill(text string, index int, item string) string {
	return strings.NewReplacer(wordIndex, strconv.Itoa(index), wordItem, item).Replace(text)
}

func (r *resolver) addItem(index int, item ItemRef) {
	out := planItem{value: item.Value}
	for _, in := range r.file.Inputs {
		if own(in.From.Text) {
			out.inputs = append(out.inputs,
				slot{path: in.Path, source: r.source(in.From, fill(in.From.Text, index, item.Value))})
		}
	}
	for _, in := range item.Inputs {
		out.inputs = append(out.inputs, slot{path: in.Path, source: r.source(in.From, in.From.Text)})
	}
	r.plan.items = append(r.plan.items, out)
}

// source finds what a text names and remembers it.
func (r *resolver) source(ref Ref, text string) int {
	if index, found := r.known[text]; found {
		return index
	}
	source, err := r.find(text)
	if err != nil {
		r.known[text] = -1
		r.explain(ref.Field, text, err)
		return -1
	}
	r.plan.Sources = append(r.plan.Sources, source)
	r.known[text] = len(r.plan.Sources) - 1
	return r.known[text]
}

func (r *resolver) explain(field, text string, err error) {
	var bad *entryError
	switch {
	case errors.As(err, &bad):
		r.fail(field, bad.remedy, "%s", bad.Error())
	case errors.Is(err, fs.ErrNotExist):
		r.fail(field, "check the name; it is relative to the job file's folder",
			"no such file or folder: %s", text)
	case errors.Is(err, fs.ErrPermission):
		r.fail(field, "change its permissions", "%s cannot be read", text)
	case strings.Contains(err.Error(), "escapes"):
		r.fail(field, "copy the file into the folder",
			"%s is a link out of the job file's folder", text)
	default:
		r.fail(field, "check the file", "%s cannot be read: %v", text, err)
	}
}

// find looks at one from. Unless the options allow more, it stays in the job file's folder.
func (r *resolver) find(text string) (Source, error) {
	if cid, found := strings.CutPrefix(text, "cid:"); found {
		return Source{CID: grid.CID(cid)}, nil
	}
	if filepath.IsLocal(text) {
		return look(r.root, r.folder, filepath.Clean(text))
	}
	full := filepath.Clean(text)
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.folder, full)
	}
	if !r.file.allowOutside {
		return r.inside(full, text)
	}
	info, err := os.Stat(full)
	if err != nil {
		return Source{}, err
	}
	folder, name := filepath.Dir(full), filepath.Base(full)
	if info.IsDir() {
		folder, name = full, "."
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Source{}, err
	}
	defer func() { _ = root.Close() }() // only read from
	return look(root, folder, name)
}

// inside looks at a path that must lie in the job file's folder.
func (r *resolver) inside(full, text string) (Source, error) {
	folder, err := filepath.Abs(r.folder)
	if err != nil {
		return Source{}, err
	}
	if full, err = filepath.Abs(full); err != nil {
		return Source{}, err
	}
	name, err := filepath.Rel(folder, full)
	if err != nil || !filepath.IsLocal(name) {
		return Source{}, &entryError{
			text: text + " is outside of the job file's folder",
			remedy: "copy it into the folder; if you know what the file sends away, " +
				"submit it with --allow-outside",
		}
	}
	return look(r.root, r.folder, name)
}

// checkTargets looks at where outputs go once {{item}} is known.
func (r *resolver) checkTargets() {
	if len(r.plan.items) == 0 {
		return
	}
	seen := map[string]int{}
	for i, out := range r.file.Spec.Outputs {
		field := fmt.Sprintf("outputs[%d].to", i)
		for index, item := range r.plan.items {
			to := filepath.ToSlash(filepath.Clean(fill(out.To, index, item.value)))
			if !filepath.IsLocal(to) || to == "." {
				r.fail(field, "use {{index}} instead of {{item}}",
					"for item %q it is %s, outside the job file's folder", item.value, to)
				return
			}
			if first, double := seen[to]; double {
				r.fail(field, "put {{index}} into it", "tasks %d and %d would both write %s", first, index, to)
				return
			}
			seen[to] = index
		}
	}
}

// Tasks is the number of tasks.
func (p *Plan) Tasks() int {
	if len(p.items) > 0 {
		return len(p.items)
	}
	return int(p.File.Count)
}

// Job is the job to submit. stored has an entry for each of Sources.
func (p *Plan) Job(stored []Stored) (grid.Job, error) {
	job, err := p.plain(stored)
	if err != nil {
		return job, err
	}
	return p.sign(job)
}

// plain is the job without a signature.
func (p *Plan) plain(stored []Stored) (grid.Job, error) {
	if len(stored) != len(p.Sources) {
		return grid.Job{}, fmt.Errorf("build job: have %d stored sources, want %d",
			len(stored), len(p.Sources))
	}
	job := grid.Job{
		Spec: p.File.Spec, Count: uint32(p.Tasks()), TTL: p.File.TTL,
		Split: p.File.Split, CommBytes: p.File.CommBytes, Flood: p.File.Flood,
		Retries: p.File.Retries, MaxFailures: p.File.MaxFailures, Redundancy: p.File.Redundancy,
		Takes: p.takes, Held: p.File.Held,
	}
	if p.File.Encrypt {
		job.Spec.Encrypted, job.Encryption.Name = true, p.KeyName
	}
	job.After, job.Spec.Reservation = p.others()
	if p.module >= 0 {
		m := stored[p.module]
		job.Spec.Module = grid.Input{CID: m.CID, Bytes: m.Bytes}
	}
	job.Spec.Inputs = fillSlots(p.inputs, stored)
	for _, item := range p.items {
		job.Items = append(job.Items,
			grid.Item{Value: item.value, Inputs: fillSlots(item.inputs, stored)})
	}
	if err := job.Validate(); err != nil {
		return grid.Job{}, fmt.Errorf("build job: %w", err)
	}
	return job, nil
}

func fillSlots(slots []slot, stored []Stored) []grid.Input {
	var out []grid.Input
	for _, s := range slots {
		content := stored[s.source]
		out = append(out,
			grid.Input{Path: s.path, CID: content.CID, Bytes: content.Bytes, Dir: content.Dir})
	}
	return out
}
