package history

import (
	"os"
	"strings"
)

// BootID names the present boot of this machine, where the system does; else it is
// empty.
func BootID() string { return bootIDIn("/proc/sys/kernel/random/boot_id") }

func bootIDIn(path string) string {
	text, err := os.ReadFile(path)
	id := strings.TrimSpace(string(text))
	if err != nil || len(id) > maxBootID || strings.ContainsAny(id, " \n") {
		return ""
	}
	return id
}
