package config

import (
	"path/filepath"
	"time"
)

// Secret is a text that is never printed.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Submit is the configuration of the command line.
type Submit struct {
	Addr    string        // agent to talk to: a socket's path, or http://HOST:PORT
	Token   Secret        // bearer token for TCP
	Domain  string        // domain the agent must belong to; empty = any
	Output  string        // table, wide, json, yaml or name
	Runtime time.Duration // estimate for jobs that give none
}

// defaultSubmit talks to this user's agent through its socket.
func defaultSubmit(env func(string) (string, bool)) Submit {
	return Submit{Addr: socketPath(env), Output: "table", Runtime: 10 * time.Minute}
}

// StateTokenPath returns where an agent with default settings keeps its token; the
// command line reads it when it is given a TCP address and no token.
func StateTokenPath(env func(string) (string, bool)) string {
	return filepath.Join(folder(env, "XDG_STATE_HOME", ".local/state"), "mrs", "api.token")
}
