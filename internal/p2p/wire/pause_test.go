package wire

import (
	"testing"
	"time"
)

func TestBackoffGrowsToItsBound(t *testing.T) {
	b := Backoff{Low: 500 * time.Millisecond, High: 30 * time.Second}
	for i, ms := range []int{500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		want := time.Duration(ms) * time.Millisecond
		if got := b.Next(false); got < want/2 || got > want {
			t.Errorf("pause %d = %s, want %s to %s", i, got, want/2, want)
		}
	}
	b.Reset()
	if got := b.Next(false); got > 500*time.Millisecond {
		t.Errorf("pause after reset = %s", got)
	}
	if got := b.Next(true); got < 15*time.Second {
		t.Errorf("pause after a refusal = %s, want the longest", got)
	}
}
