package virtualmap

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Rate is a data rate in bit/s that may be unknown. The zero value is unknown,
// which is not the same as a link of 0 bit/s.
type Rate struct {
	bps   float64
	known bool
}

// KnownRate is a rate of bps bit/s; infinity is a rate.
func KnownRate(bps float64) Rate { return Rate{bps: bps, known: true} }

// Bps is the rate in bit/s and whether it is known.
func (r Rate) Bps() (float64, bool) { return r.bps, r.known }

func (r Rate) validate(name string) error {
	if !r.known {
		return nil
	}
	return argument.Amount(name, r.bps)
}

// EffectiveBandwidth is B_ij = min(down_ij, up_ji): what really flows from site j
// to site i is limited by the receiver's download and the holder's upload. It is
// unknown if one side is. Thesis, section 3.1.3.
func EffectiveBandwidth(down, up Rate) (Rate, error) {
	if err := errors.Join(down.validate("download rate"), up.validate("upload rate")); err != nil {
		return Rate{}, err
	}
	if !down.known || !up.known {
		return Rate{}, nil
	}
	return KnownRate(min(down.bps, up.bps)), nil
}

// Transfer is one input that a task needs at a site.
type Transfer struct {
	Bytes float64 // size
	Link  Rate    // effective bandwidth from the holder; meaningless if Local
	Local bool    // the site has it already
	Disk  Rate    // rate of the site's own disk, for local data
}

func (t Transfer) validate() error {
	return errors.Join(argument.Amount("bytes", t.Bytes),
		t.Link.validate("link rate"), t.Disk.validate("disk rate"))
}

// seconds is the time the transfer takes, infinite if it cannot be done.
func (t Transfer) seconds() float64 {
	rate := t.Link
	if t.Local {
		rate = t.Disk
	}
	switch {
	case t.Bytes == 0:
		return 0
	case t.Local && !rate.known:
		return 0 // local data of unknown cost: the thesis says "minimal"
	case !rate.known || rate.bps == 0 || math.IsInf(t.Bytes, 1):
		return math.Inf(1)
	default:
		return t.Bytes / rate.bps * 8 // an infinite rate gives 0
	}
}

// DataIndex is y = 8 bytes / (B_ij runtime): the time spent on moving the input
// as a multiple of the runtime, at least 0. Nothing to move is 0 whatever the
// link; local data costs the disk's time if its rate is known and nothing if not;
// a link that is down or unknown gives infinity. runtimeSeconds must be positive
// and finite. Thesis, section 3.1.3, equation (2), with data in bytes and links
// in bit/s kept apart.
func DataIndex(t Transfer, runtimeSeconds float64) (float64, error) {
	if err := errors.Join(t.validate(), checkRuntime(runtimeSeconds)); err != nil {
		return 0, err
	}
	return t.seconds() / runtimeSeconds, nil
}

// DataIndexMulti is the data index of several inputs that share the site's access
// link, so that they arrive one after the other: the sum of their indices. One
// input that cannot be reached makes it infinite; no input gives 0.
func DataIndexMulti(inputs []Transfer, runtimeSeconds float64) (float64, error) {
	if err := checkRuntime(runtimeSeconds); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, t := range inputs {
		y, err := DataIndex(t, runtimeSeconds)
		if err != nil {
			return 0, err
		}
		sum += y
	}
	return sum, nil
}

func checkRuntime(seconds float64) error {
	if !(seconds > 0) || math.IsInf(seconds, 1) {
		return fmt.Errorf("%w: runtime: want more than 0 and finite, have %v s",
			argument.ErrInvalid, seconds)
	}
	return nil
}

// YBounded is y/(1+y), the share of the wall time that goes into moving data, 0
// to 1. An infinite y is 1.
func YBounded(y float64) (float64, error) {
	if err := argument.Amount("y", y); err != nil {
		return 0, err
	}
	if math.IsInf(y, 1) {
		return 1, nil
	}
	return y / (1 + y), nil
}
