package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
)

const runLong = `Run one program on the mesh and wait for it.

With --wasm the program is a WASI preview 1 module, and what stands behind --
are its arguments. Without it, what stands behind -- is a command; sites run
commands only where their owner allows it.

A module's clock does not tell the time: it starts at 2022-01-01 00:00 UTC and advances by
what the program does, and its random numbers are the same in every attempt, so that all
attempts of a task compute the same. A program that needs the time takes it as an argument;
commands see the site's clock.

Inputs and outputs are given as HERE:THERE and THERE:HERE; paths on the site are
absolute. When the program has ended, its output is printed, its outputs are
written and its exit code becomes ours. An interrupt detaches: the job goes on.`

// runFlags are the flags of run, which become a job file.
type runFlags struct {
	name, wasm, runtime, limit, ttl, unattended, mapKind string
	cpus, gflops, memory, disk, bandwidth                string

	inputs, outputs, env, items []string

	count   uint32
	detach  bool
	placing placingFlags
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	follow := following{folder: ".", printLogs: true}
	cmd := &cobra.Command{
		Use: "run [flags] [--wasm FILE] -- [CMD] ARGS", Short: "Run a program and wait for it",
		Long: runLong,
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
	flags.StringArrayVarP(&f.inputs, "input", "i", nil,
		"HERE:THERE, a file or folder and its path on the site")
	flags.StringArrayVar(&f.outputs, "out", nil,
		"THERE:HERE, a path on the site and where to write it")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "NAME=VALUE")
	flags.StringArrayVar(&f.items, "item", nil, "one task for each; {{item}} stands for it")
	flags.Uint32Var(&f.count, "count", 0, "number of tasks; {{index}} tells them apart")
	flags.StringVar(&f.cpus, "cpus", "", "cores of a task, 0.5 is half of one (default 1)")
	flags.StringVar(&f.gflops, "gflops", "", "computation of a task (default 1)")
	flags.StringVar(&f.memory, "memory", "", "memory of a task, such as 512MiB (default 128MiB)")
	flags.StringVar(&f.disk, "disk", "", "scratch space of a task (default 64MiB)")
	flags.StringVar(&f.bandwidth, "bandwidth", "",
		"of the site's link, for a task's data, such as 20Mbit/s (default none)")
	flags.StringVar(&f.runtime, "runtime", "", "estimate of a task's running time, such as 10m")
	flags.StringVar(&f.limit, "limit", "", "stop a task after this long")
	flags.StringVar(&f.ttl, "ttl", "", "how long to wait for answers (default 1s)")
	flags.StringVar(&f.unattended, "unattended", "", "without this machine: freeze, finish or stop")
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
