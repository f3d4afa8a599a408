package obs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestOneCauseDoesNotFillTheLog(t *testing.T) {
	var out bytes.Buffer
	log := calm(
		slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	).With("room", "p2p")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	say := func(level slog.Level, message, event string) {
		r := slog.NewRecord(now, level, message, 0)
		if event != "" {
			r.AddAttrs(slog.String("event", event))
		}
		if err := log.Handler().Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(text string) int { return strings.Count(out.String(), text) }
	const flood = 10_000
	for i := range flood { // 100 seconds
		now = now.Add(10 * time.Millisecond)
		say(slog.LevelWarn, "report", "forged")
		say(slog.LevelDebug, "detail", "")
		if i%1000 == 0 {
			say(slog.LevelWarn, "report", "lost")
		}
	}
	if got := lines("event=forged"); got < calmBurst || got > calmBurst+101 {
		t.Errorf("%d lines of one cause in 100 s, want %d and one each second", got, calmBurst)
	}
	if got := lines("event=lost"); got != 10 {
		t.Errorf("%d lines of another cause, want all 10", got)
	}
	if got := lines("msg=detail"); got != flood {
		t.Errorf("%d debug lines, want all", got)
	}
	if lines("left_out=99") == 0 || lines("room=p2p") != strings.Count(out.String(), "\n") {
		t.Error("what was left out, or the logger's own attributes, are not said")
	}
	for i := range 3 * calmCauses {
		say(slog.LevelInfo, fmt.Sprint("message ", i), "")
	}
	if got := len(log.Handler().(calmHandler).causes.all); got > calmCauses+1 {
		t.Errorf("%d causes are told apart, want at most %d", got, calmCauses)
	}
	if calm(nil).Enabled(context.Background(), slog.LevelError) {
		t.Error("no logger says something")
	}
}
