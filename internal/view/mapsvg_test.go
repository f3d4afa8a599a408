package view

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// drawn counts the elements of the drawing, and fails if it is no well-formed
// document.
func drawn(t *testing.T, table OfferTable) (map[string]int, string) {
	t.Helper()
	var out strings.Builder
	if err := table.WriteMap(&out); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counts, out.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
}

func TestMapShowsEverySite(t *testing.T) {
	near := FromOffer(
		grid.Offer{Site: "a", Parts: grid.Parts{X: .1, Y: .2, Z: .1, Distance: .25}}, "near", 1,
	)
	far := FromOffer(
		grid.Offer{Site: "b", Parts: grid.Parts{X: 1, Y: 3, Distance: 3.2, StageIn: time.Second}},
		`<b> & "co"`, 2,
	)
	far.Behind = Behind(grid.DataMoved, 3, .2)
	refused := FromRefusal("c", "c\x00", grid.Refusal{Reason: grid.ReasonMemory, Want: 2, Have: 1})
	table := OfferTable{Members: 3, Answered: 3, Map: "thesis", Rows: []OfferRow{near, far, refused}}
	counts, text := drawn(t, table)
	if counts["circle"] != mapRings+1+3 {
		t.Errorf("%d circles, want %d rings, the job and 3 sites", counts["circle"], mapRings)
	}
	for _, want := range []string{
		"1 near", "&lt;b&gt; &amp; &quot;co&quot;", "data 3, the nearest has 0.2", "too little memory",
		"x, computation",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, `fill="`+shade(near.Z)+`"`) != 1 ||
		strings.Count(text, `fill="`+shade(far.Z)+`"`) != 0 {
		t.Error("want the nearest site filled, and no other one")
	}
	table.Map = "seconds"
	if _, text = drawn(t, table); !strings.Contains(text, "seconds of stage-in") {
		t.Error("the seconds map does not name its axes")
	}
	if _, text = drawn(t, OfferTable{}); !strings.Contains(text, "0 of 0 sites") {
		t.Error("no site: want an empty map")
	}
}

// The first refusals are named, and how many more there are.
func TestMapStaysReadable(t *testing.T) {
	for n, more := range map[int]string{
		mapListed + 1: "", mapListed + 2: ">and 1 more<", 300: ">and 275 more<",
	} {
		var table OfferTable
		for range n {
			table.Rows = append(table.Rows, FromRefusal("s", "s", grid.Refusal{Reason: grid.ReasonPaused}))
		}
		counts, text := drawn(t, table)
		if counts["circle"] != mapRings+1+mapListed+1 || !strings.Contains(text, more) ||
			strings.Contains(text, ">and ") != (more != "") {
			t.Errorf("%d circles for %d refusals, want %q", counts["circle"], n, more)
		}
	}
}

var update = flag.Bool("update", false, "write the golden maps anew")

// The whole drawing, to the letter: look at a new one in a browser before it is kept.
func TestMapsAreDrawnAsBefore(t *testing.T) {
	at := func(rank int, site grid.SiteID, name string, p grid.Parts) OfferRow {
		return FromOffer(grid.Offer{Site: site, Parts: p}, name, rank)
	}
	rows := []OfferRow{
		at(1, "a", "near", grid.Parts{X: .1, Y: .2, Z: .1, Distance: .25, Run: 40 * time.Second}),
		at(2, "0123456789", "", grid.Parts{
			X: 1, Y: 3, Z: 1, Distance: 3.2, Wait: 5 * time.Second, StageIn: 7 * time.Second,
		}),
		FromRefusal("c", "late", grid.Refusal{Reason: grid.ReasonPaused}),
		FromRefusal("d", "small", grid.Refusal{Reason: grid.ReasonMemory, Want: 2, Have: 1}),
	}
	rows[1].Behind = Behind(grid.DataMoved, 3, .2)
	for name, table := range map[string]OfferTable{
		"thesis":  {Members: 5, Answered: 4, Map: "thesis", Rows: rows},
		"seconds": {Members: 5, Answered: 4, Map: "seconds", Rows: rows},
		"empty":   {Members: 2},
	} {
		_, got := drawn(t, table)
		golden := filepath.Join("testdata", "map-"+name+".svg")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got)
		if err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Dots and the scales at the axes agree: a site at the last mark of both is in the far corner.
func TestPlacesOnTheMap(t *testing.T) {
	for far, reach := range map[float64]float64{0: 1, 0.5: 0.8, 0.76: 0.8, 0.77: 2, 3: 4, 30: 40} {
		d := drawing{table: OfferTable{Rows: []OfferRow{
			{Rank: 2, X: &far, Y: new(float64)},
			FromRefusal("refused sites have no place", "", grid.Refusal{}),
		}}}
		d.measure()
		if math.Abs(d.reach-reach) > 1e-9 {
			t.Errorf("the map of a site at %v reaches to %v, want %v", far, d.reach, reach)
		}
		for _, c := range []struct{ x, y, px, py float64 }{
			{0, 0, mapLeft, mapTop + mapSize},
			{1, 0, mapLeft + mapSize, mapTop + mapSize},
			{0.25, 1, mapLeft + mapSize/4, mapTop},
		} {
			px, py := d.place(c.x*d.reach, c.y*d.reach)
			if math.Abs(px-c.px) > 1e-9 || math.Abs(py-c.py) > 1e-9 {
				t.Errorf("%v, %v of the way is at %v, %v, want %v, %v", c.x, c.y, px, py, c.px, c.py)
			}
		}
	}
}

// Where tasks went is filled; in a plan, where nothing went yet, the nearest site. Beside the
// dots of the nearest twelve stand their names.
func TestWhichSitesStandOut(t *testing.T) {
	table := OfferTable{}
	z := 0.5
	for rank := 1; rank <= 13; rank++ {
		row := FromOffer(grid.Offer{Site: "s"}, "site", rank)
		row.Z = &z
		table.Rows = append(table.Rows, row)
	}
	filled := func() []bool {
		_, text := drawn(t, table)
		var is []bool
		for _, dot := range strings.Split(text, "<g>")[1:] {
			is = append(is, strings.Contains(dot, `fill="`+shade(&z)+`"`))
		}
		if !strings.Contains(text, ">12 site<") || strings.Contains(text, ">13 site<") {
			t.Error("want the nearest twelve named, and no others")
		}
		return is
	}
	want := make([]bool, len(table.Rows))
	want[0] = true
	if diff := cmp.Diff(want, filled()); diff != "" {
		t.Errorf("a plan (-want +got):\n%s", diff)
	}
	table.Rows[2].Awarded, table.Rows[12].Awarded = 1, 4
	want[0], want[2], want[12] = false, true, true
	if diff := cmp.Diff(want, filled()); diff != "" {
		t.Errorf("a job (-want +got):\n%s", diff)
	}
}

func TestColours(t *testing.T) {
	for z, want := range map[float64]string{
		-1: "#0072b2", 0: "#0072b2", 0.5: "#738959", 1: "#e69f00", 2: "#e69f00",
	} {
		if got := shade(&z); got != want {
			t.Errorf("z %v is %s, want %s", z, got, want)
		}
	}
	if got := shade(nil); got != "#888888" {
		t.Errorf("an unknown z is %s", got)
	}
}

// What a site calls itself cannot leave its element, and is text that XML allows.
func TestNamesInTheDrawing(t *testing.T) {
	for words, want := range map[string]string{
		"plain é ~":                       "plain é ~",
		`<a b="c" d='e'>&`:                "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;",
		"\x00a\x1fb\x7fc\ufffed\uffffe\n": " a b c d e ",
		"\x80z":                           "?z",
	} {
		if got := escaped(words); got != want {
			t.Errorf("%q becomes %q, want %q", words, got, want)
		}
	}
	for site, want := range map[grid.SiteID]string{
		"": "", "1234567": "1234567", "123456789": "23456789",
	} {
		if got := label(OfferRow{Site: site}); got != want {
			t.Errorf("a site without a name, %q, is %q, want %q", site, got, want)
		}
	}
}

// What is not known of an offer is not said, and does not move it from the origin.
func TestOfferThatSaysLittle(t *testing.T) {
	v := 0.5
	whole := OfferRow{Site: "s", X: &v, Y: &v, Z: &v, Distance: &v}
	if got, want := describe(whole), "s: x 0.5, y 0.5, z 0.5, distance 0.5"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	for name, forget := range map[string]func(*OfferRow){
		"x": func(r *OfferRow) { r.X = nil }, "y": func(r *OfferRow) { r.Y = nil },
		"z": func(r *OfferRow) { r.Z = nil }, "distance": func(r *OfferRow) { r.Distance = nil },
	} {
		row := whole
		forget(&row)
		if got := describe(row); got != "s" {
			t.Errorf("without %s it says %q", name, got)
		}
		x, y := OfferTable{}.point(row)
		if known := name == "z" || name == "distance"; known != (x == v && y == v) || !known && x+y != 0 {
			t.Errorf("without %s it stands at %v, %v", name, x, y)
		}
	}
}

// A drawing that cannot be written is an error.
func TestMapThatCannotBeWritten(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	if err := (OfferTable{}).WriteMap(w); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("WriteMap = %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestNiceStep(t *testing.T) {
	for v, want := range map[float64]float64{
		0.9: 1, 1: 1, 1.2: 2, 3: 5, 7: 10, 0.0023: 0.005, 4.9e9: 5e9,
	} {
		if got := niceStep(v); got < want*(1-1e-9) || got > want*(1+1e-9) {
			t.Errorf("niceStep(%v) = %v, want %v", v, got, want)
		}
	}
}
