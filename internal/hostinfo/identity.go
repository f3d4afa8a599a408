package hostinfo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// application names this program to the function that hides the machine's own name, as
// sd_id128_get_machine_app_specific does: nobody can tell from the result which machine it is.
const application = "github.com/mrsmesh/mrsmesh state"

// maxMachineID bounds what is read as the name of a machine.
const maxMachineID = 128

// MachineName names this machine to this program, and stays the same for as long as the system
// is installed. Empty: the system has no such name.
func MachineName() string {
	return machineName("/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid")
}

func machineName(files ...string) string {
	for _, path := range files {
		text, err := os.ReadFile(path)
		id := strings.TrimSpace(string(text))
		if err != nil || id == "" || id == "uninitialized" || len(id) > maxMachineID {
			continue
		}
		return hidden(id)
	}
	return ""
}

func hidden(id string) string {
	mac := hmac.New(sha256.New, []byte(id))
	_, _ = mac.Write([]byte(application)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// maxParts bounds the parts that are named.
const maxParts = 16

// Parts names the network interfaces that are part of this machine, in no more than the words
// that tell them apart. They stay the same over a reboot, and a copy of the machine's disk in
// another one, virtual or not, finds others. Empty: the system names none.
func Parts() []string { return partsIn("/sys/class/net") }

func partsIn(dir string) []string {
	addresses, _ := filepath.Glob(filepath.Join(dir, "*", "address"))
	var parts []string
	for _, path := range addresses {
		if !isPart(filepath.Dir(path)) {
			continue
		}
		text, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(text)); err == nil && id != "" && len(parts) < maxParts {
			parts = append(parts, hidden(id))
		}
	}
	return parts
}

// isPart reports whether an interface belongs to the machine, and has the address that it was
// made with. Others are made by software: a bridge, a tunnel, a container's. Other addresses are
// drawn by chance, as of a radio that hides its own.
func isPart(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "device")); err != nil {
		return false
	}
	assigned, err := os.ReadFile(filepath.Join(dir, "addr_assign_type"))
	return err == nil && strings.TrimSpace(string(assigned)) == permanentAddress
}

// permanentAddress is NET_ADDR_PERM of the kernel's netdevice.h.
const permanentAddress = "0"
