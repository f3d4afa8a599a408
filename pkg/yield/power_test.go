package yield

import "testing"

func TestOnBattery(t *testing.T) {
	mains := func(on bool) Supply { return Supply{Kind: "Mains", Online: on} }
	battery := func(status string) Supply { return Supply{Kind: "Battery", Status: status} }
	for _, c := range []struct {
		name string
		all  []Supply
		want bool
	}{
		{"a desktop", nil, false},
		{"plugged in", []Supply{mains(true), battery("Charging")}, false},
		{"plugged in, and the plug is weak", []Supply{battery("Discharging"), mains(true)}, false},
		{"unplugged", []Supply{mains(false), battery("Discharging")}, true},
		{"no plug is told of", []Supply{battery("Discharging")}, true},
		{"full", []Supply{mains(false), battery("Full")}, false},
		{"one of two", []Supply{battery("Not charging"), battery("Discharging")}, true},
		{"power through USB", []Supply{battery("Discharging"), {Kind: "USB", Online: true}}, false},
		{"a mouse", []Supply{{Kind: "Battery", Scope: "Device", Status: "Discharging"}}, false},
		{"a power cut", []Supply{{Kind: "UPS", Status: "Discharging"}}, true},
		{"what nobody knows", []Supply{{Kind: "Battery"}, {}}, false},
	} {
		if got := OnBattery(c.all); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
