package agent

import (
	"cmp"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Host holds what is known of the machine at the start, and how more is found out.
type Host struct {
	Machine  hostinfo.Machine
	Measured hostinfo.Measured
	Want     hostinfo.Want // what is measured as soon as the machine is quiet, unless Measured has it
	Pending  string        // why it was not measured before, for people
	// Capability is the site's with what was measured; nil = nothing is measured any more.
	Capability func(hostinfo.Measured) grid.Capability
	Every      time.Duration // between two looks at what others leave; 0 = the ceilings are believed
}

// hostState knows what the machine can do, nominally and now. Its fields may be read by
// every goroutine; watchHost's changes them, and who changes the terms.
type hostState struct {
	mu       sync.Mutex
	nominal  grid.Capability   // guarded by mu
	left     grid.Capability   // guarded by mu; what others leave of it
	measured hostinfo.Measured // guarded by mu
	room     hostinfo.Room     // guarded by mu
	pending  string            // guarded by mu

	lookNow chan struct{}   // capacity 1: what others leave is to be looked at without waiting
	turn    sync.Mutex      // held while both machines are told of a capability: the newest comes last
	told    grid.Capability // guarded by turn: what the site was told last to be left

	pause time.Duration // only watchHost's: after a measurement that did not do
	again time.Time     // only watchHost's: no measurement before
}

// A measurement that found no quiet machine is repeated after a pause that doubles:
// at 0.6 s each that is nothing within a minute and a thousandth of an hour.
const (
	firstPause   = time.Minute
	longestPause = time.Hour
)

func newHost(c Host, nominal grid.Capability) *hostState {
	m := c.Machine
	return &hostState{
		lookNow: make(chan struct{}, 1), nominal: nominal, left: nominal, told: nominal,
		measured: c.Measured, pending: c.Pending,
		room: hostinfo.Room{
			MemoryBytes: m.MemoryBytes, FreeMemory: m.FreeMemory, DiskBytes: m.DiskBytes,
			FreeDiskBytes: m.FreeDiskBytes,
		},
	}
}

// ceilings are what other sites are told: the nominal capability, which changes
// only when something is measured.
func (h *hostState) ceilings() grid.Capability {
	nominal, _ := h.now()
	return nominal
}

// now is the nominal capability, and what others leave of it.
func (h *hostState) now() (nominal, left grid.Capability) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nominal, h.left
}

// watchHost looks at the machine from time to time: it measures what could not be
// measured at the start, and tells the site what others leave.
func (a *Agent) watchHost() {
	if a.cfg.Host.Every <= 0 {
		return
	}
	a.spawn(func() {
		tick := time.NewTicker(a.cfg.Host.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-a.host.lookNow:
			case <-a.ctx.Done():
				return
			}
			load := a.owner.Report()
			a.measureHost(load)
			a.lookAtHost(load.Mean)
		}
	})
}

// unsteady says why a speed that is used will be measured again.
const unsteady = "the speed was measured while the machine was busy; " +
	"it is measured again when it is quiet"

// measureHost measures what is still unknown, once the owner does not need the
// machine and one core of work is in nobody's way: not in that of jobs here either, unless their
// speed is wholly unknown.
func (a *Agent) measureHost(now owner.Report) {
	c, known := a.cfg.Host, a.host.known()
	missing := c.Want.Missing(known)
	if c.Capability == nil || missing == (hostinfo.Want{}) || time.Now().Before(a.host.again) {
		return
	}
	// A better figure is worth nothing to jobs that it disturbs, and would not become one.
	if known.CoreMFLOPS > 0 && a.work.use().Working {
		return
	}
	busy, why := a.ownerWants(now)
	if busy {
		a.host.setPending("waiting for a quiet machine: " + why)
		return
	}
	a.host.pause = min(max(2*a.host.pause, firstPause), longestPause)
	a.host.again = time.Now().Add(a.host.pause)
	found, err := hostinfo.Measure(a.ctx, c.Machine, a.cfg.StateDir, known, missing)
	switch {
	case err != nil:
		a.host.setPending(err.Error())
		a.log.Warn("the machine could not be measured", "error", err)
	case !found.Steady && c.Want.Core:
		a.host.setPending(unsteady)
	default:
		a.host.setPending("")
	}
	if found == known {
		return
	}
	a.host.turn.Lock()
	defer a.host.turn.Unlock()
	nominal := a.Terms().Capability(found)
	if err := nominal.Validate(); err != nil {
		a.log.Warn("what was measured makes no sense", "error", err)
		return
	}
	a.host.measure(nominal, found)
	a.tellBoth(step.CapacityChanged{Capability: nominal})
	a.mesh.Announce()
}

// ownerWants says whether to measure would be in the owner's way.
func (a *Agent) ownerWants(now owner.Report) (busy bool, why string) {
	switch {
	case now.State.Reason != grid.ReasonNone:
		return true, now.State.Why
	case !a.Terms().Owner.Yield || now.Blind:
		return false, ""
	case now.Sample.At.IsZero():
		return true, "nobody has looked at it yet"
	default:
		return owner.InTheWay(now.Sample, a.rules())
	}
}

// lookAtHost works out what others leave now, and tells the site if that changed
// by much.
func (a *Agent) lookAtHost(mean yield.Sample) {
	room, err := hostinfo.ProbeRoom(a.ctx, a.cfg.StateDir)
	if err != nil {
		a.log.Debug("the machine does not tell how much is free", "error", err)
	}
	var held grid.Resources
	if a.site.ask(a.ctx, func() { held = a.siteMachine.Held() }) != nil {
		return
	}
	rules := a.rules()
	a.host.turn.Lock()
	defer a.host.turn.Unlock()
	nominal := a.host.ceilings()
	left := hostinfo.Left(nominal, hostinfo.Load{
		Cores: cmp.Or(mean.Cores, float64(a.cfg.Host.Machine.Cores)), Others: mean.Others,
		Stolen:  mean.Stolen,
		Reserve: rules.Reserve, Floor: rules.Floor, Fair: !a.Terms().Owner.Yield, Held: held,
		FreeMemory: room.FreeMemory,
		FreeDisk:   spareOf(room.FreeDiskBytes, a.Terms().Owner.FreeDisk),
	})
	a.host.see(left, room)
	if hostinfo.Differs(nominal, a.host.told, left) {
		a.host.told = left
		a.site.tell(step.CapacityChanged{Capability: nominal, Left: &left})
	}
}

// spareOf returns the bytes that are free beside those that the owner keeps; -1 = unknown.
func spareOf(free, kept int64) int64 {
	if free < 0 {
		return free
	}
	return max(free-kept, 0)
}

func (h *hostState) known() hostinfo.Measured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.measured
}

func (h *hostState) setPending(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = why
}

// measure takes what was found. What others leave of it is worked out anew. It needs
// turn.
func (h *hostState) measure(nominal grid.Capability, found hostinfo.Measured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nominal, h.left, h.measured = nominal, nominal, found
	h.told = nominal
}

func (h *hostState) see(left grid.Capability, room hostinfo.Room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.room = left, room
}
