package view

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

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

func TestMapStaysReadable(t *testing.T) {
	var table OfferTable
	for range 300 {
		table.Rows = append(table.Rows, FromRefusal("s", "s", grid.Refusal{Reason: grid.ReasonPaused}))
	}
	counts, text := drawn(t, table)
	if counts["circle"] > mapRings+1+mapListed+1 || !strings.Contains(text, "more") {
		t.Errorf("%d circles for 300 refusals", counts["circle"])
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
