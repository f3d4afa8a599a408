package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// following says what to do once a job was submitted.
type following struct {
	wait              bool
	noWait            bool // a job that has no room now is withdrawn: code 4
	cancelOnInterrupt bool
	printLogs         bool // of a single task, when it has ended
	folder            string
}

func (f *following) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "give up with code 4 when no site has room now")
	cmd.Flags().BoolVar(&f.cancelOnInterrupt, "cancel-on-interrupt", false, "an interrupt cancels the job instead of detaching")
}

const runLong = `Run one program on the mesh and wait for it.

With --wasm the program is a WASI preview 1 module, and what stands behind --
are its arguments. Without it, what stands behind -- is a command; sites run
commands only where their owner allows it.

Inputs and outputs are given as HERE:THERE and THERE:HERE; paths on the site are
absolute. When the program has ended, its output is printed, its outputs are
written and its exit code becomes ours. An interrupt detaches: the job goes on.`

// runFlags are the flags of run, which become a job file.
type runFlags struct {
	name, wasm, runtime, limit, cpus, gflops, memory, disk, bandwidth, ttl, unattended, mapKind string
	inputs, outputs, env, items                                                                 []string
	count                                                                                       uint32
	detach                                                                                      bool
	placing                                                                                     placingFlags
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	follow := following{folder: ".", printLogs: true}
	cmd := &cobra.Command{
		Use: "run [flags] [--wasm FILE] -- [CMD] ARGS", Short: "Run a program and wait for it", Long: runLong,
		Example: `  submit run --wasm pi.wasm -- --digits 1000
  submit run --wasm sum.wasm -i table.csv:/in/table.csv --out /out/sum:sum.txt
  submit run --wasm render.wasm --count 100 --out /out/f.png:frame-{{index}}.png -- {{index}}
  submit run --memory 2GiB --runtime 1h -- ./simulate --seed 7
  submit run --wasm pi.wasm --runtime 5m --at "tomorrow 09:00" -- --digits 1000
  submit run --wasm pi.wasm --runtime 5m --deadline 18:00 --after mfrg -- --digits 1000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			follow.wait = !f.detach
			plan, err := a.planOfFlags(f, args)
			if err != nil {
				return err
			}
			if f.wasm == "" {
				a.say("note: sites run WebAssembly only, unless their owner allows commands")
			}
			return a.submit(cmd.Context(), plan, follow)
		},
	}
	f.register(cmd)
	follow.flags(cmd)
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringVar(&f.wasm, "wasm", "", "module to run")
	flags.StringVar(&f.name, "name", "", "name for people")
	flags.StringArrayVarP(&f.inputs, "input", "i", nil, "HERE:THERE, a file or folder and its path on the site")
	flags.StringArrayVar(&f.outputs, "out", nil, "THERE:HERE, a path on the site and where to write it")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "NAME=VALUE")
	flags.StringArrayVar(&f.items, "item", nil, "one task for each; {{item}} stands for it")
	flags.Uint32Var(&f.count, "count", 0, "number of tasks; {{index}} tells them apart")
	flags.StringVar(&f.cpus, "cpus", "", "cores of a task, 0.5 is half of one (default 1)")
	flags.StringVar(&f.gflops, "gflops", "", "computation of a task (default 1)")
	flags.StringVar(&f.memory, "memory", "", "memory of a task, such as 512MiB (default 128MiB)")
	flags.StringVar(&f.disk, "disk", "", "scratch space of a task (default 64MiB)")
	flags.StringVar(&f.bandwidth, "bandwidth", "", "of the site's link, for a task's data, such as 20Mbit/s (default none)")
	flags.StringVar(&f.runtime, "runtime", "", "estimate of a task's running time, such as 10m")
	flags.StringVar(&f.limit, "limit", "", "stop a task after this long")
	flags.StringVar(&f.ttl, "ttl", "", "how long to wait for answers (default 1s)")
	flags.StringVar(&f.unattended, "unattended", "", "when this machine is gone: freeze or finish")
	flags.StringVar(&f.mapKind, "map", "", "how distance is measured: thesis or seconds")
	flags.BoolVarP(&f.detach, "detach", "d", false, "do not wait for the end")
	f.placing.register(flags)
}

// planOfFlags writes the flags as a job file and reads that, so that both are
// checked alike.
func (a *app) planOfFlags(f runFlags, args []string) (*jobfile.Plan, error) {
	doc := map[string]any{}
	if f.wasm != "" {
		doc["wasm"], doc["args"] = f.wasm, orNone(args)
	} else {
		if len(args) == 0 {
			return nil, usage("nothing to run; write --wasm FILE, or a command behind --")
		}
		doc["command"] = args
	}
	set := func(into map[string]any, key, value string) {
		if value != "" {
			into[key] = value
		}
	}
	for key, value := range map[string]string{
		"name": f.name, "runtime": f.runtime, "limit": f.limit, "ttl": f.ttl, "unattended": f.unattended,
	} {
		set(doc, key, value)
	}
	resources, virtual := map[string]any{}, map[string]any{}
	for key, value := range map[string]string{
		"cpus": f.cpus, "gflops": f.gflops, "memory": f.memory, "disk": f.disk, "bandwidth": f.bandwidth,
	} {
		set(resources, key, value)
	}
	set(virtual, "kind", f.mapKind)
	doc["resources"], doc["map"] = resources, virtual
	f.placing.write(doc)
	if f.count > 0 {
		doc["count"] = strconv.FormatUint(uint64(f.count), 10)
	}
	if len(f.items) > 0 {
		doc["items"] = f.items
	}
	if err := addPairs(doc, f); err != nil {
		return nil, err
	}
	return a.planOfDocument(doc)
}

// planOfDocument reads a job file that was made of flags.
func (a *app) planOfDocument(doc map[string]any) (*jobfile.Plan, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	plan, err := jobfile.Load(data, ".", jobfile.Options{Now: a.now(), Runtime: a.config.Runtime})
	if all, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, one := range all {
			one.Line = 0 // there is no file to look into
		}
	}
	return plan, err
}

func orNone(args []string) []string {
	if args == nil {
		return []string{}
	}
	return args
}

func addPairs(doc map[string]any, f runFlags) error {
	inputs, outputs, env := []map[string]string{}, []map[string]string{}, map[string]string{}
	for _, text := range f.inputs {
		at := strings.LastIndex(text, ":/")
		if at < 1 {
			return usage("-i %s: want HERE:THERE, such as table.csv:/in/table.csv", text)
		}
		inputs = append(inputs, map[string]string{"from": text[:at], "path": text[at+1:]})
	}
	for _, text := range f.outputs {
		there, here, ok := strings.Cut(text, ":")
		if !ok {
			return usage("--out %s: want THERE:HERE, such as /out/sum:sum.txt", text)
		}
		outputs = append(outputs, map[string]string{"path": there, "to": here})
	}
	for _, text := range f.env {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return usage("-e %s: want NAME=VALUE", text)
		}
		env[name] = value
	}
	doc["inputs"], doc["outputs"], doc["env"] = inputs, outputs, env
	return nil
}

func (a *app) jobCommand() *cobra.Command {
	var follow following
	cmd := &cobra.Command{
		Use: "job FILE", Short: "Submit a job file (YAML or JSON; - reads standard input)",
		Long: `Submit a job file. Its inputs are uploaded to the local agent first; the job's
id is printed. With --wait the command ends with the job and writes its outputs
beside the job file.`,
		Example: "  submit job pi.yaml\n  submit job pi.yaml --wait\n  submit describe mfrg -o json | submit job - --parsable",
		Args:    exactly(1, "one job file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, folder, err := a.loadFile(args[0])
			if err != nil {
				return err
			}
			follow.folder = folder
			return a.submit(cmd.Context(), plan, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow.wait, "wait", "w", false, "wait for the end and write the outputs")
	follow.flags(cmd)
	return cmd
}

// loadFile reads a job file and gives its folder.
func (a *app) loadFile(name string) (*jobfile.Plan, string, error) {
	const maxJobFile = 64<<20 + 1 // jobfile refuses what is longer
	folder, shown := filepath.Dir(name), filepath.Base(name)
	source := a.in
	if name == "-" {
		folder, shown = ".", "standard input"
	} else {
		file, err := os.Open(filepath.Clean(name))
		if err != nil {
			return nil, "", usage("read job file: %w", err)
		}
		defer func() { _ = file.Close() }() // only read from
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, maxJobFile))
	if err != nil {
		return nil, "", usage("read job file: %w", err)
	}
	plan, err := jobfile.Load(data, folder, jobfile.Options{Name: shown, Now: a.now(), Runtime: a.config.Runtime})
	return plan, folder, err
}

// upload stores what a plan needs and gives the job.
func (a *app) upload(ctx context.Context, plan *jobfile.Plan) (grid.Job, error) {
	for _, note := range plan.File.Notes {
		a.say("%s", note)
	}
	if err := plan.Complete(func(ref jobfile.Ref) (grid.JobID, error) { return a.findNamed(ctx, ref) }); err != nil {
		return grid.Job{}, err
	}
	if err := a.warnOfClocks(ctx, plan.File.Spec.Window); err != nil {
		return grid.Job{}, err
	}
	stored := make([]jobfile.Stored, 0, len(plan.Sources))
	var total int64
	for i, source := range plan.Sources {
		if a.terminal {
			_, _ = fmt.Fprintf(a.err, "\r\x1b[2Kuploading %d of %d", i+1, len(plan.Sources)) // a picture
		}
		ref, err := a.store(ctx, source)
		if err != nil {
			return grid.Job{}, err
		}
		total += ref.Bytes
		stored = append(stored, jobfile.Stored(ref))
	}
	if a.terminal && len(stored) > 0 {
		_, _ = fmt.Fprintf(a.err, "\r\x1b[2K") // a picture
		a.say("uploaded %s", grid.FormatBytes(total))
	}
	return plan.Job(stored)
}

func (a *app) store(ctx context.Context, source jobfile.Source) (view.DataRef, error) {
	if source.CID != "" {
		ref, err := a.client.StatData(ctx, source.CID)
		if errors.Is(err, view.ErrNotFound) {
			return ref, usage("input cid:%s: the agent no longer holds it; name the file instead", source.CID)
		}
		return ref, err
	}
	body, err := source.Open()
	if err != nil {
		return view.DataRef{}, fmt.Errorf("upload input: %w", err)
	}
	defer func() { _ = body.Close() }() // only read from
	ref, err := a.client.PutData(ctx, source.Dir, body)
	if err != nil {
		return ref, fmt.Errorf("upload %s: %w", source.Path, err)
	}
	return ref, nil
}

// hand uploads and submits, to an agent of the right domain. It also tells of how many
// tasks the job is.
func (a *app) hand(ctx context.Context, plan *jobfile.Plan) (grid.JobID, uint32, error) {
	if err := a.checkDomain(ctx); err != nil {
		return "", 0, err
	}
	job, err := a.upload(ctx, plan)
	if err != nil {
		return "", 0, err
	}
	id, err := a.client.Submit(ctx, job)
	return id, job.Count, err
}

// submit uploads, submits and follows as asked.
func (a *app) submit(ctx context.Context, plan *jobfile.Plan, f following) error {
	id, count, err := a.hand(ctx, plan)
	if err != nil {
		return err
	}
	if !f.wait {
		if f.noWait {
			if err := a.awaitPlacement(ctx, id, f); err != nil {
				return err
			}
		}
		return a.showSubmitted(ctx, id)
	}
	if a.parsable {
		if err := a.show(result{names: []string{string(id)}}); err != nil {
			return err
		}
	} else {
		a.say("job %s submitted: %d %s", id, count, plural(count, "task"))
	}
	return a.finish(ctx, id, f)
}

func plural(n uint32, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func (a *app) showSubmitted(ctx context.Context, id grid.JobID) error {
	r := result{value: map[string]string{"id": string(id)}, names: []string{string(id)}}
	if !a.parsable && (a.config.Output == "json" || a.config.Output == "yaml") {
		detail, err := a.client.Job(ctx, id)
		if err != nil {
			return err
		}
		r.value = detail.Status
	}
	r.table = func(t *table) { t.row(string(id)) }
	if err := a.show(r); err != nil {
		return err
	}
	if !a.parsable {
		a.say("`submit wait %s` waits for it, `submit why %s` shows who offered.", id, id)
	}
	return nil
}
