package gate

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxFrame bounds what is said before messages are: a statement in JSON fits well.
const maxFrame = 48 << 10

// say writes a value in JSON, with its length before it.
func say(out io.Writer, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %T: %w", value, err)
	}
	if len(body) > maxFrame {
		return fmt.Errorf("write %T: %w", value, protocol.ErrTooLarge)
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	if _, err := out.Write(frame); err != nil {
		return fmt.Errorf("write %T: %w", value, err)
	}
	return nil
}

// listen reads what say wrote, and not a byte more.
func listen(in io.Reader, into any) error {
	var header [4]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return fmt.Errorf("read %T: %w", into, err)
	}
	size := binary.BigEndian.Uint32(header[:])
	if size == 0 || size > maxFrame {
		return fmt.Errorf("read %T: %w: frame of %d bytes, want 1 to %d",
			into, protocol.ErrTooLarge, size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return fmt.Errorf("read %T: %w", into, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read %T: %w: %w", into, protocol.ErrMalformed, err)
	}
	return nil
}
