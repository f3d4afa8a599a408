package tes_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
)

// task is a request in a few words.
type task = map[string]any

// runs is a task of one executor for a shell.
func runs(script string, more ...any) task {
	one := task{"executors": []any{shell(script)}}
	for i := 0; i+1 < len(more); i += 2 {
		one[more[i].(string)] = more[i+1]
	}
	return one
}

// shell is an executor.
func shell(script string, more ...any) task {
	e := task{"image": "any:1", "command": []string{"sh", "-c", script}}
	for i := 0; i+1 < len(more); i += 2 {
		e[more[i].(string)] = more[i+1]
	}
	return e
}

// problem is a refusal.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
	Remedy string `json:"remedy"`
}

// refused wants an answer to be a problem with a field.
func refused(t *testing.T, status int, text []byte, want int, field string) problem {
	t.Helper()
	var p problem
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Fatalf("no problem: %v: %s", err, text)
	}
	if status != want || p.Status != want || p.Field != field || p.Detail == "" {
		t.Errorf("%d %s, want %d about %q", status, text, want, field)
	}
	if want == http.StatusBadRequest && p.Remedy == "" {
		t.Errorf("%s does not say what to do", text)
	}
	return p
}

// dump is a value as JSON.
func dump(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
