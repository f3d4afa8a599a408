package session

import (
	"errors"
	"testing"
	"time"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// open uses a code that must be good.
func open(t *testing.T, b *Book, now time.Time, guest bool) (string, Session) {
	t.Helper()
	key, s, err := b.Open(now, b.Link(now, guest), "")
	if err != nil || key == "" || s.CSRF == "" || s.Guest != guest {
		t.Fatalf("Open = %q, %+v, %v, want a session; guest: %v", key, s, err, guest)
	}
	return key, s
}

// isIn reports whether a secret has a session.
func isIn(b *Book, now time.Time, key string) bool {
	_, leave, found := b.Enter(now, key, func() {})
	if found {
		leave()
	}
	return found
}

// TestACodeIsGoodOnceAndForAMinute tries codes at their last moment and after it.
func TestACodeIsGoodOnceAndForAMinute(t *testing.T) {
	t.Parallel()
	var b Book
	code, late := b.Link(noon(), false), b.Link(noon(), false)
	key, _, err := b.Open(noon().Add(LinkLasts), code, "")
	if err != nil {
		t.Fatalf("Open at the last moment: %v", err)
	}
	after := noon().Add(LinkLasts + 1)
	if _, _, err := b.Open(after, late, ""); !errors.Is(err, errOver) {
		t.Errorf("Open after it: %v, want %v", err, errOver)
	}
	if _, _, err := b.Open(noon().Add(time.Hour), late, ""); !errors.Is(err, errUnknown) {
		t.Errorf("Open long after it: %v, want %v", err, errUnknown)
	}
	if !isIn(&b, noon().Add(time.Hour), key) {
		t.Error("a link that is too old ended another one's session")
	}
}

// TestACodeThatComesTwiceEndsItsSession lets two use one link: neither is signed in then.
func TestACodeThatComesTwiceEndsItsSession(t *testing.T) {
	t.Parallel()
	var b Book
	other, _ := open(t, &b, noon(), false)
	code := b.Link(noon(), false)
	key, _, err := b.Open(noon(), code, "")
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	_, leave, found := b.Enter(noon(), key, func() { ended++ })
	if !found {
		t.Fatal("a new session is not found")
	}
	for range 2 {
		if _, _, err := b.Open(noon(), code, ""); !errors.Is(err, ErrUsed) {
			t.Errorf("Open again: %v, want %v", err, ErrUsed)
		}
	}
	leave()
	if ended != 1 || isIn(&b, noon(), key) {
		t.Errorf("its requests were ended %d times, want once; still signed in: %v",
			ended, isIn(&b, noon(), key))
	}
	if !isIn(&b, noon(), other) {
		t.Error("another session was ended with it")
	}
}

// TestTheSameBrowserMayComeTwice opens a link that another program has opened in the same browser.
func TestTheSameBrowserMayComeTwice(t *testing.T) {
	t.Parallel()
	var b Book
	code := b.Link(noon(), false)
	other, _ := open(t, &b, noon(), false)
	key, s, err := b.Open(noon(), code, other)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := b.Open(noon().Add(time.Second), code, key)
	if err != nil || again != key || same != s {
		t.Errorf("Open again = %q, %+v, %v, want the same", again, same, err)
	}
	if _, _, err := b.Open(noon(), code, other); !errors.Is(err, ErrUsed) {
		t.Errorf("Open with another session's secret: %v, want %v", err, ErrUsed)
	}
	if _, _, err := b.Open(noon(), code, key); !errors.Is(err, ErrUsed) {
		t.Errorf("Open when the session has ended: %v, want %v", err, ErrUsed)
	}
}

// TestGuessesAreCounted sends wrong codes: after ten in a minute nothing more is said about them,
// and a good one is still taken.
func TestGuessesAreCounted(t *testing.T) {
	t.Parallel()
	var b Book
	good := b.Link(noon(), false)
	for i := range 12 {
		want := errUnknown
		if i >= 10 {
			want = ErrGuessed
		}
		if _, _, err := b.Open(noon(), "guess", ""); !errors.Is(err, want) {
			t.Errorf("guess %d: %v, want %v", i, err, want)
		}
	}
	if _, _, err := b.Open(noon(), good, ""); err != nil {
		t.Errorf("a good code after guesses: %v", err)
	}
	later := noon().Add(time.Minute + 1)
	if _, _, err := b.Open(later, "guess", ""); !errors.Is(err, errUnknown) {
		t.Errorf("a guess a minute later: %v, want %v", err, errUnknown)
	}
}

// TestSessionsEndByTime looks at each kind at its last moment and after it.
func TestSessionsEndByTime(t *testing.T) {
	t.Parallel()
	for guest, lasts := range map[bool]time.Duration{false: 12 * time.Hour, true: 24 * time.Hour} {
		var b Book
		key, s := open(t, &b, noon(), guest)
		if s.Ends != noon().Add(lasts) || !isIn(&b, s.Ends, key) || isIn(&b, s.Ends.Add(1), key) {
			t.Errorf("guest %v: ends %v, want after %v", guest, s.Ends, lasts)
		}
	}
	// The clock of a machine that sleeps stops; that of its wall goes on.
	var b Book
	now := time.Now()
	key, _ := open(t, &b, now, false)
	if isIn(&b, now.Round(0).Add(13*time.Hour), key) {
		t.Error("a session outlives its time by the wall clock")
	}
}

// TestSessionsAreBounded opens one more than there may be: the oldest ends, and what it asked.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	var b Book
	var keys []string
	ended := false
	for i := range 33 {
		key, _ := open(t, &b, noon().Add(time.Duration(i)), i%2 == 1)
		keys = append(keys, key)
		if i == 0 {
			b.Enter(noon(), key, func() { ended = true })
		}
	}
	for i, key := range keys {
		if got, want := isIn(&b, noon(), key), i > 0; got != want {
			t.Errorf("session %d is signed in: %v, want %v", i, got, want)
		}
	}
	if !ended {
		t.Error("the oldest session's request goes on")
	}
}

// TestLinksAreBounded makes one more than there may be.
func TestLinksAreBounded(t *testing.T) {
	t.Parallel()
	var b Book
	first := b.Link(noon(), false)
	second := b.Link(noon(), false)
	for range 31 {
		b.Link(noon(), false)
	}
	if _, _, err := b.Open(noon(), first, ""); !errors.Is(err, errUnknown) {
		t.Errorf("the oldest of 33 links: %v, want %v", err, errUnknown)
	}
	if _, _, err := b.Open(noon(), second, ""); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestSigningOut ends one session and no other; requests that have left are not told.
func TestSigningOut(t *testing.T) {
	t.Parallel()
	var b Book
	one, s := open(t, &b, noon(), false)
	two, other := open(t, &b, noon(), false)
	if one == two || s.CSRF == other.CSRF {
		t.Fatalf("two sessions share a secret")
	}
	_, leave, _ := b.Enter(noon(), one, func() { t.Error("a request that has left was ended") })
	leave()
	b.End(one)
	b.End(one)
	if isIn(&b, noon(), one) || !isIn(&b, noon(), two) {
		t.Errorf("signed in: %v and %v, want the second alone",
			isIn(&b, noon(), one), isIn(&b, noon(), two))
	}
}
