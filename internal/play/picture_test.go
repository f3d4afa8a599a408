package play

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// recordOf is the record of a stored scenario.
func recordOf(t *testing.T, name string) *Record {
	t.Helper()
	_, rec, err := Play(t.Context(), load(t, scenarios+"/"+name+".txt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Attempts that are there at the same time never share a lane, while there are lanes; and there
// are no more lanes than attempts at any one time.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var bars []bar
		for n := range rapid.IntRange(0, mostLanes).Draw(t, "attempts") {
			at := time.Duration(rapid.IntRange(0, 50).Draw(t, "from"))
			for range rapid.IntRange(1, 3).Draw(t, "bars") {
				to := at + time.Duration(rapid.IntRange(1, 10).Draw(t, "length"))
				id := grid.AttemptID{Task: grid.TaskID{Index: uint32(n)}}
				bars = append(bars, bar{span{at, to}, id, false})
				at = to
			}
		}
		sortBars(bars)
		whole := make(map[grid.AttemptID]span)
		for _, b := range bars {
			if w, has := whole[b.attempt]; has {
				b.span = span{min(w.from, b.from), max(w.to, b.to)}
			}
			whole[b.attempt] = b.span
		}
		lanes, n := lanesOf(bars)
		most := 1
		for a, of := range whole {
			together := 0
			for b, other := range whole {
				if a != b && of.touches(other) && lanes[a] == lanes[b] {
					t.Fatalf("%v and %v are both in lane %d", of, other, lanes[a])
				}
				if other.from <= of.from && of.from < other.to {
					together++
				}
			}
			most = max(most, together)
		}
		if n != most {
			t.Fatalf("%d lanes for at most %d attempts at a time", n, most)
		}
	})
}

// A picture is whole XML, and holds a bar for each time that an attempt ran or was frozen, within
// the row of its site.
func TestAPictureShowsAllBars(t *testing.T) {
	rec := recordOf(t, "isolated")
	var text strings.Builder
	if err := rec.WriteSVG(&text); err != nil {
		t.Fatal(err)
	}
	titles := titlesOf(t, text.String())
	lines, _ := rec.siteLines()
	frozen := 0
	for _, l := range lines {
		for _, b := range l.bars {
			does := "runs"
			if b.frozen {
				does = "is frozen"
				frozen++
			}
			want := fmt.Sprintf("%s %s at %s, %s to %s",
				rec.attemptName(b.attempt), does, l.name, b.from, b.to)
			if titles[want] != 1 {
				t.Errorf("%d bars %q", titles[want], want)
			}
		}
	}
	if frozen != 6 {
		t.Errorf("%d bars are frozen, and s4 froze 6 tasks", frozen)
	}
	marks := regexp.MustCompile(`(?m)^.* at (given up|fenced)`)
	given, fenced := 0, 0
	for title, n := range titles {
		if m := marks.FindStringSubmatch(title); m != nil && m[1] == "fenced" {
			fenced += n
		} else if m != nil {
			given += n
		}
	}
	if given != 6 || fenced != 6 {
		t.Errorf("%d marks of attempts given up, %d of fenced ones, want 6 of each", given, fenced)
	}
	if titles["isolate site=s4 at=10s for=1m0s"] != 1 {
		t.Error("the picture does not say that s4 was isolated")
	}
}

// titlesOf reads a picture and counts what its parts say when they are pointed at.
func titlesOf(t *testing.T, text string) map[string]int {
	t.Helper()
	titles := make(map[string]int)
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return titles
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if start, is := token.(xml.StartElement); is && start.Name.Local == "title" {
			var title string
			if err := d.DecodeElement(&title, &start); err != nil {
				t.Fatal(err)
			}
			titles[title]++
		}
	}
}

// A page holds each line of all decisions and messages once, in the order of time, and fetches
// nothing.
func TestAPageHoldsAllSteps(t *testing.T) {
	rec := recordOf(t, "site-killed")
	var page strings.Builder
	if err := rec.WritePage(&page, "a <story>"); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(page.String(), `id="data">`)
	text, _, found := strings.Cut(rest, "</script>")
	var data pageData
	if err := json.Unmarshal([]byte(text), &data); err != nil || !found {
		t.Fatalf("its data: %v\n%.300s", err, text)
	}
	want := make(map[string]int)
	messages, _ := rec.messages()
	for _, l := range append(put(rec.decisions()), put(messages)...) {
		want[strings.TrimSpace(rec.line(l))]++
	}
	at := -1.0
	for _, s := range data.Steps {
		if want[s.Line]--; want[s.Line] < 0 {
			t.Errorf("more often than it happened: %s", s.Line)
		}
		if s.At < at {
			t.Errorf("before what came before it: %s", s.Line)
		}
		at = s.At
		if len(s.From) == 0 || s.Message != (len(s.To) > 0) {
			t.Errorf("from %v to %v, a message: %v: %s", s.From, s.To, s.Message, s.Line)
		}
	}
	for line, n := range want {
		if n > 0 {
			t.Errorf("it is missing: %s", line)
		}
	}
	if len(data.Rows) != len(rec.sites) || data.LeftOut != 0 {
		t.Errorf("%d rows, %d steps left out", len(data.Rows), data.LeftOut)
	}
	for _, outside := range []string{"src=", "href=", "url(", "fetch(", "import(", "<story>"} {
		if strings.Contains(page.String(), outside) {
			t.Errorf("the page holds %q", outside)
		}
	}
}

// A picture, and the frame in which the page lays its lines over it, are as they were looked at.
func TestPictures(t *testing.T) {
	rec := recordOf(t, "owner-busy")
	var picture strings.Builder
	if err := rec.WriteSVG(&picture); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/owner-busy.svg", picture.String())
	frame := newPicture(rec).data()
	frame.Steps = nil
	text, err := json.MarshalIndent(frame, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/owner-busy.json", string(text)+"\n")
}

// What no browser can show is left out, and the page says so.
func TestAPageIsBounded(t *testing.T) {
	rec := recordOf(t, "cold")
	some := rec.sights
	for len(rec.decisions()) < mostSteps {
		shift := rec.sights[len(rec.sights)-1].At + time.Second
		for _, s := range some {
			s.At += shift
			rec.sights = append(rec.sights, s)
		}
	}
	all := len(rec.steps())
	data := newPicture(rec).data()
	if len(data.Steps) != mostSteps || data.LeftOut != all-mostSteps || all <= mostSteps {
		t.Errorf("%d steps and %d left out, of %d", len(data.Steps), data.LeftOut, all)
	}
}
