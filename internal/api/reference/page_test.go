package reference

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestThePageHasAll: each operation and each schema of the agent's specification is on the page,
// each link leads to something on it, and nothing is loaded from elsewhere.
func TestThePageHasAll(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Page(text)
	if err != nil {
		t.Fatal(err)
	}
	page := string(made)
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, found := range regexp.MustCompile(`id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if slices.Contains(ids, found[1]) {
			t.Errorf("%s is there twice", found[1])
		}
		ids = append(ids, found[1])
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if !slices.Contains(ids, op.OperationID) ||
				!strings.Contains(page, "<code>"+method+" "+path+"</code>") {
				t.Errorf("%s %s is missing", method, path)
			}
			for _, p := range slices.Concat(item.Parameters, op.Parameters) {
				if !strings.Contains(page, "<code>"+p.Value.Name+"</code>") {
					t.Errorf("%s %s: parameter %s is missing", method, path, p.Value.Name)
				}
			}
		}
	}
	for name, s := range spec.Components.Schemas {
		if !slices.Contains(ids, name) {
			t.Errorf("schema %s is missing", name)
		}
		for key := range s.Value.Properties {
			if !strings.Contains(page, "<code>"+key+"</code>") {
				t.Errorf("%s.%s is missing", name, key)
			}
		}
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	for _, link := range links.FindAllStringSubmatch(page, -1) {
		target, within := strings.CutPrefix(link[1], "#")
		if within != slices.Contains(ids, target) || !within && link[1] != "/api/v1/openapi.yaml" {
			t.Errorf("%s leads nowhere, or elsewhere", link[1])
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("it has a script")
	}
}

func TestSpecificationsThatCannotBeShown(t *testing.T) {
	t.Parallel()
	const nowhere = `components: {schemas: {A: {$ref: "#/components/schemas/B"}}}`
	const noAnswer = `{tags: [{name: a}], paths: {/x: {get: {tags: [a],
		responses: {"200": {$ref: "#/no"}}}}}}`
	for text, want := range map[string]string{
		"":                                   "it is empty",
		"a: [":                               "read specification: yaml",
		"paths: {/x: {get: {tags: [none]}}}": "get /x: no tag none",
		nowhere:                              "#/components/schemas/B is nowhere",
		noAnswer:                             "#/no is nowhere",
	} {
		if _, err := Page([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestTextsArePlain: what a specification says is text on the page.
func TestTextsArePlain(t *testing.T) {
	t.Parallel()
	made, err := Page([]byte("info: {title: '<script>', description: 'a & b'}"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(made)
	if strings.Contains(page, "<script>") || !strings.Contains(page, "a &amp; b") {
		t.Error(page)
	}
}
