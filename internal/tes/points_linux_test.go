package tes_test

import (
	"bytes"
	"encoding/json"
	"net/http"
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
		all := slices.Concat(
			servicePoints(), createPoints(), sandboxPoints(), runPoints(), filePoints(),
			viewPoints(), listPoints(), cancelPoints(), refusedPoints(), mountPoints(),
		)
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
			status, text := l.ask(t, http.MethodGet, "/v1/tasks/"+id, nil)
			if status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
		}},
		{"the service's facts are where version 1.0 has them", func(t *testing.T, l *live) {
			status, text := l.ask(t, http.MethodGet, "/v1/tasks/service-info", nil)
			var facts struct {
				Name, Doc string
				Storage   []string
			}
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&facts); err != nil || status != http.StatusOK ||
				!slices.Equal(facts.Storage, []string{"file://" + l.files}) {
				t.Errorf("%d %s: %v", status, text, err)
			}
		}},
		{
			"empty basic authentication is taken where none is asked for",
			func(t *testing.T, l *live) {
				status, text := l.ask(
					t, http.MethodGet, base+"/tasks", nil, "Authorization", "Basic Og==",
				)
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
		{"a task that no site can ever run fails and says why", func(t *testing.T, l *live) {
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
