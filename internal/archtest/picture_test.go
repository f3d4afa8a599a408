package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/arrows.svg and the ratchet anew")

const drawAnew = "go test ./internal/archtest -run TestPicture -update"

// TestPicture holds docs/arrows.svg against the table of rooms. What draws it anew is
// drawAnew.
func TestPicture(t *testing.T) {
	file := filepath.Join(repositoryRoot, "docs", "arrows.svg")
	existing := slices.Collect(maps.Keys(mustRead(t, repositoryRoot).packages()))
	want, err := picture(declaredRooms(), existing)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err = os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/arrows.svg is not what the table of rooms says; draw it anew: " + drawAnew)
	}
}

// TestPictureOfAFewRooms holds what is drawn: rooms that exist, sub-rooms in the room
// above them, and no arrow that follows from two others.
func TestPictureOfAFewRooms(t *testing.T) {
	t.Parallel()
	table := map[string]room{
		"pkg/grid": {}, "pkg/fault": {level: 1, imports: "grid"},
		"pkg/step":       {level: 2, imports: "grid fault"},
		"pkg/later":      {level: 2, imports: "fault"},
		"internal/alone": {imports: "grid"},
		"internal/lrm":   {imports: "grid"},
		"internal/lrm/x": {imports: "grid lrm"},
		"internal/agent": {imports: "grid fault step lrm lrm/*"},
		"cmd/siteagent":  {imports: "agent step lrm"},
	}
	existing := []string{
		"pkg/grid", "pkg/fault", "pkg/step", "internal/lrm", "internal/lrm/x", "internal/agent",
		"internal/alone", "cmd/siteagent", "e2e",
	}
	rooms, err := drawn(table, existing)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rooms {
		got = append(got, fmt.Sprintf("%s L%d %v -> %v", r.name, r.level, r.inside, r.imports))
	}
	want := []string{
		"cmd/siteagent L5 [] -> [internal/agent]",
		"internal/agent L4 [] -> [internal/lrm pkg/step]",
		"internal/lrm L3 [x] -> []", "pkg/fault L1 [] -> []", "pkg/step L2 [] -> [pkg/fault]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rooms\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// drawnRoom is a room as the picture shows it.
type drawnRoom struct {
	name    string
	level   int      // from the bottom; above all that it imports
	inside  []string // rooms below it, which have no box of their own
	imports []string // what an arrow leads to
	grid    bool     // pkg/grid is among what it may import
}

// foundation is the room that nearly all stand on. It is a bar and has no arrows.
const foundation = "pkg/grid"

// drawn works out the rooms of the picture, by name. Left out are rooms that no arrow
// leads to or leaves, which only tests use, and those that may import anything.
func drawn(table map[string]room, existing []string) ([]drawnRoom, error) {
	arrows := map[string]map[string]bool{}
	inside := map[string][]string{}
	grid := map[string]bool{}
	for _, dir := range existing {
		r, declared := table[dir]
		home := homeOf(dir)
		if !declared || dir == foundation || slices.Contains(unpictured(), home) {
			continue
		}
		if arrows[home] == nil {
			arrows[home] = map[string]bool{}
		}
		if home != dir {
			inside[home] = append(inside[home], strings.TrimPrefix(dir, home+"/"))
		}
		targets, err := allowed(table, r.imports)
		if err != nil {
			return nil, fmt.Errorf("room %s: %w", dir, err)
		}
		for _, target := range targets {
			to := homeOf(target)
			grid[home] = grid[home] || to == foundation
			if slices.Contains(existing, target) && to != home && to != foundation {
				arrows[home][to] = true
			}
		}
	}
	var rooms []drawnRoom
	maps.DeleteFunc(arrows, func(name string, out map[string]bool) bool {
		return len(out) == 0 && !imported(arrows, name)
	})
	levels := levelsOf(table, arrows)
	for _, name := range slices.Sorted(maps.Keys(arrows)) {
		slices.Sort(inside[name])
		rooms = append(rooms, drawnRoom{
			name: name, level: levels[name], inside: inside[name], imports: direct(arrows, name),
			grid: grid[name],
		})
	}
	return rooms, nil
}

func imported(arrows map[string]map[string]bool, name string) bool {
	for _, out := range arrows {
		if out[name] {
			return true
		}
	}
	return false
}

// unpictured are rooms without a box: nothing that is shipped imports them.
func unpictured() []string {
	return []string{
		".", "e2e", "internal/bench", "internal/chaos", "internal/crosscheck", "internal/hostile",
		"internal/mutants", "internal/soak", "pkg/papers",
	}
}

// homeOf is the room in whose box a room is drawn.
func homeOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return path.Join(parts[:min(len(parts), 2)]...)
}

// levelsOf puts each room above what it imports: those of pkg/ where the table has
// them, the rooms of internal/ above all of these, the programs on top.
func levelsOf(table map[string]room, arrows map[string]map[string]bool) map[string]int {
	levels := map[string]int{}
	floor, roof, lift := 0, 0, 0
	for name := range arrows {
		if within(name, "pkg") && table[name].level == 0 {
			lift = 1 // the foundation's own level is the bar
		}
	}
	for name := range arrows {
		if within(name, "pkg") {
			levels[name] = table[name].level + lift
			floor = max(floor, levels[name]+1)
		}
	}
	var find func(name string) int
	find = func(name string) int {
		if level, known := levels[name]; known {
			return level
		}
		level := floor
		for to := range arrows[name] {
			level = max(level, find(to)+1)
		}
		levels[name] = level
		return level
	}
	for name := range arrows {
		if within(name, "internal") {
			roof = max(roof, find(name)+1)
		}
	}
	for name := range arrows {
		if within(name, "cmd") {
			levels[name] = roof
		}
	}
	return levels
}

// direct lists what a room imports that nothing else it imports leads to.
func direct(arrows map[string]map[string]bool, name string) []string {
	var leads func(from, to string) bool
	leads = func(from, to string) bool {
		for next := range arrows[from] {
			if next == to || leads(next, to) {
				return true
			}
		}
		return false
	}
	var kept []string
	for _, to := range slices.Sorted(maps.Keys(arrows[name])) {
		byway := false
		for other := range arrows[name] {
			byway = byway || other != to && leads(other, to)
		}
		if !byway {
			kept = append(kept, to)
		}
	}
	return kept
}
