package owner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// X's protocol, as https://www.x.org/releases/current/doc/xproto/x11protocol.html has it, and its
// extension MIT-SCREEN-SAVER.
const (
	x11CookieName     = "MIT-MAGIC-COOKIE-1"
	x11Saver          = "MIT-SCREEN-SAVER"
	x11QueryExtension = 98
	x11QueryInfo      = 1  // of the extension
	x11Packet         = 32 // bytes of an answer, an error or an event
	x11MaxPackets     = 64 // that are read for one answer
)

// kinds of packets; others are events
const (
	x11Error   = 0
	x11Reply   = 1
	x11Generic = 35 // an event that may be longer, for those who asked for one
)

var errX11 = errors.New("it does not answer as an X server does")

// askX11 asks a server for the time since there was input. A cookie may be missing.
func askX11(conn io.ReadWriter, cookie []byte) (time.Duration, error) {
	root, err := x11Begin(conn, cookie)
	if err != nil {
		return 0, err
	}
	query := append([]byte{x11QueryExtension, 0, 6, 0, byte(len(x11Saver)), 0, 0, 0}, x11Saver...)
	reply, err := x11Ask(conn, 1, query)
	if err != nil {
		return 0, err
	}
	if reply[8] == 0 {
		return 0, errors.New("it has no extension " + x11Saver)
	}
	query = binary.LittleEndian.AppendUint32([]byte{reply[9], x11QueryInfo, 2, 0}, root)
	if reply, err = x11Ask(conn, 2, query); err != nil {
		return 0, err
	}
	return time.Duration(binary.LittleEndian.Uint32(reply[16:])) * time.Millisecond, nil
}

// x11Begin begins to talk; root is the window of the first screen.
func x11Begin(conn io.ReadWriter, cookie []byte) (root uint32, err error) {
	hello := make([]byte, 12, 48)
	hello[0], hello[2] = 'l', 11 // little endian, version 11
	if len(cookie) > 0 {
		hello[6], hello[8] = byte(len(x11CookieName)), byte(len(cookie))
		hello = append(append(append(hello, x11CookieName...), 0, 0), cookie...)
	}
	if _, err = conn.Write(hello); err != nil {
		return 0, err
	}
	head := make([]byte, 8)
	if _, err = io.ReadFull(conn, head); err != nil {
		return 0, err
	}
	body := make([]byte, 4*int(binary.LittleEndian.Uint16(head[6:])))
	if _, err = io.ReadFull(conn, body); err != nil {
		return 0, err
	}
	if head[0] == 0 { // the length of the reason is in head[1]
		return 0, fmt.Errorf("it refuses: %q", body[:min(int(head[1]), len(body))])
	}
	if head[0] != 1 || len(body) < 32 || body[20] == 0 {
		return 0, errX11
	}
	vendor, formats := int(binary.LittleEndian.Uint16(body[16:])), int(body[21])
	first := 32 + (vendor+3)/4*4 + 8*formats // of the screens
	if len(body) < first+4 {
		return 0, errX11
	}
	return binary.LittleEndian.Uint32(body[first:]), nil
}

// x11Ask sends the query of a number and reads its answer, of one packet.
func x11Ask(conn io.ReadWriter, number uint16, query []byte) ([]byte, error) {
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	packet := make([]byte, x11Packet)
	for range x11MaxPackets {
		if _, err := io.ReadFull(conn, packet); err != nil {
			return nil, err
		}
		more := binary.LittleEndian.Uint32(packet[4:])
		switch {
		case packet[0] == x11Error:
			return nil, fmt.Errorf("it answers with error %d", packet[1])
		case packet[0] == x11Generic && more != 0:
			return nil, errX11
		case packet[0] != x11Reply: // an event, such as a new keyboard
		case binary.LittleEndian.Uint16(packet[2:]) != number || more != 0:
			return nil, errX11
		default:
			return packet, nil
		}
	}
	return nil, errX11
}
