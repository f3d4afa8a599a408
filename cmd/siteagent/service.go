package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/install"
	"github.com/mrsmesh/mrsmesh/internal/store"
)

// siteHere is the site of this configuration file.
func siteHere(file string) install.Site {
	return install.Site{
		Env: os.LookupEnv, Config: file, Default: config.AgentFile(os.LookupEnv),
	}
}

// makeState makes the state directory, and records in it which directories were not there before:
// it, and those that are about to be made.
func makeState(c config.Agent, place install.Site) (install.Record, error) {
	made, err := install.Load(c.StateDir)
	if err != nil {
		return made, err
	}
	made.NoteMissing(c.StateDir, filepath.Dir(place.Config), place.UnitDir())
	if c.API.Socket != "off" {
		made.NoteMissing(filepath.Dir(c.API.Socket))
	}
	if err = os.MkdirAll(c.StateDir, 0o700); err != nil {
		return made, fmt.Errorf("make the state directory: %w", err)
	}
	return made, made.Save(c.StateDir)
}

// isChosen reports whether one of the settings comes from a flag or a variable.
func isChosen(origins []config.Origin, names ...string) bool {
	return slices.ContainsFunc(origins, func(o config.Origin) bool {
		return slices.Contains(names, o.Name) &&
			(o.Layer == config.LayerFlag || o.Layer == config.LayerEnvironment)
	})
}

// decideService finds out whether the site is to be a service of its user. Who says so by a flag is
// told before anything is done if it cannot be; a person is asked where it can.
func (w *wishes) decideService(ctx context.Context, j *joining) error {
	if !w.service && (j.person == nil || j.o.cmd.Flags().Changed("service")) {
		return nil
	}
	why := "services of users are for Linux with systemd"
	if runtime.GOOS == "linux" {
		why = textOf(j.place.Answers(ctx))
	}
	switch {
	case why != "" && w.service:
		return fmt.Errorf("--service: %s; leave it out, and start the site with: %s", why,
			j.place.Start())
	case why != "" || w.service: // the end of join says how to start the site
		return nil
	}
	return j.person.ask(ctx, "Start it as a service of yours, now and at each login? yes or no",
		"yes", parseYes(&w.service))
}

// textOf is the text of an error, empty if there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// startService starts the site as a service of its user.
func (j *joining) startService(ctx context.Context) error {
	j.made.NoteMissing(j.place.UnitDir())
	program, err := os.Executable()
	if err == nil {
		err = j.place.Enable(ctx, program, &j.made)
	}
	if err = errors.Join(err, j.made.Save(j.config.StateDir)); err != nil {
		return fmt.Errorf("the site has joined, but is not started: %w; "+
			"systemctl --user status siteagent says more", err)
	}
	j.tell("It runs as a service of yours; siteagent status shows it. To let it run while you " +
		"are not logged in, too: loginctl enable-linger")
	return nil
}

// summary says what join is about to do.
func (j *joining) summary() string {
	var given []string
	for _, v := range j.wishes.values {
		given = append(given, v.Name+" "+v.Text)
	}
	text := "This writes " + j.file
	if len(given) > 0 {
		text += " (" + strings.Join(given, ", ") + ")"
	}
	text += ", makes an identity in " + j.config.StateDir + ", and joins domain " +
		string(j.token.Domain)
	if j.wishes.service {
		text += "; then the service is started"
	}
	return text + "."
}

// refuseHeld finds out whether an agent holds a state directory: an error that is store.ErrLocked.
func refuseHeld(state string) error {
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := store.Open(state, nil)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("the agent of %s is running: %w", state, err)
	}
	if err != nil {
		return err
	}
	return held.Close()
}
