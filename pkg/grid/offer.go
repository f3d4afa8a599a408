package grid

import (
	"math"
	"time"
)

// Parts is a site's position in the virtual map: its distance from the job at the origin,
// and the parts of that distance. Smaller is always better.
type Parts struct {
	X        float64       // computation index, 0 to 2
	Y        float64       // data index, at least 0
	Z        float64       // availability index, 1 - P(stays up until the end), 0 to 1
	Distance float64       // the map's distance, finite
	Wait     time.Duration // until the earliest start
	StageIn  time.Duration // moving what is not yet local
	Run      time.Duration // on this site

	// Further are the coordinates on the job's axes beyond x, y and z; at most one for each
	// dimension.
	Further          []Coordinate
	PotentialUnknown bool // P_src of the job's data is unknown: x is without that term
}

// Validate reports a part that is negative, infinite or no number.
func (p Parts) Validate() error {
	for _, v := range []float64{p.X, p.Y, p.Z, p.Distance} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return invalidf("offer: indices must be finite and at least 0, have %v", v)
		}
	}
	if p.Z > 1 || p.Wait < 0 || p.StageIn < 0 || p.Run < 0 {
		return invalidf("offer: z above 1 or a negative duration")
	}
	if len(p.Further) > int(lastDimension) {
		return invalidf("offer: %d further coordinates", len(p.Further))
	}
	for _, c := range p.Further {
		if err := c.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Offer is a site's answer to an announcement: an entry in its plan that it
// would turn into a commitment. Durations count from the sending of the offer.
type Offer struct {
	ID          uint64        // the site's own number for it, from 1
	Site        SiteID        // who offers; set by the receiver from the channel
	Parts       Parts         // the site's position
	LatestStart time.Duration // latest start that is guaranteed; only for firm offers
	Finish      time.Duration // expected end
	Firm        bool          // capacity is held until Validity ends; a soft offer is a quote
	Validity    time.Duration // how long the offer is valid
	TasksNow    uint32        // how many tasks of the array could start now, at least 1
	CoreMFLOPS  int64         // speed of one core, to break ties
	// Decrypts: of an encrypted job, the site opens its content. Older agents do not say so.
	Decrypts bool `json:",omitempty"`
}

// Validate reports the first field that is out of its range.
func (o Offer) Validate() error {
	if o.ID == 0 {
		return invalidf("offer: number 0")
	}
	if o.TasksNow < 1 || o.TasksNow > MaxTasks {
		return invalidf("offer: want 1 to %d tasks, have %d", MaxTasks, o.TasksNow)
	}
	if o.Validity <= 0 || o.Validity > MaxRuntime || o.LatestStart < 0 || o.Finish < 0 {
		return invalidf("offer: a duration is out of range")
	}
	return firstError(o.Parts.Validate(), checkRange("core speed (MFLOP/s)", o.CoreMFLOPS, maxAmount))
}
