package tes_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/tes"
)

func viewPoints() []point {
	return []point{
		{"MINIMAL is id and state, and the default", func(t *testing.T, l *live) {
			l.whole(t)
			id := l.wholeID
			for _, view := range []string{"", "?view=MINIMAL", "?view="} {
				_, text := l.ask(t, http.MethodGet, base+"/tasks/"+id+view, nil)
				var m map[string]any
				err := json.Unmarshal(text, &m)
				if err != nil || len(m) != 2 || m["id"] != id || m["state"] == nil {
					t.Errorf("%q: %s", view, text)
				}
			}
		}},
		{"BASIC leaves content, streams and system logs out", func(t *testing.T, l *live) {
			l.whole(t)
			var got tes.TesTask
			l.get(t, base+"/tasks/"+l.wholeID+"?view=BASIC", "tesTask", &got)
			one := newest(t, got)
			if (*got.Inputs)[0].Content != nil || one.SystemLogs != nil ||
				one.Logs[0].Stdout != nil || one.Logs[0].Stderr != nil ||
				one.Logs[0].StartTime == nil || one.Metadata == nil {
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
			for _, id := range []string{
				"nothing", "a:b", "%20", "..%2f..%2fx", strings.Repeat("x", 5000), "%00",
			} {
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
		{"pages are newest first, and stable while tasks are added", func(t *testing.T, l *live) {
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
			err := json.Unmarshal(text, &page)
			if err != nil || len(page.Tasks) != 1 || len(page.Tasks[0]) != 2 {
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
				"page_token=x": "page_token", "page_token=eA": "page_token",
				"page_size=2048": "page_size", "page_size=-1": "page_size",
				"page_size=x": "page_size", "state=DONE": "state",
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
			id := l.create(t, runs("echo >/o",
				"outputs", []any{task{"path": "/o", "url": l.url("cancelled")}}))
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
			const ls = `{"executors":[{"image":"any","command":["ls"]}]`
			const image = len(`{"executors":[{"image":"any",`)
			for body, field := range map[string]string{
				``: "", `{`: "", `[]`: "", `"x"`: "", ls + `} {}`: "",
				`null`: "executors", `{}`: "executors", `{"executors":[]}`: "executors",
				`{"executors":{}}`:                                        "executors",
				ls[:image] + `"command":"ls"}]}`:                          "executors.command",
				`{"executors":[{"image":"any"}]}`:                         "executors[0].command",
				ls[:image] + `"command":[]}]}`:                            "executors[0].command",
				ls[:image] + `"command":["\u0000"]}]}`:                    "executors[0].command",
				`{"executors":[{"command":["ls"]}]}`:                      "executors[0].image",
				ls[:len(ls)-2] + `,"env":{"":"x"}}]}`:                     "executors[0].env",
				ls + `,"output":1}`:                                       "output",
				ls + `,"inputs":[{"path":"/x"}]}`:                         "inputs[0].url",
				ls + `,"inputs":[{"path":"x","content":""}]}`:             "inputs[0].path",
				ls + `,"outputs":[{"path":"/x"}]}`:                        "outputs[0].url",
				ls + `,"inputs":[{"path":"/x","content":"","type":"L"}]}`: "inputs[0].type",
			} {
				status, text := l.ask(t, http.MethodPost, base+"/tasks", []byte(body))
				if status != http.StatusBadRequest {
					t.Errorf("%s: %d %s", body, status, text)
				}
				p := refused(t, status, text, http.StatusBadRequest, field)
				if p.Remedy == "" || bytes.Contains(text, []byte("Go ")) {
					t.Errorf("%s: no remedy, or words of the program's language: %s", body, text)
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
				"resources.cpu_cores": {"cpu_cores": -1},
				"resources.ram_gb":    {"ram_gb": 1e300},
				"resources.disk_gb":   {"disk_gb": -0.5},
				"resources.backend_parameters.runtime": {
					"backend_parameters": task{"runtime": "soon"},
				},
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
		{"create answers before large inputs are read", func(t *testing.T, l *live) {
			file := filepath.Join(l.files, "large")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			const size = 256 << 20 // of zeros, which take no space
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			large := []any{task{"path": "/x", "url": l.url("large")}}
			id := l.create(t, runs("true", "inputs", large))
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
