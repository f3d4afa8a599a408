package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
)

const (
	askWithin   = 10 * time.Second // a service manager that only tells something
	startWithin = 2 * time.Minute  // one that starts or stops the agent, whose first start measures
	answerBytes = 4 << 10          // of what systemctl prints
)

// Answers asks whether the user's service manager answers. The error says why it does not.
func (s Site) Answers(ctx context.Context) error {
	if s.Config != s.Default {
		return fmt.Errorf("a service of yours reads %s, and this site has %s", s.Default, s.Config)
	}
	// It says "degraded", with an error, when some other service has failed.
	said, err := s.systemctl(ctx, askWithin, "is-system-running")
	switch strings.TrimSpace(said) {
	case "running", "degraded", "starting", "initializing", "maintenance":
		return nil
	}
	if err == nil {
		err = fmt.Errorf("it says %q", strings.TrimSpace(said))
	}
	return fmt.Errorf("your service manager does not answer: %w", err)
}

// Enable starts the site as a service of its user, now and at each login, with a unit of its own
// where there is none, which starts program. What it makes is recorded.
func (s Site) Enable(ctx context.Context, program string, r *Record) error {
	if s.unit() == "" {
		text, err := unitFor(program)
		if err != nil {
			return err
		}
		if err = os.MkdirAll(filepath.Dir(s.ownUnit()), 0o700); err == nil {
			err = durable.Create(s.ownUnit(), text)
		}
		if err != nil {
			return fmt.Errorf("make the unit: %w", err)
		}
		r.AddFile(s.ownUnit())
	}
	if _, err := s.systemctl(ctx, askWithin, "daemon-reload"); err != nil {
		return fmt.Errorf("tell your service manager of the unit: %w", err)
	}
	r.Service = true
	if _, err := s.systemctl(ctx, startWithin, "enable", "--now", unitName); err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	return nil
}

// Disable stops the site's service for good, and removes the unit if that was made for it. Without
// a service it does nothing.
func (s Site) Disable(ctx context.Context, r *Record) error {
	if !r.Service && !s.enabled(ctx) {
		return nil
	}
	if _, err := s.systemctl(ctx, startWithin, "disable", "--now", unitName); err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	r.Service = false
	if !r.Made(s.ownUnit()) {
		return nil
	}
	if err := os.Remove(s.ownUnit()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the unit: %w", err)
	}
	r.forget(s.ownUnit())
	if _, err := s.systemctl(ctx, askWithin, "daemon-reload"); err != nil {
		return fmt.Errorf("tell your service manager that the unit is gone: %w", err)
	}
	return nil
}

// enabled reports whether the service is started at a login. Without a service manager that answers
// it is not.
func (s Site) enabled(ctx context.Context) bool {
	if s.unit() == "" {
		return false
	}
	said, err := s.systemctl(ctx, askWithin, "is-enabled", unitName)
	return err == nil && strings.TrimSpace(said) == "enabled"
}

// systemctl asks the user's service manager, and returns what it prints. The error ends with its
// complaint.
func (s Site) systemctl(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var out, wrong head
	//nolint:gosec // G204: the arguments are ours
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{"--user"}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &wrong, time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		err = fmt.Errorf("systemctl --user %s took more than %s", args[0], within)
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("systemctl is not installed")
	case wrong.Len() > 0:
		first, _, _ := strings.Cut(strings.TrimSpace(wrong.String()), "\n")
		err = fmt.Errorf("systemctl --user %s: %s", args[0], first)
	default:
		err = fmt.Errorf("systemctl --user %s: %w", args[0], err)
	}
	return out.String(), err
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write takes everything and keeps what fits.
func (h *head) Write(p []byte) (int, error) {
	_, err := h.Buffer.Write(p[:min(len(p), answerBytes-h.Len())])
	return len(p), err
}
