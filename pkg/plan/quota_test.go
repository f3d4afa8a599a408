package plan

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// shared asks for a place for a job of a submitter.
func shared(submitter grid.SiteID, job int, milliCPUs int64) Ask {
	a := ask(milliCPUs, 10)
	a.Submitter, a.Job = submitter, grid.JobID(fmt.Sprint("job", job))
	return a
}

func TestFirmOffersToOthersHoldATenth(t *testing.T) {
	p := New(Config{Total: cores(10_000), Self: "self", Strangers: 10})
	open := func(submitter grid.SiteID, job int, milliCPUs int64, firm bool) error {
		a := shared(submitter, job, milliCPUs)
		_, err := p.Open(at(0), a, quote(t, p, 0, a), firm, secs(5))
		check(t, p)
		return err
	}
	for i, c := range []struct {
		submitter grid.SiteID
		milliCPUs int64
		firm      bool
		want      error
	}{
		{"a", 1001, true, ErrFirm},
		{"a", 600, true, nil},
		{"b", 401, true, ErrFirm},
		{"b", 400, true, nil},
		{"c", 1, true, ErrFirm},
		{"c", 9000, false, nil},
		{"self", 9000, true, nil},
	} {
		if err := open(c.submitter, i, c.milliCPUs, c.firm); !errors.Is(err, c.want) {
			t.Errorf("offer %d of %d to %s, firm %t: %v, want %v",
				i, c.milliCPUs, c.submitter, c.firm, err, c.want)
		}
	}
	if err := open("a", 1, 599, true); err != nil {
		t.Errorf("an offer that replaces a larger one: %v", err)
	}
	p.Advance(at(5))
	a := shared("c", 9, 1000)
	if _, err := p.Open(at(5), a, quote(t, p, 5, a), true, secs(5)); err != nil {
		t.Errorf("after the others expired: %v", err)
	}
}

func TestSharesOfOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(8, 40).Draw(t, "open offers")
		p := New(Config{
			Total: grid.Resources{MilliCPUs: 1000}, MaxOffers: most, Self: "self",
			Strangers: rapid.IntRange(1, 99).Draw(t, "percent"),
		})
		limit, own := part(p.total(), p.config.Strangers), 0
		for job := range rapid.IntRange(0, 3*most).Draw(t, "asked") {
			submitter := rapid.SampledFrom([]grid.SiteID{
				"self", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
			}).Draw(t, "submitter")
			a := shared(submitter, job, rapid.Int64Range(0, 60).Draw(t, "milli cpus"))
			q, reason := p.Quote(at(0), a)
			if reason != grid.ReasonNone {
				continue
			}
			_, err := p.Open(at(0), a, q, rapid.Bool().Draw(t, "firm"), secs(5))
			if submitter == "self" && own < most/quotaShare && err != nil {
				t.Fatalf("the site's own offer %d of at least %d: %v", own+1, most/quotaShare, err)
			}
			if submitter == "self" && err == nil {
				own++
			}
		}
		counts, others := map[grid.SiteID]int{}, 0
		var firm grid.Resources
		for _, o := range p.Offers() {
			counts[o.Submitter]++
			if o.Submitter != "self" {
				others++
				if o.Firm && o.Quote.Start.Equal(at(0)) {
					firm = firm.Add(times(o.Quote.Give, o.Holds))
				}
			}
		}
		for submitter, n := range counts {
			if submitter != "self" && n > most/quotaShare {
				t.Fatalf("%s has %d of %d offers", submitter, n, most)
			}
		}
		if others+own > most || others > most-most/quotaShare || !limit.Fits(firm) {
			t.Fatalf("%d offers to others, %d own, of %d; firm ones hold %+v of %+v",
				others, own, most, firm, limit)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
