package obs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// ErrConfig is the cause of an error in the configuration of logging.
var ErrConfig = errors.New("invalid logging configuration")

// NewLogger makes a logger that writes lines to w. Format is "text" or "json",
// level "debug", "info", "warn" or "error"; empty means "text" and "info". The
// writer needs no lock of its own. One cause cannot fill the log: see Calm.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	lv, err := ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return NewLoggerAt(w, format, lv)
}

// NewLoggerAt is NewLogger with a level that may change while it logs, such as a
// slog.LevelVar.
func NewLoggerAt(w io.Writer, format string, level slog.Leveler) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: level}
	switch strings.ToLower(format) {
	case "", "text":
		return calm(slog.New(slog.NewTextHandler(w, opts))), nil
	case "json":
		return calm(slog.New(slog.NewJSONHandler(w, opts))), nil
	default:
		return nil, fmt.Errorf("%w: log format %q: want text or json", ErrConfig, format)
	}
}

// ParseLevel reads a level by its name; empty is info.
func ParseLevel(level string) (slog.Level, error) {
	switch strings.ToLower(level) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	default:
		return 0, fmt.Errorf("%w: log level %q: want debug, info, warn or error", ErrConfig, level)
	}
}

// Or is the logger itself, or one that discards everything when it is nil, so
// that a component never has to ask.
func Or(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
