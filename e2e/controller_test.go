//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// controlledWithin was promised: so soon after the end of the domain's controller another one acts.
const controlledWithin = 5 * time.Second

// newDomain starts sites of a domain whose key the first one holds, and waits for its controller.
func newDomain(t *testing.T, settings ...string) *mesh {
	t.Helper()
	m := foundDomain(t, settings...)
	m.awaitController(t, m.sites...)
	return m
}

// foundDomain is newDomain without waiting for a controller, as for one of fewer than three sites.
func foundDomain(t *testing.T, settings ...string) *mesh {
	t.Helper()
	m := prepareMesh(t, settings...)
	first := m.sites[0]
	registry, err := member.Open(member.Config{
		Dir: first.state, Domain: "home", Self: first.id, Name: first.name,
	})
	if err == nil {
		_, _, err = registry.Invite(member.Terms{Span: time.Hour, Uses: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.sites {
		s.settings += "domain-key: " + string(registry.Key()) + "\n"
	}
	m.acquaint(t)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	return m
}

// controller is the domain's controller as a site sees it.
func (s *site) controller(t *testing.T) view.Controller {
	t.Helper()
	status, err := s.client.Status(t.Context())
	if err != nil || status.Controller == nil {
		return view.Controller{}
	}
	return *status.Controller
}

// awaitController waits until some sites agree on who the controller is, one of them.
func (m *mesh) awaitController(t *testing.T, sites ...*site) (acting *site) {
	t.Helper()
	eventually(t, patience, "all agree on the controller", func() bool {
		named := sites[0].controller(t).Acting
		at := slices.IndexFunc(sites, func(s *site) bool { return s.id == named })
		if at < 0 {
			return false
		}
		acting = sites[at]
		return !slices.ContainsFunc(sites, func(s *site) bool {
			c := s.controller(t)
			return c.Acting != named || c.Changing || len(c.Members) != 3
		})
	})
	return acting
}

// The controller is killed, stopped in order, or its machine falls silent: another one acts within
// the time that is asked for, all sites know it, and it stays the controller when the other one is
// back.
func TestAnotherControllerActs(t *testing.T) {
	m := newDomain(t, submitOnly, submitOnly, submitOnly, submitOnly)
	for what, end := range map[string]func(*site){
		"killed":  func(s *site) { s.kill(t) },
		"stopped": func(s *site) { s.terminate(t) },
		"silent": func(s *site) {
			if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		},
	} {
		acting := m.awaitController(t, m.sites...)
		rest := slices.DeleteFunc(slices.Clone(m.sites), func(s *site) bool { return s == acting })
		term := acting.controller(t).Term
		began := time.Now()
		end(acting)
		eventually(t, patience, "another one acts", func() bool {
			return slices.ContainsFunc(rest, func(s *site) bool { return s.controller(t).Here })
		})
		took := time.Since(began)
		wantTimes(t, what+", another one acts after", []time.Duration{took}, controlledWithin)
		next := m.awaitController(t, rest...)
		if now := next.controller(t).Term; now <= term {
			t.Errorf("%s: it acts in term %d, and before it was %d", what, now, term)
		}
		if what == "silent" {
			_ = acting.cmd.Process.Kill()
			<-acting.ended
		}
		acting.start(t)
		m.awaitWhole(t)
		if again := m.awaitController(t, m.sites...); again != next {
			t.Errorf("%s: %s acts, and %s did before the other one was back", what, again.name,
				next.name)
		}
	}
	m.audit(t)
	m.replay(t)
	if said := m.sites[0].command(t, "status"); !strings.Contains(said.out, "\ncontroller ") {
		t.Errorf("siteagent status does not say who the controller is: %+v", said)
	}
}
