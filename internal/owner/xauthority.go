package owner

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

const (
	maxAuthority = 1 << 20 // bytes that are read of the file
	cookieLength = 16
)

// families of addresses, as Xauth.h has them
const (
	familyLocal = 256 // the address is the name of the machine
	familyWild  = 65535
)

// cookieFor is the key to this machine's X server of a number; nil: it may be open without.
func cookieFor(number string) []byte {
	name := os.Getenv("XAUTHORITY")
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		name = filepath.Join(home, ".Xauthority")
	}
	//nolint:gosec // the owner names it in the agent's own environment
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe would be waited for
	}
	file, err := os.Open(name) //nolint:gosec // likewise
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxAuthority))
	if err != nil {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil
	}
	return findCookie(text, host, number)
}

// findCookie looks for a cookie in the text of such a file: its first one that fits.
func findCookie(text []byte, host, number string) []byte {
	for len(text) >= 2 {
		family := binary.BigEndian.Uint16(text)
		text = text[2:]
		var fields [4][]byte // address, number of the server, name of the method, its data
		for i := range fields {
			if len(text) < 2 {
				return nil
			}
			length := int(binary.BigEndian.Uint16(text))
			if text = text[2:]; len(text) < length {
				return nil
			}
			fields[i], text = text[:length], text[length:]
		}
		here := family == familyWild || family == familyLocal && string(fields[0]) == host
		mine := len(fields[1]) == 0 || string(fields[1]) == number
		if here && mine && string(fields[2]) == x11CookieName && len(fields[3]) == cookieLength {
			return bytes.Clone(fields[3])
		}
	}
	return nil
}
