package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/agent/backend"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/systemd"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// settings are the configuration of a running agent, which may be read again.
type settings struct {
	src     config.Sources
	log     *slog.Logger
	machine hostinfo.Machine                          // as it was when the agent started
	change  func(context.Context, config.Agent) error // applies what can change while running

	mu      sync.Mutex
	now     config.Agent       // guarded by mu; in force
	asked   config.Agent       // guarded by mu; as it was read last without a mistake
	origins []config.Origin    // guarded by mu; of asked
	shown   view.Configuration // guarded by mu; without the settings
}

// readSettings reads the configuration with which an agent starts.
func readSettings(src config.Sources) (*settings, error) {
	if path, err := filepath.Abs(src.File); err == nil {
		src.File = path
	}
	s := &settings{src: src}
	c, origins, err := s.read()
	if err != nil {
		return nil, usageError{err}
	}
	s.now, s.asked, s.origins = c, c, origins
	s.shown = view.Configuration{File: src.File, Since: view.At(time.Now())}
	return s, nil
}

func (s *settings) read() (config.Agent, []config.Origin, error) {
	c, origins, err := config.Explain(s.src)
	if err == nil {
		c.StateDir, err = filepath.Abs(c.StateDir)
	}
	return c, origins, err
}

// reload reads the configuration again and applies what can change while running. With a
// mistake in it everything stays as it was.
func (s *settings) reload(ctx context.Context) view.Configuration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readAgain(ctx)
}

// readAgain is reload for who holds s.mu.
func (s *settings) readAgain(ctx context.Context) view.Configuration {
	defer systemd.Reloading(s.log)()
	c, origins, err := s.read()
	merged := config.Merge(s.now, c)
	if err == nil {
		err = s.change(ctx, merged)
	}
	if err != nil {
		s.shown.Problem, s.shown.Changed = strings.ReplaceAll(err.Error(), "\n", "; "), nil
		s.log.Error("the configuration has a mistake, the old settings stay",
			"file", s.src.File, "since", clock(s.shown.Since), "error", s.shown.Problem)
		return s.shown
	}
	s.shown.Problem, s.shown.Since = "", view.At(time.Now())
	s.shown.Changed = namesOf(config.Changes(s.now, merged))
	s.shown.Restart = namesOf(config.Changes(merged, c))
	s.now, s.asked, s.origins = merged, c, origins
	s.log.Info("the configuration was read again", "file", s.src.File,
		"changed", strings.Join(s.shown.Changed, " "),
		"after_a_restart", strings.Join(s.shown.Restart, " "))
	return s.shown
}

// clock is a time of today as people read it.
func clock(t view.Time) string { return t.Local().Format("15:04") }

func namesOf(keys []config.Key) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

// configuration lists the settings in force, and where each comes from.
func (s *settings) configuration() view.Configuration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.shown
	out.Settings = settingViews(s.origins)
	for _, k := range config.Changes(s.now, s.asked) {
		for i := range out.Settings {
			if out.Settings[i].Name == k.Name {
				out.Settings[i].Running = s.now.ValueOf(k.Name)
			}
		}
	}
	return out
}

// settingViews are the settings as they are shown.
func settingViews(origins []config.Origin) []view.Setting {
	var rows []view.Setting
	for _, o := range origins {
		rows = append(rows, view.Setting{
			Name: o.Name, Value: o.Value, From: string(o.Layer), Place: o.Place, Line: o.Line,
			Default: o.Default, Repeats: o.Repeats, Preset: o.Preset, Inherited: o.Inherited,
			Live: o.Live, Documented: o.Documented,
		})
	}
	return rows
}

// served is the agent as its interface shows it.
type served struct {
	*backend.Backend

	settings *settings
}

// Status implements api.Sites. What is wrong with the configuration is part of it.
func (s served) Status(ctx context.Context) (view.AgentStatus, error) {
	status, err := s.Backend.Status(ctx)
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	shown := s.settings.shown
	status.Configuration = &shown
	status.Notices = append(configNotices(shown, s.settings.origins), status.Notices...)
	return status, err
}

// Configuration implements api.Settings.
func (s served) Configuration(context.Context) (view.Configuration, error) {
	return s.settings.configuration(), nil
}

// Reload implements api.Settings.
func (s served) Reload(ctx context.Context) (view.Configuration, error) {
	return s.settings.reload(ctx), nil
}

// configNotices are what the owner should know of the configuration.
func configNotices(c view.Configuration, origins []config.Origin) []view.Notice {
	var notices []view.Notice
	if c.Problem != "" {
		notices = append(notices, view.Notice{
			Text:   "configuration: " + c.Problem + "; the settings of " + clock(c.Since) + " stay",
			Action: "correct " + c.File + ", then: siteagent config reload",
		})
	}
	if len(c.Restart) > 0 {
		notices = append(notices, view.Notice{
			Text: "configuration: changed, and in force after a restart: " + strings.Join(c.Restart, ", "),
		})
	}
	if names, preset := inherited(origins); len(names) > 0 {
		notices = append(notices, view.Notice{
			Text:   "configuration: preset " + preset + " does not reach " + strings.Join(names, ", "),
			Cause:  "lines of the file say the defaults of preset lan",
			Action: "siteagent config unset " + strings.Join(names, " "),
		})
	}
	return notices
}

// inherited are the settings that lines with mere defaults keep from the preset.
func inherited(origins []config.Origin) (names []string, preset string) {
	for _, o := range origins {
		if o.Inherited {
			names = append(names, o.Name)
		}
		if o.Name == "preset" {
			preset = o.Value
		}
	}
	return names, preset
}

// live applies the settings that a running agent can change.
func live(
	a *agent.Agent, started agent.Config, level *slog.LevelVar,
) func(context.Context, config.Agent) error {
	return func(ctx context.Context, c config.Agent) error {
		lv, err := obs.ParseLevel(c.Log.Level)
		if err != nil {
			return err
		}
		if err = a.Change(ctx, termsOf(c, started)); err == nil {
			level.Set(lv)
		}
		return err
	}
}

// termsOf are the terms on which the owner shares the machine, as configured now.
func termsOf(c config.Agent, started agent.Config) agent.Terms {
	kinds := slices.Sorted(maps.Keys(started.Adapters))
	planning := planningOf(c)
	terms := agent.Terms{
		Owner: ownerOf(c.Owner), Closed: closedTimes(c.Owner.Hours),
		Capability: func(found hostinfo.Measured) grid.Capability {
			capability := capabilityOf(c, started.Host.Machine, kinds, found)
			capability.Saves = started.Host.Capability(found).Saves
			return capability
		},
		UploadBps: c.Rates.UpBps, DownloadBps: c.Rates.DownBps,
		MaxRuntime: c.Jobs.MaxRuntime, Signers: c.Signers,
		Priced: c.Price.Named, Price: c.Price.CoreHour,
		Policy: planning.Policy, Backfill: planning.Backfill,
		Ahead: planning.Ahead, Longest: planning.Longest,
	}
	for _, w := range rateWalls(c.Rates) {
		terms.Walls = append(terms.Walls, w.View)
	}
	return terms
}

// hangUps are the signals by which the configuration is read again.
type hangUps struct {
	signals  chan os.Signal
	terminal bool // the agent was started from one that takes it along when it closes
}

// catchHangUps keeps SIGHUP from ending the program.
func catchHangUps() hangUps {
	h := hangUps{signals: make(chan os.Signal, 1)}
	h.terminal = haveTerminal() && !signal.Ignored(syscall.SIGHUP)
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// obey reads the configuration again at each signal, until the context ends or the
// terminal is gone: then end ends the agent as SIGTERM does.
func (h hangUps) obey(ctx context.Context, s *settings, end func()) {
	defer signal.Stop(h.signals)
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.signals:
		}
		if h.terminal && !haveTerminal() {
			s.log.Info("the terminal was closed")
			end()
			return
		}
		s.reload(ctx)
	}
}

// haveTerminal reports whether this process has a controlling terminal that is open.
func haveTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close() // it was only looked for
	return true
}
