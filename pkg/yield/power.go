package yield

// WhyBattery is why a site yields on battery, for people.
const WhyBattery = "the machine runs on battery"

// Supply is a source of power, in the words in which the operating system describes it.
type Supply struct {
	Kind   string // Mains, USB, Wireless, Battery, UPS
	Scope  string // Device: of something beside the machine, such as a mouse
	Status string // of a battery: Discharging, Charging, Full, ...; empty: unknown
	Online bool   // of the others: it gives power
}

// OnBattery reports whether a machine with these supplies runs on battery: one of its own is
// discharging, and nothing else gives power. A machine that tells of none does not.
func OnBattery(all []Supply) bool {
	discharging := false
	for _, s := range all {
		switch {
		case s.Scope == "Device":
		case s.Kind == "Battery" || s.Kind == "UPS":
			discharging = discharging || s.Status == "Discharging"
		case s.Online:
			return false
		}
	}
	return discharging
}
