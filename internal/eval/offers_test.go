package eval

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const offering = "grid n=4 nodes=16 spread=.8 largest=8 rate=8Mbps latency=10ms\n" +
	"jobs procs=8 time=.02 longest=5m load=.9 for=30m mem=.1..0.3 data=1MiB dataspread=1\n" +
	"strategy name=MRS on=mesh split=greedy\n" +
	"strategy name=SECONDS on=mesh split=greedy map=seconds\n" +
	"strategy name=BACKFILL on=queue\n"

// Offers are noted only if they are asked for, which changes nothing else: each is a site's place
// in the map of a job that had been submitted, and every job that ran took one at least.
func TestOffers(t *testing.T) {
	asked := Compare{Experiment: mustParse(t, offering), First: 3, Seeds: 1, Offers: true}
	with, records := recordsOfRuns(t, asked)
	asked.Offers = false
	without, bare := recordsOfRuns(t, asked)
	if diff := cmp.Diff(with, without); diff != "" {
		t.Errorf("to note offers changes results (-with +without):\n%s", diff)
	}
	for i, r := range records {
		if len(bare[i].Offers) != 0 {
			t.Errorf("%s: %d offers, though nobody asked", bare[i].Strategy, len(bare[i].Offers))
		}
		if r.Strategy == "BACKFILL" {
			if len(r.Offers) != 0 {
				t.Errorf("a queue has %d offers", len(r.Offers))
			}
			continue
		}
		if r.InSeconds != (r.Strategy == "SECONDS") || r.OffersCut {
			t.Errorf("%s: seconds %t, cut %t", r.Strategy, r.InSeconds, r.OffersCut)
		}
		checkOffers(t, r)
	}
}

func checkOffers(t *testing.T, r RunRecord) {
	t.Helper()
	taken, first := make(map[int]bool), 0
	for k, o := range r.Offers {
		if o.Site < 0 || o.Site >= len(r.Grid.Sites) || o.Round < 1 ||
			o.At < r.Jobs[o.Job].Submit ||
			k > 0 && o.At < r.Offers[k-1].At || o.X < 0 || o.Y < 0 || o.Z < 0 || o.Z > 1 {
			t.Fatalf("%s: offer %d: %+v of %+v", r.Strategy, k, o, r.Jobs[o.Job])
		}
		// Of the thesis' map x is at most 2; a distance is at least each of its parts. Without NAA
		// z is none of them.
		if !r.InSeconds && (o.X > 2 || o.Distance < o.X || o.Distance < o.Y) {
			t.Errorf("%s: offer %d: %+v", r.Strategy, k, o)
		}
		if r.InSeconds && o.X < 1 {
			t.Errorf("no job runs for %v s", o.X)
		}
		if o.Round == 1 {
			first++
		}
		taken[o.Job] = taken[o.Job] || o.Taken
	}
	for job := range r.Jobs {
		if r.ends[job].started && !taken[job] {
			t.Errorf("%s: job %d ran and took no offer", r.Strategy, job)
		}
	}
	if first == 0 || len(taken) != len(r.Jobs) {
		t.Errorf("%s: %d first offers, for %d of %d jobs", r.Strategy, first, len(taken),
			len(r.Jobs))
	}
}

// What is beyond the bound is left out, and the record says so.
func TestOffersAreBounded(t *testing.T) {
	book := newOfferBook()
	book.offers = make([]Offer, mostOffers-1)
	book.add(offerKey{"s1", 1}, Offer{Site: 1})
	if book.cut || len(book.offers) != mostOffers || book.open[offerKey{"s1", 1}] != mostOffers-1 {
		t.Errorf("%d offers, cut %t", len(book.offers), book.cut)
	}
	book.add(offerKey{"s2", 1}, Offer{Site: 2})
	_, known := book.open[offerKey{"s2", 1}]
	if !book.cut || known || len(book.offers) != mostOffers {
		t.Errorf("%d offers, cut %t", len(book.offers), book.cut)
	}
}

// A mesh whose sites fail tells its offers as well.
func TestOffersOfFailingSites(t *testing.T) {
	text := "grid n=4 nodes=16\njobs procs=4 time=.02 longest=5m load=.5 for=20m\n" +
		"failures availability=.9 mttf=10h\nstrategy name=MRS on=mesh split=greedy\n"
	_, records := recordsOfRuns(t, Compare{
		Experiment: mustParse(t, text), First: 1, Seeds: 1, Offers: true,
	})
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	for _, r := range records {
		checkOffers(t, r)
	}
}

// What differs between settings and between rules is told with their names.
func TestWhatDiffers(t *testing.T) {
	e := mustParse(t, "grid n=2 nodes=8\njobs procs=4 for=1h longest=1h\n"+
		"strategy name=A on=queue\n"+
		"failures availability=.9 factor=.1 reading=over,times law=weibull\n"+
		"failures availability=.5 mttf=10h\n")
	want := []SettingOf{
		{"weibull-0.1-over", "weibull", "longest run over factor", "run factor 0.1"},
		{"weibull-0.1-times", "weibull", "longest run times factor", "run factor 0.1"},
		{"normal-0.5", "normal", "", "availability 0.5"},
	}
	if diff := cmp.Diff(want, settingsOf(e.Settings)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c := Compare{
		Experiment: mustParse(t, "resources name=4h n=4 mtbf=4h\nresources name=8h n=4 mtbf=8h\n"+
			"tasks n=3 run=1h\nstrategy name=auto save=learned\n"+
			"strategy name=LFCA save=lfca interval=5m,20m\n"), First: 1, Seeds: 1,
	}
	r, err := c.Run(t.Context())
	rules := []RuleOf{
		{"auto", "auto", 0, noShare},
		{"LFCA-5m", "LFCA", 5 * time.Minute, noShare},
		{"LFCA-20m", "LFCA", 20 * time.Minute, noShare},
	}
	if diff := cmp.Diff(rules, r.Rules); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
