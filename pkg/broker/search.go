package broker

import (
	"math"
	"time"
)

// search is a round of a search for near sites: among those nearer than the best answer so far some
// are drawn by chance, more of them in each round. The zero value is a round that is none.
type search struct {
	nearer float64       // sites up to that distance are asked
	part   float64       // that part of them, above 0 to 1; 0: no search
	long   time.Duration // the round may take so long
	until  time.Time     // no round begins that would end later
	offers int           // so many came before
}

const (
	searchAnswers = 16 // so many should answer in each round of a search
	searchCost    = 3 * searchAnswers
	searchEnough  = 2               // one of so many has answered: the nearest is among the nearest
	searchLongest = 4 * time.Second // offers are good for ten
	searchTTLs    = 2               // so many TTLs after its announcement a job is placed
	// noSample draws nobody: with it agents that do not know of searches do not answer.
	noSample = math.SmallestNonzeroFloat64
)

// searchTime bounds the time from a first round to the end of its search.
func searchTime(ttl time.Duration) time.Duration { return min(searchTTLs*ttl, searchLongest) }

// next is the round after one to which a part of the sites was asked, with these offers, ascending.
// There are about as many sites nearer than the nearest of that part as one of it stands for.
func (s search) next(part float64, count int, offers []float64, now time.Time) search {
	if len(offers) > 0 {
		s.nearer = min(s.nearer, offers[0])
	}
	if part*searchEnough >= 1 || s.nearer <= 0 || now.Add(s.long).After(s.until) {
		return search{}
	}
	s.part, s.offers = min(part*searchAnswers, 1), s.offers+count
	return s
}
