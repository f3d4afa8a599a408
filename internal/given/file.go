package given

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// format is the number of the file's form. A later one may not be readable here.
const format = 1

// maxBytes is more than the bounds of an account allow, also when JSON escapes all of each name.
const maxBytes = 4 << 20

// content is the file.
type content struct {
	Format int   `json:"format"`
	Days   []Day `json:"days"`
}

// errDamaged says that a file is there and is no account.
var errDamaged = errors.New("not an account of what was given")

func encode(days []Day) ([]byte, error) {
	text, err := json.Marshal(content{Format: format, Days: days})
	return append(text, '\n'), err
}

// read reads a file that may be absent.
func read(path string) ([]Day, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// decode reads what encode wrote.
func decode(text []byte) ([]Day, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%w: longer than %d bytes", errDamaged, maxBytes)
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if c.Format != format || len(c.Days) > maxDays {
		return nil, fmt.Errorf("%w: want format %d and at most %d days, have format %d and %d days",
			errDamaged, format, maxDays, c.Format, len(c.Days))
	}
	last := ""
	for i := range c.Days {
		if err := c.Days[i].check(last); err != nil {
			return nil, err
		}
		last = c.Days[i].Date
	}
	return c.Days, nil
}

// check reports what no account says. Days ascend.
func (d *Day) check(after string) error {
	if _, err := time.Parse(time.DateOnly, d.Date); err != nil || d.Date <= after {
		return fmt.Errorf("%w: date %.20q after %.20q", errDamaged, d.Date, after)
	}
	if len(d.Shares) > maxFor+1 {
		return fmt.Errorf("%w: %s has %d shares, want at most %d",
			errDamaged, d.Date, len(d.Shares), maxFor+1)
	}
	seen := make(map[grid.SiteID]bool)
	for _, s := range d.Shares {
		sane := s.CoreSeconds >= 0 && !math.IsInf(s.CoreSeconds, 0) && s.Tasks >= 0
		if !sane || seen[s.For] || len(s.Name) > maxName {
			return fmt.Errorf("%w: share of %.60q on %s", errDamaged, s.For, d.Date)
		}
		seen[s.For] = true
	}
	return nil
}
