package tes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/tes"
)

// point is something that the specification, or what real clients expect of it, says.
type point struct {
	says  string
	check func(*testing.T, *live)
}

// TestPoints walks through the specification against a real agent, from outside.
func TestPoints(t *testing.T) {
	t.Parallel()
	l := startAgent(t)
	t.Run("points", func(t *testing.T) {
		all := slices.Concat(servicePoints(), createPoints(), sandboxPoints(), runPoints(), filePoints(),
			viewPoints(), listPoints(), cancelPoints(), refusedPoints())
		const least = 45
		if len(all) < least {
			t.Errorf("%d points, want %d", len(all), least)
		}
		for _, p := range all {
			t.Run(p.says, func(t *testing.T) {
				t.Parallel()
				p.check(t, l)
			})
		}
	})
	t.Run("tasks are kept when the agent is killed", l.survives)
}

func servicePoints() []point {
	return []point{
		{"service-info names the type and its version", func(t *testing.T, l *live) {
			var info tes.TesServiceInfo
			l.get(t, base+"/service-info", "tesServiceInfo", &info)
			if info.Type.Group != "org.ga4gh" || info.Type.Artifact != tes.Tes ||
				!strings.HasPrefix(info.Type.Version, "1.1") || info.Organization.Name == "" {
				t.Errorf("it is %s", dump(info))
			}
		}},
		{"service-info lists the storage and the backend parameters", func(t *testing.T, l *live) {
			var info tes.TesServiceInfo
			l.get(t, base+"/service-info", "tesServiceInfo", &info)
			if info.Storage == nil || !slices.Equal(*info.Storage, []string{"file://" + l.files}) ||
				info.TesResourcesBackendParameters == nil ||
				!slices.Contains(*info.TesResourcesBackendParameters, "runtime") {
				t.Errorf("it is %s", dump(info))
			}
		}},
		{"the older base path serves the same", func(t *testing.T, l *live) {
			var info tes.TesServiceInfo
			l.get(t, "/v1/service-info", "tesServiceInfo", &info)
			id := l.create(t, idle("name", "older"))
			if status, text := l.ask(t, http.MethodGet, "/v1/tasks/"+id, nil); status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		}},
		{
			"empty basic authentication is taken where none is asked for",
			func(t *testing.T, l *live) {
				status, text := l.ask(t, http.MethodGet, base+"/tasks", nil, "Authorization", "Basic Og==")
				if status != http.StatusOK {
					t.Errorf("%d %s", status, text)
				}
			},
		},
		{"an unknown path is a problem", func(t *testing.T, l *live) {
			status, text := l.ask(t, http.MethodGet, base+"/nothing", nil)
			refused(t, status, text, http.StatusNotFound, "")
		}},
		{"another method is a problem", func(t *testing.T, l *live) {
			status, text := l.ask(t, http.MethodDelete, base+"/tasks", nil)
			refused(t, status, text, http.StatusMethodNotAllowed, "")
		}},
	}
}

func createPoints() []point {
	return []point{
		{"an ID has neither colon nor slash", func(t *testing.T, l *live) {
			if id := l.create(t, idle()); !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(id) {
				t.Errorf("it is %q", id)
			}
		}},
		{"create answers before a task is placed", func(t *testing.T, l *live) {
			id := l.create(t, idle())
			if got := l.state(t, id); got != tes.QUEUED && got != tes.SYSTEMERROR {
				t.Errorf("it is %s", got)
			}
		}},
		{"a task that no site can ever run fails, and its log says why", func(t *testing.T, l *live) {
			id := l.create(t, idle())
			done := l.await(t, id, tes.SYSTEMERROR)
			if logs := *done.Logs; len(logs) == 0 || logs[0].SystemLogs == nil {
				t.Errorf("its logs are %s", dump(logs))
			}
		}},
		{"what the server sets is not taken from the client", func(t *testing.T, l *live) {
			id := l.create(t, idle("id", "mine", "state", "COMPLETE",
				"creation_time", "2001-01-01T00:00:00Z", "logs", []any{}))
			got := l.full(t, id)
			at, err := time.Parse(time.RFC3339, *got.CreationTime)
			if id == "mine" || *got.Id != id || err != nil || time.Since(at) > time.Hour {
				t.Errorf("it is %s: %v", dump(got), err)
			}
		}},
		{"the document comes back as it was given", func(t *testing.T, l *live) {
			id := l.create(t, idle("name", "a name", "description", "what it is for",
				"tags", task{"WORKFLOW_ID": "w1", "empty": ""}, "volumes", []string{"/vol/A"},
				"resources", task{
					"cpu_cores": 1, "ram_gb": 0.25, "disk_gb": 0.5, "preemptible": true,
					"zones": []string{"z"},
				}))
			got := l.full(t, id)
			if *got.Name != "a name" || *got.Description != "what it is for" ||
				(*got.Tags)["WORKFLOW_ID"] != "w1" || len(*got.Tags) != 2 ||
				!slices.Equal(*got.Volumes, []string{"/vol/A"}) || *got.Resources.RamGb != 0.25 ||
				!*got.Resources.Preemptible || got.Executors[0].Command[2] != "true" {
				t.Errorf("it is %s", dump(got))
			}
		}},
		{"the type of a file defaults to FILE", func(t *testing.T, l *live) {
			id := l.create(t, idle(
				"inputs", []any{task{"path": "/in", "content": "x"}},
				"outputs", []any{task{"path": "/out", "url": l.url("type/out")}}))
			got := l.full(t, id)
			if *(*got.Inputs)[0].Type != tes.FILE || *(*got.Outputs)[0].Type != tes.FILE {
				t.Errorf("it is %s", dump(got))
			}
		}},
		{"strict backend parameters must be known", func(t *testing.T, l *live) {
			status, text := l.post(t, runs("true", "resources", task{
				"backend_parameters": task{"VmSize": "big"}, "backend_parameters_strict": true,
			}))
			refused(t, status, text, http.StatusBadRequest, "resources.backend_parameters.VmSize")
		}},
	}
}

// newest is the log of a task's last attempt.
func newest(t *testing.T, done tes.TesTask) tes.TesTaskLog {
	t.Helper()
	if done.Logs == nil || len(*done.Logs) == 0 {
		t.Fatalf("no log in %s", dump(done))
	}
	return (*done.Logs)[len(*done.Logs)-1]
}

// parts are the executors of the task that most points look at, and what each prints.
func parts() []struct {
	says  string
	part  task
	code  int32
	print string
} {
	return []struct {
		says  string
		part  task
		code  int32
		print string
	}{
		{
			"a script below /tmp is there",
			task{"image": "any", "command": []string{"sh", "/tmp/run.sh"}},
			0, "from tmp\n",
		},
		{
			"a working directory at the root is made",
			shell("pwd; echo x >y && cat y", "workdir", "/mnt-work/"), 0, "/mnt-work\nx\n",
		},
		{
			"a working directory may hold inputs",
			shell("cat a; echo b >b && cat b", "workdir", "/inputs/deep"), 0, "Ab\n",
		},
		{"a volume is empty", shell("ls -A /vol/A; echo 1 >/vol/A/x"), 0, ""},
		{"a volume is shared by executors", shell("cat /vol/A/x"), 0, "1\n"},
		{
			"arguments and variables are passed as they are", task{
				"image": "any", "command": []string{
					"sh", "-c", `printf '%s|' "$@" "$V"`, "sh", "it's", "$HOME", "{{index}}", "two words", "",
				},
				"env": task{"V": "a'b \"c\" $(d)\n", "X.Y": "dots"},
			}, 0, "it's|$HOME|{{index}}|two words||a'b \"c\" $(d)\n|",
		},
		{
			"standard input is a file",
			task{"image": "any", "command": []string{"wc", "-c"}, "stdin": "/data/in"},
			0, "5\n",
		},
		{
			"standard input may be /dev/null",
			task{"image": "any", "command": []string{"cat"}, "stdin": "/dev/null"},
			0, "",
		},
		{
			"standard output and error are files, and in the log",
			shell("echo to out; echo to err >&2", "stdout", "/logs/out", "stderr", "/logs/err"), 0, "to out\n",
		},
		{
			"ignore_error goes on, and the code is kept",
			shell("echo bad; exit 7", "ignore_error", true), 7, "bad\n",
		},
		{
			"a program that is not there has the code of a shell",
			task{"image": "any", "command": []string{"no-such-program"}, "ignore_error": true},
			127, "",
		},
		{
			"an executor that is killed has the code of a shell",
			shell("kill -9 $$", "ignore_error", true), 128 + 9, "",
		},
		{"content makes the url ignored", shell("cat /in/content"), 0, "text"},
		{"content of 128 KiB is taken", shell("wc -c </in/long"), 0, fmt.Sprintln(128 << 10)},
		{"file:// and a path alone are read", shell("cat /in/1 /in/2"), 0, "AB"},
		{"a directory is read", shell("cd /in/tree && cat a b/c && ls"), 0, "ACa\nb\n"},
		{
			"paths are private to a task, and no others are there",
			shell("ls -A /tmp /home 2>/dev/null; ls -A /in/tree/.. | head -n 1"), 0, "/tmp:\nrun.sh\n1\n",
		},
		{"outputs are written", shell("mkdir -p /out/new && cp -r /in/tree/. /out/new/ && printf 1234 >/o/x; " +
			"mkdir /w/d; touch /w/a.txt /w/b.bin /w/d/c.txt '/w/it s.txt'"), 0, ""},
	}
}

// whole is the task of these parts, which runs once.
func (l *live) whole(t *testing.T) tes.TesTask {
	t.Helper()
	l.once.Do(func() {
		l.put(t, "tree/in/a", "A")
		l.put(t, "tree/in/b/c", "C")
		l.put(t, "write/out", "what was there before")
		spaced := strings.ReplaceAll(l.put(t, "read/a b", "A"), " ", "%20")
		plain := strings.TrimPrefix(l.put(t, "read/b", "B"), "file://")
		var executors []any
		for _, p := range parts() {
			executors = append(executors, p.part)
		}
		l.wholeID = l.create(t, task{
			"executors": executors, "volumes": []string{"/vol/A/", "/w"},
			"resources": task{"backend_parameters": task{"VmSize": "big", "RunTime": "5m"}},
			"inputs": []any{
				task{"path": "/tmp/run.sh", "content": "echo from tmp"},
				task{"path": "/inputs/deep/a", "content": "A"},
				task{"path": "/data/in", "content": "12345"},
				task{"path": "/in/content", "content": "text", "url": "s3://nowhere/x"},
				task{"path": "/in/long", "content": strings.Repeat("ä", 64<<10)},
				task{"path": "/in/1", "url": spaced},
				task{"path": "/in/2", "url": plain},
				task{"path": "/in/tree", "url": l.url("tree/in"), "type": "DIRECTORY"},
				task{"path": "/out/given", "content": "an input in an output"},
			},
			"outputs": []any{
				task{"path": "/logs/out", "url": l.url("streams/out")},
				task{"path": "/logs/err", "url": l.url("streams/err")},
				task{"path": "/out", "url": l.url("tree/out/"), "type": "DIRECTORY"},
				task{"path": "/o/x", "url": l.url("write/out")},
				task{"path": "/w/*.txt", "path_prefix": "/w", "url": l.url("wild")},
				task{"path": "/w/?/[a-c].t*", "path_prefix": "/w/", "url": l.url("wild2")},
			},
		})
	})
	return l.await(t, l.wholeID, tes.COMPLETE)
}

func sandboxPoints() []point {
	var points []point
	for i, p := range parts() {
		points = append(points, point{p.says, func(t *testing.T, l *live) {
			ran := newest(t, l.whole(t)).Logs
			if len(ran) != len(parts()) {
				t.Fatalf("%d executors ran, want %d", len(ran), len(parts()))
			}
			if ran[i].ExitCode != p.code || *ran[i].Stdout != p.print {
				t.Errorf("it is %s, want code %d and %q", dump(ran[i]), p.code, p.print)
			}
		}})
	}
	return append(points, []point{
		{"paths of the system are refused", func(t *testing.T, l *live) {
			for _, dir := range []string{"/proc", "/dev/x", "/sys/x", "/usr/bin/x", "/etc/passwd", "/lib/x"} {
				status, text := l.post(t, runs("true", "inputs", []any{task{"path": dir, "content": "x"}}))
				refused(t, status, text, http.StatusBadRequest, "inputs[0].path")
			}
		}},
		{"paths that lead out of the sandbox are refused", func(t *testing.T, l *live) {
			for field, request := range map[string]task{
				"inputs[0].path":      runs("true", "inputs", []any{task{"path": "/a/../../b", "content": ""}}),
				"outputs[0].path":     runs("true", "outputs", []any{task{"path": "/..", "url": l.url("x")}}),
				"volumes[0]":          runs("true", "volumes", []string{"relative"}),
				"executors[0].stdout": {"executors": []any{shell("true", "stdout", "../x")}},
				"executors[0].workdir": {
					"executors": []any{shell("true", "workdir", "/a/./b")},
				},
			} {
				status, text := l.post(t, request)
				refused(t, status, text, http.StatusBadRequest, field)
			}
		}},
		{"an output in an input is refused", func(t *testing.T, l *live) {
			status, text := l.post(t, runs("true", "inputs", []any{task{"path": "/d", "content": ""}},
				"outputs", []any{task{"path": "/d/x", "url": l.url("x")}}))
			refused(t, status, text, http.StatusBadRequest, "outputs[0].path")
		}},
	}...)
}

func runPoints() []point {
	return []point{
		{"executors run in order, each with its times", func(t *testing.T, l *live) {
			var before time.Time
			for _, one := range newest(t, l.whole(t)).Logs {
				start, err := time.Parse(time.RFC3339, *one.StartTime)
				end, wrong := time.Parse(time.RFC3339, *one.EndTime)
				if err != nil || wrong != nil || start.Before(before) || end.Before(start) {
					t.Errorf("one is %s", dump(one))
				}
				before = end
			}
		}},
		{
			"the first error stops a task, and an output that is there is written",
			func(t *testing.T, l *live) {
				done := l.await(t, l.create(t, task{
					"name": "stated",
					"executors": []any{
						shell("seq 100000; echo >/o/x"), shell("exit 7"), shell("echo never"),
					},
					"outputs": []any{
						task{"path": "/o/x", "url": l.url("failed")}, task{"path": "/o/y", "url": l.url("never")},
					},
				}), tes.EXECUTORERROR)
				ran := newest(t, done).Logs
				if len(ran) != 2 || ran[1].ExitCode != 7 || l.read(t, "failed") != "\n" {
					t.Errorf("they are %s", dump(ran))
				}
				long := *ran[0].Stdout
				if len(long) > 10<<10 || !strings.HasSuffix(long, "\n100000\n") {
					t.Errorf("its log has %d bytes that end in %q", len(long), long[max(0, len(long)-20):])
				}
				if got := idsOf(l.list(t, "name_prefix=stated&state=EXECUTOR_ERROR")); len(got) != 1 {
					t.Errorf("found %v by its state", got)
				}
				if got := idsOf(l.list(t, "name_prefix=stated&state=QUEUED")); got != nil {
					t.Errorf("found %v by another state", got)
				}
			},
		},
		{"an output that is not written is a system error", func(t *testing.T, l *live) {
			done := l.await(t, l.create(t, runs("true",
				"outputs", []any{task{"path": "/none", "url": l.url("never")}})), tes.SYSTEMERROR)
			if notes := newest(t, done).SystemLogs; notes == nil ||
				!strings.Contains(strings.Join(*notes, " "), "/none") {
				t.Errorf("its logs are %s", dump(done.Logs))
			}
		}},
		{"an attempt's log tells where it ran, as strings", func(t *testing.T, l *live) {
			one := newest(t, l.whole(t))
			facts := *one.Metadata
			for _, name := range []string{"site", "site_name", "domain", "distance", "attempt", "job"} {
				if facts[name] == "" {
					t.Errorf("no %s in %v", name, facts)
				}
			}
			if facts["domain"] != "home" || one.StartTime == nil || one.EndTime == nil {
				t.Errorf("it is %s", dump(one))
			}
		}},
		{"unknown backend parameters are left out and noted", func(t *testing.T, l *live) {
			got := l.whole(t)
			if p := *got.Resources.BackendParameters; len(p) != 1 || p["RunTime"] != "5m" {
				t.Errorf("it is %s", dump(got.Resources))
			}
			if notes := newest(t, got).SystemLogs; notes == nil ||
				!strings.Contains(strings.Join(*notes, " "), "VmSize") {
				t.Errorf("its logs are %s", dump(got.Logs))
			}
		}},
	}
}

// wrote lists what a task's log has of the outputs below a path.
func wrote(t *testing.T, l *live, below string) (list []string) {
	t.Helper()
	for _, o := range newest(t, l.whole(t)).Outputs {
		if strings.HasPrefix(o.Path, below) {
			list = append(list, o.Path+" "+o.SizeBytes+" "+strings.TrimPrefix(o.Url, l.url("")))
		}
	}
	slices.Sort(list)
	return list
}

func filePoints() []point {
	return []point{
		{"a directory is written, without the inputs in it", func(t *testing.T, l *live) {
			got := wrote(t, l, "/out/")
			want := []string{"/out/new/a 1 /tree/out/new/a", "/out/new/b/c 1 /tree/out/new/b/c"}
			if !slices.Equal(got, want) || l.read(t, "tree/out/new/a")+l.read(t, "tree/out/new/b/c") != "AC" {
				t.Errorf("the log has %q, want %q", got, want)
			}
		}},
		{"an output is at its url, with its size as a string", func(t *testing.T, l *live) {
			got := wrote(t, l, "/o/")
			if want := []string{"/o/x 4 /write/out"}; !slices.Equal(got, want) ||
				l.read(t, "write/out") != "1234" {
				t.Errorf("the log has %q, want %q", got, want)
			}
		}},
		{"streams are outputs like others", func(t *testing.T, l *live) {
			l.whole(t)
			if l.read(t, "streams/out") != "to out\n" || l.read(t, "streams/err") != "to err\n" {
				t.Error("they are others")
			}
		}},
		{"wildcards select outputs", func(t *testing.T, l *live) {
			got := wrote(t, l, "/w/")
			want := []string{
				"/w/a.txt 0 /wild/a.txt", "/w/d/c.txt 0 /wild2/d/c.txt", "/w/it s.txt 0 /wild/it%20s.txt",
			}
			if !slices.Equal(got, want) {
				t.Errorf("the log has %q, want %q", got, want)
			}
			l.read(t, "wild/it s.txt")
		}},
		{"wildcards need a path_prefix", func(t *testing.T, l *live) {
			status, text := l.post(t, runs("true",
				"outputs", []any{task{"path": "/o/*", "url": l.url("wild")}}))
			refused(t, status, text, http.StatusBadRequest, "outputs[0].path_prefix")
		}},
		{"files outside of the directories are refused", func(t *testing.T, l *live) {
			for _, address := range []string{
				"file:///etc/passwd", l.url("../x"), l.files + "x", l.url("a/../../../x"), "/",
				"file://elsewhere" + l.files + "/x", "s3://bucket/x", "http://127.0.0.1/x", "file:x", ":",
			} {
				status, text := l.post(t, runs("true", "inputs", []any{task{"path": "/i", "url": address}}))
				refused(t, status, text, http.StatusBadRequest, "inputs[0].url")
				status, text = l.post(t, runs("true", "outputs", []any{task{"path": "/o", "url": address}}))
				refused(t, status, text, http.StatusBadRequest, "outputs[0].url")
			}
		}},
		{"links that lead out are refused", func(t *testing.T, l *live) {
			l.put(t, "links/x", "")
			if err := os.Symlink("/etc", filepath.Join(l.files, "links/etc")); err != nil {
				t.Fatal(err)
			}
			status, text := l.post(t, runs("true",
				"inputs", []any{task{"path": "/i", "url": l.url("links/etc/passwd")}}))
			refused(t, status, text, http.StatusBadRequest, "inputs[0].url")
			status, text = l.post(t, runs("true",
				"outputs", []any{task{"path": "/o", "url": l.url("links/etc/new/x")}}))
			refused(t, status, text, http.StatusBadRequest, "outputs[0].url")
		}},
		{"an input that is not there is refused", func(t *testing.T, l *live) {
			status, text := l.post(t, runs("true", "inputs", []any{task{"path": "/i", "url": l.url("none")}}))
			refused(t, status, text, http.StatusBadRequest, "inputs[0].url")
		}},
	}
}

func viewPoints() []point {
	return []point{
		{"MINIMAL is id and state, and the default", func(t *testing.T, l *live) {
			l.whole(t)
			id := l.wholeID
			for _, view := range []string{"", "?view=MINIMAL", "?view="} {
				_, text := l.ask(t, http.MethodGet, base+"/tasks/"+id+view, nil)
				var m map[string]any
				if err := json.Unmarshal(text, &m); err != nil || len(m) != 2 || m["id"] != id || m["state"] == nil {
					t.Errorf("%q: %s", view, text)
				}
			}
		}},
		{"BASIC leaves content, streams and system logs out", func(t *testing.T, l *live) {
			l.whole(t)
			var got tes.TesTask
			l.get(t, base+"/tasks/"+l.wholeID+"?view=BASIC", "tesTask", &got)
			one := newest(t, got)
			if (*got.Inputs)[0].Content != nil || one.SystemLogs != nil || one.Logs[0].Stdout != nil ||
				one.Logs[0].Stderr != nil || one.Logs[0].StartTime == nil || one.Metadata == nil {
				t.Errorf("it is %s", dump(got))
			}
		}},
		{"FULL has everything", func(t *testing.T, l *live) {
			got := l.whole(t)
			one := newest(t, got)
			if *(*got.Inputs)[0].Content != "echo from tmp" || len(*one.SystemLogs) != 1 ||
				*one.Logs[8].Stdout != "to out\n" || *one.Logs[8].Stderr != "to err\n" {
				t.Errorf("it is %s", dump(got))
			}
		}},
		{"another view is refused", func(t *testing.T, l *live) {
			id := l.create(t, idle())
			for _, path := range []string{"/tasks/" + id, "/tasks"} {
				status, text := l.ask(t, http.MethodGet, base+path+"?view=full", nil)
				refused(t, status, text, http.StatusBadRequest, "view")
			}
		}},
		{"an unknown ID is not found, whatever it looks like", func(t *testing.T, l *live) {
			for _, id := range []string{"nothing", "a:b", "%20", "..%2f..%2fx", strings.Repeat("x", 5000), "%00"} {
				status, text := l.ask(t, http.MethodGet, base+"/tasks/"+id+"?view=FULL", nil)
				if status != http.StatusNotFound {
					t.Errorf("%.20q: %d %s", id, status, text)
				}
			}
			status, text := l.ask(t, http.MethodPost, base+"/tasks/nothing:cancel", nil)
			refused(t, status, text, http.StatusNotFound, "id")
		}},
	}
}

// list is a page in the view BASIC.
func (l *live) list(t *testing.T, parameters string) (page tes.TesListTasksResponse) {
	t.Helper()
	l.get(t, base+"/tasks?view=BASIC&"+parameters, "tesListTasksResponse", &page)
	return page
}

func idsOf(page tes.TesListTasksResponse) (ids []string) {
	for _, one := range page.Tasks {
		ids = append(ids, *one.Id)
	}
	return ids
}

func listPoints() []point {
	return []point{
		{"pages are newest first, and stay as they are while tasks are added", func(t *testing.T, l *live) {
			var made []string
			for range 5 {
				made = append(made, l.create(t, idle("name", "paged")))
			}
			slices.Reverse(made)
			var got []string
			token := ""
			for {
				page := l.list(t, "name_prefix=paged&page_size=2&page_token="+token)
				got = append(got, idsOf(page)...)
				l.create(t, idle("name", "paged"))
				if page.NextPageToken == nil {
					break
				}
				token = *page.NextPageToken
			}
			if !slices.Equal(got, made) {
				t.Errorf("listed %v, want %v", got, made)
			}
		}},
		{"a list is MINIMAL by default", func(t *testing.T, l *live) {
			l.create(t, idle("name", "listed"))
			_, text := l.ask(t, http.MethodGet, base+"/tasks?name_prefix=listed", nil)
			var page struct{ Tasks []map[string]any }
			if err := json.Unmarshal(text, &page); err != nil || len(page.Tasks) != 1 || len(page.Tasks[0]) != 2 {
				t.Errorf("%s", text)
			}
		}},
		{"an empty list is a list", func(t *testing.T, l *live) {
			_, text := l.ask(t, http.MethodGet, base+"/tasks?name_prefix=no-such-name", nil)
			if string(text) != `{"tasks":[]}` {
				t.Errorf("%s", text)
			}
		}},
		{"names are found by their beginning", func(t *testing.T, l *live) {
			id := l.create(t, idle("name", "prefix-one"))
			l.create(t, idle("name", "other prefix-one"))
			if got := idsOf(l.list(t, "name_prefix=prefix-")); !slices.Equal(got, []string{id}) {
				t.Errorf("found %v", got)
			}
		}},
		{"tags are found by key and value", func(t *testing.T, l *live) {
			a := l.create(t, idle("tags", task{"points-tag": "bar", "baz": "bat"}))
			b := l.create(t, idle("tags", task{"points-tag": ""}))
			for parameters, want := range map[string][]string{
				"tag_key=points-tag":                                          {b, a},
				"tag_key=points-tag&tag_value=bar":                            {a},
				"tag_key=points-tag&tag_value=":                               {b, a},
				"tag_key=points-tag&tag_value=bat":                            nil,
				"tag_key=points-tag&tag_value=bar&tag_key=baz&tag_value=bat":  {a},
				"tag_key=points-tag&tag_value=bar&tag_key=none&tag_value=bat": nil,
			} {
				if got := idsOf(l.list(t, parameters)); !slices.Equal(got, want) {
					t.Errorf("%s: found %v, want %v", parameters, got, want)
				}
			}
		}},
		{"parameters of a list that make no sense are refused", func(t *testing.T, l *live) {
			for parameters, field := range map[string]string{
				"page_token=x": "page_token", "page_token=eA": "page_token", "page_size=2048": "page_size",
				"page_size=-1": "page_size", "page_size=x": "page_size", "state=DONE": "state",
				"tag_value=x": "tag_value", "page_size=99999999999999999999": "page_size",
			} {
				status, text := l.ask(t, http.MethodGet, base+"/tasks?"+parameters, nil)
				refused(t, status, text, http.StatusBadRequest, field)
			}
		}},
	}
}

func cancelPoints() []point {
	cancel := func(t *testing.T, l *live, id string) {
		t.Helper()
		status, text := l.ask(t, http.MethodPost, base+"/tasks/"+id+":cancel", nil)
		if status != http.StatusOK || string(text) != "{}\n" && string(text) != "{}" {
			t.Errorf("%d %q", status, text)
		}
	}
	return []point{
		{"cancel right after create wins", func(t *testing.T, l *live) {
			id := l.create(t, runs("echo >/o", "outputs", []any{task{"path": "/o", "url": l.url("cancelled")}}))
			cancel(t, l, id)
			if got := l.state(t, id); got != tes.CANCELING && got != tes.CANCELED {
				t.Errorf("it is %s", got)
			}
			l.await(t, id, tes.CANCELED)
			if _, err := os.Stat(filepath.Join(l.files, "cancelled")); err == nil {
				t.Error("its output was written")
			}
		}},
		{"a running task is cancelled", func(t *testing.T, l *live) {
			id := l.create(t, runs("sleep 1000"))
			l.await(t, id, tes.RUNNING)
			cancel(t, l, id)
			l.await(t, id, tes.CANCELED)
		}},
		{"an ended task stays as it is when cancelled", func(t *testing.T, l *live) {
			l.whole(t)
			id := l.wholeID
			cancel(t, l, id)
			if got := l.state(t, id); got != tes.COMPLETE {
				t.Errorf("it is %s", got)
			}
		}},
	}
}

func refusedPoints() []point {
	return []point{
		{"wrong shapes are refused with the field", func(t *testing.T, l *live) {
			for body, field := range map[string]string{
				``: "", `{`: "", `[]`: "", `null`: "executors", `{}`: "executors", `"x"`: "",
				`{"executors":[]}`: "executors",
				`{"executors":{}}`: "executors",
				`{"executors":[{"image":"any","command":"ls"}]}`:                                                       "executors.command",
				`{"executors":[{"image":"any"}]}`:                                                                      "executors[0].command",
				`{"executors":[{"image":"any","command":[]}]}`:                                                         "executors[0].command",
				`{"executors":[{"image":"any","command":["a\u0000b"]}]}`:                                               "executors[0].command",
				`{"executors":[{"command":["ls"]}]}`:                                                                   "executors[0].image",
				`{"executors":[{"image":"any","command":["ls"]}],"ouput":1}`:                                           "ouput",
				`{"executors":[{"image":"any","command":["ls"],"env":{"":"x"}}]}`:                                      "executors[0].env",
				`{"executors":[{"image":"any","command":["ls"]}],"inputs":[{"path":"/x"}]}`:                            "inputs[0].url",
				`{"executors":[{"image":"any","command":["ls"]}],"inputs":[{"path":"x","content":""}]}`:                "inputs[0].path",
				`{"executors":[{"image":"any","command":["ls"]}],"outputs":[{"path":"/x"}]}`:                           "outputs[0].url",
				`{"executors":[{"image":"any","command":["ls"]}],"inputs":[{"path":"/x","content":"","type":"LINK"}]}`: "inputs[0].type",
				`{"executors":[{"image":"any","command":["ls"]}]} {}`:                                                  "",
			} {
				status, text := l.ask(t, http.MethodPost, base+"/tasks", []byte(body))
				if status != http.StatusBadRequest {
					t.Errorf("%s: %d %s", body, status, text)
				}
				p := refused(t, status, text, http.StatusBadRequest, field)
				if field == "" && p.Remedy == "" {
					t.Errorf("%s: no remedy: %s", body, text)
				}
			}
		}},
		{"an image that no site has is refused with what to do", func(t *testing.T, l *live) {
			status, text := l.post(t, task{"executors": []any{
				shell("true"), task{"image": "ubuntu", "command": []string{"true"}},
			}})
			p := refused(t, status, text, http.StatusBadRequest, "executors[1].image")
			if !strings.Contains(p.Remedy, "tes.images") || !strings.Contains(p.Detail, "ubuntu") {
				t.Errorf("%s", text)
			}
		}},
		{"absurd amounts are refused", func(t *testing.T, l *live) {
			for field, resources := range map[string]task{
				"resources.cpu_cores":                  {"cpu_cores": -1},
				"resources.ram_gb":                     {"ram_gb": 1e300},
				"resources.disk_gb":                    {"disk_gb": -0.5},
				"resources.backend_parameters.runtime": {"backend_parameters": task{"runtime": "soon"}},
			} {
				status, text := l.post(t, runs("true", "resources", resources))
				refused(t, status, text, http.StatusBadRequest, field)
			}
		}},
		{"an absurdly large task is refused", func(t *testing.T, l *live) {
			status, text := l.post(t, runs("true", "inputs", []any{
				task{"path": "/x", "content": strings.Repeat("x", 17<<20)},
			}))
			refused(t, status, text, http.StatusRequestEntityTooLarge, "")
		}},
		{"an answer to create takes milliseconds, whatever its inputs", func(t *testing.T, l *live) {
			file := filepath.Join(l.files, "large")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			const size = 256 << 20 // of zeros, which take no space
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			id := l.create(t, runs("true", "inputs", []any{task{"path": "/x", "url": l.url("large")}}))
			if got := l.state(t, id); got != tes.QUEUED {
				t.Errorf("it is %s: its input was read before the answer", got)
			}
			status, text := l.ask(t, http.MethodPost, base+"/tasks/"+id+":cancel", nil)
			if status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
			l.await(t, id, tes.CANCELED)
		}},
	}
}

// survives kills the agent while a task runs, and wants everything to be there afterwards.
func (l *live) survives(t *testing.T) {
	before := dump(l.whole(t))
	id := l.create(t, runs("test -e /none || sleep 2; echo on >/o", "name", "through",
		"outputs", []any{task{"path": "/o", "url": l.url("through")}}))
	l.await(t, id, tes.RUNNING)
	agent := l.mesh.Submitter()
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-agent.Exited
	if err := l.mesh.Launch(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	if err := agent.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.client = clientOf(agent.Config.API.Socket)
	if got := dump(l.full(t, l.wholeID)); got != before {
		t.Errorf("the ended task is %s, and was %s", got, before)
	}
	done := l.await(t, id, tes.COMPLETE)
	if len(*done.Logs) < 2 || l.read(t, "through") != "on\n" {
		t.Errorf("its logs are %s, want one for each attempt", dump(done.Logs))
	}
}
