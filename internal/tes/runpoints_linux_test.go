package tes_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/tes"
)

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
					"sh", "-c", `printf '%s|' "$@" "$V"`, "sh", "it's", "$HOME", "{{index}}",
					"two words", "",
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
			shell("echo to out; echo to err >&2", "stdout", "/logs/out", "stderr", "/logs/err"), 0,
			"to out\n",
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
			shell("ls -A /tmp /home 2>/dev/null; ls -A /in/tree/.. | head -n 1"), 0,
			"/tmp:\nrun.sh\n1\n",
		},
		{"outputs are written", shell("mkdir -p /out/new && cp -r /in/tree/. /out/new/ && " +
			"printf 1234 >/o/x; mkdir /w/d; touch /w/a.txt /w/b.bin /w/d/c.txt " +
			"'/w/it s.txt'"), 0, ""},
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
			for _, dir := range []string{
				"/proc", "/dev/x", "/sys/x", "/usr/bin/x", "/etc/passwd", "/lib/x", "/.tes/run",
			} {
				status, text := l.post(t, idle("inputs", []any{task{"path": dir, "content": "x"}}))
				refused(t, status, text, http.StatusBadRequest, "inputs[0].path")
			}
		}},
		{"paths that lead out of the sandbox are refused", func(t *testing.T, l *live) {
			for field, request := range map[string]task{
				"inputs[0].path": idle(
					"inputs", []any{task{"path": "/a/../../b", "content": ""}},
				),
				"outputs[0].path": idle(
					"outputs", []any{task{"path": "/..", "url": l.url("x")}},
				),
				"volumes[0]":          idle("volumes", []string{"relative"}),
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
			status, text := l.post(t, idle("inputs", []any{task{"path": "/d", "content": ""}},
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
						task{"path": "/o/x", "url": l.url("failed")},
						task{"path": "/o/y", "url": l.url("never")},
					},
				}), tes.EXECUTORERROR)
				ran := newest(t, done).Logs
				if len(ran) != 2 || ran[1].ExitCode != 7 || l.read(t, "failed") != "\n" {
					t.Errorf("they are %s", dump(ran))
				}
				long := *ran[0].Stdout
				if len(long) > 10<<10 || !strings.HasSuffix(long, "\n100000\n") {
					t.Errorf("its log has %d bytes and is %.20q...", len(long), long)
				}
				const named = "name_prefix=stated&state="
				if got := idsOf(l.list(t, named+"EXECUTOR_ERROR")); len(got) != 1 {
					t.Errorf("found %v by its state", got)
				}
				if got := idsOf(l.list(t, named+"QUEUED")); got != nil {
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
			for _, name := range []string{
				"site", "site_name", "domain", "distance", "attempt", "job",
			} {
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
			text := l.read(t, "tree/out/new/a") + l.read(t, "tree/out/new/b/c")
			if !slices.Equal(got, want) || text != "AC" {
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
				"/w/a.txt 0 /wild/a.txt", "/w/d/c.txt 0 /wild2/d/c.txt",
				"/w/it s.txt 0 /wild/it%20s.txt",
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
				"file://elsewhere" + l.files + "/x", "s3://bucket/x", "http://127.0.0.1/x",
				"file:x", ":",
			} {
				status, text := l.post(t, idle("inputs", []any{task{"path": "/i", "url": address}}))
				refused(t, status, text, http.StatusBadRequest, "inputs[0].url")
				status, text = l.post(t, idle("outputs", []any{task{"path": "/o", "url": address}}))
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
			inputs := []any{task{"path": "/i", "url": l.url("none")}}
			status, text := l.post(t, idle("inputs", inputs))
			refused(t, status, text, http.StatusBadRequest, "inputs[0].url")
		}},
	}
}
