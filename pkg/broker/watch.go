package broker

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// watched records what this site has seen of a member's coming and going. A member that
// cannot be reached is down to it, whatever the cause; times that this site itself was
// down say nothing.
type watched struct {
	ends    uint64  // how often it went
	up      float64 // seconds it was seen up, before it went
	returns uint64  // how often it came back while this site watched
	down    float64 // seconds it was away, before it came back
	since   time.Time
}

// memberFact is the value of the fact that a member is known.
type memberFact struct {
	Name       string          `json:"name"`
	Capability grid.Capability `json:"capability"`
	SeenMS     int64           `json:"seen_ms"`
	Ends       uint64          `json:"ends,omitempty"`
	UpS        float64         `json:"up_s,omitempty"`
	Returns    uint64          `json:"returns,omitempty"`
	DownS      float64         `json:"down_s,omitempty"`
}

// longestWatched bounds the seconds that are counted, so that sums stay finite.
const longestWatched = 1e12

// came notes that a member is there again, or for the first time.
func (p *member) came(now time.Time) {
	if !p.watched.since.IsZero() {
		p.watched.returns++
		p.watched.down = min(p.watched.down+now.Sub(p.watched.since).Seconds(), longestWatched)
	}
	p.watched.since = now
}

// went notes that a member is away.
func (p *member) went(now time.Time) {
	p.watched.ends++
	p.watched.up = min(p.watched.up+now.Sub(p.watched.since).Seconds(), longestWatched)
	p.watched.since = now
}

func (p *peers) save(id grid.SiteID) {
	other := p.all[id]
	if other.domain != "" {
		return // a later run is told anew which domains are neighbours
	}
	w := other.watched
	p.persist(factMember, string(id), memberFact{
		Name: other.name, Capability: other.capability, SeenMS: step.MS(other.there()),
		Ends: w.ends, UpS: w.up, Returns: w.returns, DownS: w.down,
	})
}

func (p *peers) restore(f step.Fact) error {
	var v memberFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	id := grid.SiteID(f.Key)
	if err := id.Validate(); err != nil {
		return err
	}
	if err := v.Capability.Validate(); err != nil {
		return err
	}
	for _, s := range []float64{v.UpS, v.DownS} {
		if !(s >= 0 && s <= longestWatched) {
			return fmt.Errorf("%w: seconds: want 0 to %v, have %v", grid.ErrInvalid, longestWatched, s)
		}
	}
	p.order = nil
	p.all[id] = &member{
		name: v.Name, capability: v.Capability, lastSeen: step.FromMS(v.SeenMS),
		watched: watched{ends: v.Ends, up: v.UpS, returns: v.Returns, down: v.DownS},
	}
	return nil
}

// known reports whether a member was seen within a week.
func (p *member) known(now time.Time) bool {
	return p.connected || now.Sub(p.there()) <= memberKept
}

// there is when the member was last known to be there.
func (p *member) there() time.Time {
	if p.watched.since.After(p.lastSeen) {
		return p.watched.since // it came, or went, without saying more
	}
	return p.lastSeen
}

// returnPrior is the belief about how soon a member comes back: within eight hours.
func returnPrior() avail.Prior {
	return avail.Prior{Failures: 1, Exposure: (8 * time.Hour).Seconds()}
}

// leaving and returning are the beliefs about a member's rates, per second, after what
// was seen of it up to now.
func (p *member) leaving(now time.Time) avail.Prior {
	up := p.watched.up
	if p.connected {
		up += p.standing(now).Seconds()
	}
	belief, _ := avail.DefaultPrior().Observe(p.watched.ends, min(up, longestWatched)) // finite
	return belief
}

func (p *member) returning(now time.Time) avail.Prior {
	down := p.watched.down
	if !p.connected {
		down += p.standing(now).Seconds()
	}
	belief, _ := returnPrior().Observe(p.watched.returns, min(down, longestWatched)) // both are finite
	return belief
}

// standing returns how long the member has been as it is, as far as was seen.
func (p *member) standing(now time.Time) time.Duration {
	if p.watched.since.IsZero() {
		return 0
	}
	return max(now.Sub(p.watched.since), 0)
}

// cycle returns how long a member is up and down at a time, on average.
func (p *member) cycle(now time.Time) avail.Cycle {
	return avail.Cycle{
		MTTFSeconds: 1 / p.leaving(now).Rate(), MTTRSeconds: 1 / p.returning(now).Rate(),
	}
}
