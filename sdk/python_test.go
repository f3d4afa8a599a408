package sdk_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every operation that the client in Python uses is one of the agent's.
func TestPythonUsesOperationsThatExist(t *testing.T) {
	t.Parallel()
	there := operations(t)
	client, err := os.ReadFile("python/mrs.py")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`\("(GET|PUT|POST|DELETE|HEAD)", "(/[^"]*)"`)
	used := call.FindAllStringSubmatch(string(client), -1)
	const fewest = 10
	if len(used) < fewest {
		t.Errorf("%d operations are found in the client, want %d or more", len(used), fewest)
	}
	for _, u := range used {
		if operation := u[1] + " " + u[2]; !there[operation] {
			t.Errorf("the agent has no operation %s", operation)
		}
	}
}

// operations are those of the OpenAPI document, each as its method and path.
func operations(t *testing.T) map[string]bool {
	t.Helper()
	document, err := os.ReadFile("../internal/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, path := make(map[string]bool), ""
	method := regexp.MustCompile(`^    (get|put|post|delete|head):$`)
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "components:" {
			break
		}
		if strings.HasPrefix(line, "  /") {
			path = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
		if m := method.FindStringSubmatch(line); m != nil {
			found[strings.ToUpper(m[1])+" "+path] = true
		}
	}
	return found
}
