package history

import (
	"os"
	"strings"
)

// BootID names the present boot of this machine, where the system does; else it is
// empty.
func BootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(text))
	if err != nil || len(id) > maxBootID || strings.ContainsAny(id, " \n") {
		return ""
	}
	return id
}
