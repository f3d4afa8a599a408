package hostinfo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
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
		mac := hmac.New(sha256.New, []byte(id))
		_, _ = mac.Write([]byte(application)) // never fails
		return hex.EncodeToString(mac.Sum(nil)[:16])
	}
	return ""
}
