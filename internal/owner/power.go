package owner

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

const (
	powerEvery   = 2 * time.Second // between two looks: a battery may be slow to answer
	maxSupplies  = 64              // of one machine
	supplyLength = 64              // bytes that count of what is told of one
)

// power looks now and then whether the machine runs on battery. It belongs to one goroutine.
type power struct {
	dir     string    // of the supplies; where there is none the machine has no battery
	next    time.Time // when to look again
	battery bool      // what the last look found
}

func newPower(root string) *power {
	return &power{dir: filepath.Join(root, "sys/class/power_supply")}
}

// onBattery looks if it is time to, and says what was found last.
func (p *power) onBattery(now time.Time) bool {
	if now.Before(p.next) {
		return p.battery
	}
	p.next, p.battery = now.Add(powerEvery), yield.OnBattery(supplies(p.dir))
	return p.battery
}

// supplies are what the kernel tells of sources of power.
func supplies(dir string) []yield.Supply {
	list, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer list.Close()
	names, _ := list.Readdirnames(maxSupplies) // what it read counts
	var all []yield.Supply
	for _, name := range names {
		told := func(what string) string { return begin(filepath.Join(dir, name, what)) }
		all = append(all, yield.Supply{
			Kind: told("type"), Scope: told("scope"), Status: told("status"),
			Online: told("online") != "0" && told("online") != "",
		})
	}
	return all
}

// begin is the first words of a small file; empty where it cannot be read.
func begin(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, supplyLength))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// HasBattery reports whether a machine has a battery of its own, as far as the system below root
// tells.
func HasBattery(root string) bool {
	return slices.ContainsFunc(supplies(newPower(root).dir), func(s yield.Supply) bool {
		return s.Kind == "Battery" && s.Scope != "Device"
	})
}
