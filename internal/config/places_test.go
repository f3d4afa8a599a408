package config

import (
	"path/filepath"
	"testing"
)

// Files lie where people of each system look for them.
func TestPlacesOfFiles(t *testing.T) {
	t.Parallel()
	env := func(set map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := set[name]; return v, ok }
	}
	for _, c := range []struct {
		set          map[string]string
		file, socket string // socket: empty where it depends on the user's number
	}{
		{map[string]string{"HOME": "/home/ada"}, "/home/ada/.config/mrs/siteagent.yaml", ""},
		{
			map[string]string{
				"HOME": "/home/ada", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/run/user/7",
			},
			"/c/mrs/siteagent.yaml", "/run/user/7/mrs.sock",
		},
		{ // as Windows names them
			map[string]string{"USERPROFILE": "/Users/ada", "LOCALAPPDATA": "/Users/ada/AppData/Local"},
			"/Users/ada/.config/mrs/siteagent.yaml", "/Users/ada/AppData/Local/mrs/mrs.sock",
		},
	} {
		if got := AgentFile(env(c.set)); got != filepath.FromSlash(c.file) {
			t.Errorf("AgentFile(%v) = %s, want %s", c.set, got, c.file)
		}
		if got := socketPath(env(c.set)); c.socket != "" && got != filepath.FromSlash(c.socket) {
			t.Errorf("socketPath(%v) = %s, want %s", c.set, got, c.socket)
		}
	}
}
