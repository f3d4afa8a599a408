package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// validate joins everything that is wrong with when the site yields.
func (o Owner) validate() error {
	return errors.Join(
		oneOf("owner.priority", o.Priority, PriorityIdle, priorityLow),
		absolute("owner.root", o.Root),
		o.validateHook(),
		o.validateRemote(),
		o.validateHeat(),
		o.validateInUse(),
		within("owner.patience", o.Patience, time.Second, grid.MaxRuntime),
		within("owner.move-after", o.MoveAfter, time.Second, grid.MaxRuntime),
		zeroOr("owner.look", o.Look, time.Second, time.Hour),
	)
}

// validateHeat wants a temperature that processors have under load, and survive.
func (o Owner) validateHeat() error {
	const low, high = 40, 110
	if o.Heat != 0 && (o.Heat < low || o.Heat > high) {
		return fmt.Errorf("owner.heat: want %d to %d degrees Celsius, or 0 for any, have %d",
			low, high, o.Heat)
	}
	return nil
}

// validateInUse wants parts, and no limits for a time in which nothing is given.
func (o Owner) validateInUse() error {
	u := o.InUse
	for _, f := range [...]struct {
		name string
		have int64
	}{{"in-use.cpus", u.CPUs}, {"in-use.memory", u.Memory}} {
		if f.have < 1 || f.have > percent {
			return fmt.Errorf("%s: want 1 to %d percent, have %d; to give nothing while keyboard "+
				"or mouse are in use: owner.input: true", f.name, percent, f.have)
		}
	}
	if o.Input && (u.CPUs < percent || u.Memory < percent || u.UpBps != 0 || u.DownBps != 0) {
		return errors.New("in-use: owner.input gives nothing while keyboard or mouse are in use: " +
			"set owner.input to false, or leave in-use out")
	}
	return nil
}

// validateRemote wants sites, and few of them: they are asked for at every question from afar.
func (o Owner) validateRemote() error {
	const most = 64
	if len(o.Remote) > most {
		return fmt.Errorf("owner.remote: want at most %d sites, have %d", most, len(o.Remote))
	}
	for _, id := range o.Remote {
		if len(id) != siteIDLength || !strings.HasPrefix(string(id), siteIDBegins) {
			return fmt.Errorf("owner.remote: want IDs such as %s..., which siteagent members "+
				"prints, have %q: a name proves nothing", siteIDBegins, id)
		}
	}
	return nil
}

// The form of the ID of a site, made of an ed25519 key.
const (
	siteIDBegins = "12D3KooW"
	siteIDLength = 52
)

// validateHook wants a program that is found without a search, as the agent's PATH may be another
// one than the owner's.
func (o Owner) validateHook() error {
	const most = 64
	switch {
	case len(o.Hook) == 0:
		return nil
	case len(o.Hook) > most:
		return fmt.Errorf("owner.hook: want at most %d arguments, have %d; "+
			"write them into a script", most-1, len(o.Hook)-1)
	case !filepath.IsAbs(o.Hook[0]):
		return fmt.Errorf("owner.hook: want the absolute path of a program first, then its "+
			"arguments as a list, have %q; write a line of a shell into a script", o.Hook[0])
	case strings.Contains(strings.Join(o.Hook, ""), "\x00"):
		return errors.New("owner.hook: want no argument with a zero byte")
	default:
		return nil
	}
}
