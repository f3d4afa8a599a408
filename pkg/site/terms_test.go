package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// termsOf are the terms by which a machine of this configuration begins.
func termsOf(c Config) step.TermsChanged {
	return step.TermsChanged{
		MaxRuntime: c.MaxRuntime, Patience: c.OwnerPatience, Ahead: c.Planning.Ahead,
		Longest: c.Planning.Longest, Priced: c.Priced, Price: c.Price,
	}
}

// An owner who changes how long the site waits for them while they are busy is waited for
// from then on, not from when they came.
func TestTermsChangeWhileTheOwnerIsBusy(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OwnerPatience = time.Minute })
	list := r.running(job1, alice, 1)
	r.lease(alice, list, time.Hour)
	r.step(ownerBusy())
	r.step(step.AttemptFrozen{Attempt: list[0]})
	r.advance(50 * time.Second)
	terms := termsOf(r.m.cfg)
	terms.Patience = 5 * time.Minute
	r.step(terms)
	r.reported(eventTermsChanged)
	if got := only[step.StopAttempt](r.advance(290 * time.Second)); len(got) != 0 {
		t.Errorf("stopped %v before the new patience ended", got)
	}
	if got := only[step.StopAttempt](r.advance(15 * time.Second)); len(got) != 1 {
		t.Errorf("stops %v, want %s", got, list[0])
	}
}

// New terms count for what is asked for from now on; terms that cannot be are refused
// whole.
func TestTermsChange(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxRuntime = time.Minute })
	terms := termsOf(r.m.cfg)
	terms.MaxRuntime, terms.Priced, terms.Price = time.Hour, true, 0.02
	r.step(terms)
	if c := r.m.cfg; c.MaxRuntime != time.Hour || !c.Priced || c.Price != 0.02 {
		t.Errorf("works by %+v", c)
	}
	want := r.m.cfg
	terms.Price, terms.MaxRuntime = -1, 2*time.Hour
	r.step(terms)
	r.reported(eventInvalid)
	if r.m.cfg.MaxRuntime != want.MaxRuntime || r.m.cfg.Price != want.Price {
		t.Errorf("works by %+v after terms that cannot be", r.m.cfg)
	}
}
