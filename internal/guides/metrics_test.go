package guides

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// metricsServed has the metrics that the agent's packages make, each with the call that makes it:
// with its help and its labels.
func metricsServed(t *testing.T) map[string]string {
	t.Helper()
	made := regexp.MustCompile(`(?:Counter|CounterVec|Histogram|GaugeFunc|GaugeVec)\(\s*` +
		`"([a-z0-9_]+)",[^)]*\)`)
	ofPeers := regexp.MustCompile(`family\(Count[A-Za-z]+,[^)]*\)`)
	metrics := map[string]string{}
	for _, p := range []grid.Promise{grid.PromiseKept, grid.PromiseLate, grid.PromiseBroken} {
		metrics["mrs_promises_"+p.String()+"_total"] = "" // they are made in a loop
	}
	root := filepath.Join(repositoryRoot, "internal")
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return err
		}
		for _, found := range made.FindAllSubmatch(text, -1) {
			metrics["mrs_"+string(found[1])] = string(found[0])
		}
		for _, found := range ofPeers.FindAllString(string(text), -1) {
			name, _, _ := strings.Cut(strings.TrimPrefix(found, "family("), ",")
			value := regexp.MustCompile(name + ` += "([a-z_]+)"`).FindStringSubmatch(string(text))
			if value == nil {
				t.Fatalf("%s: %s has no value", path, name)
			}
			metrics["mrs_p2p_"+value[1]+"_total"] = found
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// dashboard is as much of Grafana's form as can be wrong here.
type dashboard struct {
	Panels []struct {
		ID          int    `json:"id"`
		Title       string `json:"title"`
		Description string `json:"description"`
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, LegendFormat string }
	}
}

// TestTheDashboardShowsWhatIsServed: each metric, and each label, that the dashboard asks for is
// one that an agent has, and no panel lies on another one.
func TestTheDashboardShowsWhatIsServed(t *testing.T) {
	t.Parallel()
	metrics := metricsServed(t)
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "examples", "grafana", "mesh.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) == 0 || len(metrics) == 0 {
		t.Fatalf("%d panels and %d metrics", len(d.Panels), len(metrics))
	}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Description == "" {
			t.Errorf("%s: no description", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q, or beyond the right edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			checkExpression(t, metrics, p.Title, target.Expr, target.LegendFormat)
		}
	}
}

func checkExpression(t *testing.T, metrics map[string]string, title, expr, legend string) {
	t.Helper()
	names := regexp.MustCompile(`mrs_[a-z0-9_]+`).FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s: %s asks for nothing", title, expr)
	}
	for _, name := range names {
		call, is := metrics[strings.TrimSuffix(name, "_bucket")]
		if !is {
			t.Errorf("%s: no agent has %s", title, name)
			continue
		}
		for _, label := range labelsOf(expr, legend) {
			if !regexp.MustCompile(`\b` + label + `\b"?\)$`).MatchString(call) {
				t.Errorf("%s: %s has no label %s: %s", title, name, label, call)
			}
		}
	}
}

// labelsOf lists the labels of a query that are a metric's own.
func labelsOf(expr, legend string) []string {
	var labels []string
	for _, form := range []string{`by \(([a-z_]+)\)`, `[{,]([a-z_]+)=`, `\{\{([a-z_]+)\}\}`} {
		for _, found := range regexp.MustCompile(form).FindAllStringSubmatch(expr+" "+legend, -1) {
			labels = append(labels, found[1])
		}
	}
	return slices.DeleteFunc(labels, func(label string) bool {
		return label == "instance" || label == "le" // every metric of Prometheus has them
	})
}

// TestTheMetricsToWatchAreServed: the guide names no metric that there is not.
func TestTheMetricsToWatchAreServed(t *testing.T) {
	t.Parallel()
	metrics := metricsServed(t)
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(mrs_[a-z0-9_]+)`").FindAllSubmatch(text, -1)
	if len(named) == 0 {
		t.Fatal("it names none")
	}
	for _, found := range named {
		if _, is := metrics[string(found[1])]; !is {
			t.Errorf("no agent has %s", found[1])
		}
	}
}
