package owner

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Use counts what this agent and its jobs have used, and says whether they work.
type Use struct {
	CPU     time.Duration // processor time since the start, of the agent and of all its jobs
	Known   bool          // whether CPU is
	Live    bool          // there are jobs, be they frozen or not
	Working bool          // some of them fetch data or run
}

// difference is the sample between two moments. Values that only one of them
// knows, or that went backwards, are unknown.
func difference(cores int, before, now counts, used, use Use) yield.Sample {
	s := yield.Sample{At: now.at, Cores: float64(cores), Live: use.Live}
	passed := now.at.Sub(before.at).Seconds()
	if passed <= 0 {
		return s
	}
	ours := use.Known && used.Known
	if ours {
		s.Jobs = max((use.CPU-used.CPU).Seconds()/passed, 0)
	}
	if ours && before.busy >= 0 && now.busy >= before.busy {
		s.Others = yield.Measured(max((now.busy-before.busy).Seconds()/passed-s.Jobs, 0))
	}
	if before.stolen >= 0 && now.stolen >= before.stolen {
		s.Stolen = yield.Measured((now.stolen - before.stolen).Seconds() / passed)
	}
	if now.busy < 0 {
		s.Load = now.load
	}
	for i, into := range [pressures]*yield.Reading{&s.CPU, &s.Memory, &s.IO} {
		*into = waiting(i, before, now, use.Working, passed)
	}
	return s
}

// waiting is the share of the time in which others than this agent waited. Where the
// agent's own waiting is known it is subtracted: for at least the rest, others alone
// waited. Where it is not known, the queues of processors and disks say nothing while
// jobs work, because jobs wait there to let others go first; lack of memory hurts
// every process, no matter which one caused it.
func waiting(kind int, before, now counts, working bool, passed float64) yield.Reading {
	if before.pressure[kind] < 0 || now.pressure[kind] < before.pressure[kind] {
		return yield.Reading{}
	}
	all := (now.pressure[kind] - before.pressure[kind]).Seconds() / passed
	ownKnown := before.own[kind] >= 0 && now.own[kind] >= before.own[kind]
	switch {
	case kind == pressureMemory, !working:
	case ownKnown:
		all -= (now.own[kind] - before.own[kind]).Seconds() / passed
	default:
		return yield.Reading{}
	}
	return yield.Measured(min(max(all, 0), 1))
}

// meanOver is the time over which the mean of Report fades.
const meanOver = 10 * time.Second

// blend moves a mean towards a sample. What the sample does not know the mean
// does not know either.
func blend(mean, s yield.Sample) yield.Sample {
	passed := s.At.Sub(mean.At)
	if mean.At.IsZero() || passed <= 0 || passed > meanOver {
		return s
	}
	share := 1 - math.Exp(-passed.Seconds()/meanOver.Seconds())
	mix := func(old, now yield.Reading) yield.Reading {
		if old.Known && now.Known {
			now.Value = old.Value + share*(now.Value-old.Value)
		}
		return now
	}
	out := s
	out.Jobs = mean.Jobs + share*(s.Jobs-mean.Jobs)
	out.Others, out.Stolen = mix(mean.Others, s.Others), mix(mean.Stolen, s.Stolen)
	out.CPU, out.Memory, out.IO = mix(mean.CPU, s.CPU), mix(mean.Memory, s.Memory), mix(mean.IO, s.IO)
	out.Load = mix(mean.Load, s.Load)
	return out
}
