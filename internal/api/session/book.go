package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"time"
)

// How long things last.
const (
	LinkLasts  = time.Minute
	ownerLasts = 12 * time.Hour
	guestLasts = 24 * time.Hour

	remembered = 10 * time.Minute // an old code is refused with the reason for so long
	guessing   = time.Minute      // the span in which wrong codes are counted
)

// How many there may be.
const (
	maxSessions = 32 // the oldest goes
	maxLinks    = 32 // the oldest goes
	maxGuesses  = 10 // wrong codes in a span that are told why they are wrong
)

// Why a code opens nothing.
var (
	// ErrUsed is for a code that has opened a session before, which is ended by that.
	ErrUsed = errors.New("the link was used already")
	// errOver is for a code that is older than LinkLasts.
	errOver = errors.New("the link is too old")
	// errUnknown is for a code that no link has.
	errUnknown = errors.New("no link has this code")
	// ErrGuessed is for an unknown code after many of them. A good one opens a session even then:
	// strangers must not be able to shut the owner out.
	ErrGuessed = errors.New("too many codes that no link has")
)

// Session tells a browser that is signed in about itself.
type Session struct {
	CSRF  string    // that its requests show, to tell them from those of other pages
	Guest bool      // it may look, and change nothing
	Ends  time.Time // by itself
}

// Book holds links and sessions. The zero value is an empty one. It is safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	links    []link   // guarded by mu; the oldest first
	sessions []opened // guarded by mu; the oldest first
	wrong    int      // guarded by mu; unknown codes since
	since    time.Time
}

type digest [sha256.Size]byte

type link struct {
	code    digest
	made    time.Time
	guest   bool
	session digest // that it opened; zero = none
}

type opened struct {
	Session

	secret digest
	began  time.Time
	inside map[*func()]struct{} // to be called when it ends
}

// Link makes a link, for an owner or a guest, and returns its code.
func (b *Book) Link(now time.Time, guest bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	code := secret()
	b.links = append(b.links, link{code: sum(code), made: now, guest: guest})
	b.links = b.links[max(0, len(b.links)-maxLinks):]
	return code
}

// Open uses a link and returns the secret of the session that it opens. A code that comes a second
// time is refused and ends the session, as one of the two who have it is not the owner's browser;
// unless it comes with the secret of that session, held by the browser: then it changes nothing.
func (b *Book) Open(now time.Time, code, held string) (string, Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.links = slices.DeleteFunc(b.links, func(l link) bool { return over(now, l.made, remembered) })
	b.clear(now)
	at := b.find(sum(code))
	if at < 0 {
		return "", Session{}, b.guessed(now)
	}
	l := &b.links[at]
	if l.session != (digest{}) {
		if at := b.at(l.session); at >= 0 && l.session == sum(held) {
			return held, b.sessions[at].Session, nil
		}
		b.drop(l.session)
		return "", Session{}, ErrUsed
	}
	if over(now, l.made, LinkLasts) {
		return "", Session{}, errOver
	}
	lasts := ownerLasts
	if l.guest {
		lasts = guestLasts
	}
	key := secret()
	s := opened{
		Session: Session{CSRF: secret(), Guest: l.guest, Ends: now.Add(lasts)},
		secret:  sum(key), began: now, inside: map[*func()]struct{}{},
	}
	l.session = s.secret
	if len(b.sessions) == maxSessions {
		b.drop(b.sessions[0].secret)
	}
	b.sessions = append(b.sessions, s)
	return key, s.Session, nil
}

// Enter finds the session of a secret for a request. If the session ends by more than its time
// before leave is called, out is.
func (b *Book) Enter(now time.Time, key string, out func()) (s Session, leave func(), found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear(now)
	at := b.at(sum(key))
	if at < 0 {
		return Session{}, nil, false
	}
	inside := b.sessions[at].inside
	inside[&out] = struct{}{}
	leave = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(inside, &out)
	}
	return b.sessions[at].Session, leave, true
}

// End ends the session of a secret, if there is one.
func (b *Book) End(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(sum(key))
}

// at returns the place of a secret among the sessions, or -1. It looks at all of them: how long
// that takes tells nothing.
func (b *Book) at(key digest) int {
	at := -1
	for i, o := range b.sessions {
		if subtle.ConstantTimeCompare(o.secret[:], key[:]) == 1 {
			at = i
		}
	}
	return at
}

// find returns the place of a code among the links, or -1. It looks at all of them.
func (b *Book) find(code digest) int {
	at := -1
	for i, l := range b.links {
		if subtle.ConstantTimeCompare(l.code[:], code[:]) == 1 {
			at = i
		}
	}
	return at
}

// guessed counts a code that no link has.
func (b *Book) guessed(now time.Time) error {
	if over(now, b.since, guessing) {
		b.since, b.wrong = now, 0
	}
	if b.wrong >= maxGuesses {
		return ErrGuessed
	}
	b.wrong++
	return errUnknown
}

// clear ends the sessions whose time is over.
func (b *Book) clear(now time.Time) {
	for _, o := range slices.Clone(b.sessions) {
		if over(now, o.began, o.Ends.Sub(o.began)) {
			b.drop(o.secret)
		}
	}
}

// drop ends a session, and has its requests ended.
func (b *Book) drop(which digest) {
	at := b.at(which)
	if at < 0 {
		return
	}
	for out := range b.sessions[at].inside {
		(*out)()
	}
	b.sessions = slices.Delete(b.sessions, at, at+1)
}

// over reports whether more than a span has passed by one of the two clocks: one stops while the
// machine sleeps, the other may be set.
func over(now, since time.Time, span time.Duration) bool {
	return now.Sub(since) > span || now.Round(0).Sub(since.Round(0)) > span
}

func secret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: it would end the program
	return base64.RawURLEncoding.EncodeToString(raw)
}

func sum(key string) digest { return sha256.Sum256([]byte(key)) }
