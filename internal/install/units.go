package install

import (
	_ "embed" // the unit
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	unitName = "siteagent.service"
	// systemConfig is the configuration of a site that is a service of the machine.
	systemConfig = "/etc/mrs/siteagent.yaml"
	// systemState is the state directory of such a site, which the package makes.
	systemState = "/var/lib/mrs"
)

// unitText is the unit of examples/volunteer, for programs that no package brought.
//
//go:embed siteagent-user.service
var unitText string

// Way tells how a site is started.
type Way int

// The ways.
const (
	ByHand  Way = iota // siteagent run
	User               // a service of its user
	Machine            // a service of the machine
)

// Site is a site on this machine, as far as its start is concerned.
type Site struct {
	// Env looks variables up as os.LookupEnv does.
	Env func(string) (string, bool)
	// Config is the configuration file that the command was given, or Default.
	Config string
	// Default is the configuration file that a service of the user reads.
	Default string
}

// Way says how the site is started, by what is installed.
func (s Site) Way() Way {
	if s.Config == systemConfig && exists(systemUnits()...) != "" {
		return Machine
	}
	if s.unit() != "" {
		return User
	}
	return ByHand
}

// Start is the command that starts the site and keeps it started, for people.
func (s Site) Start() string {
	switch s.Way() {
	case Machine:
		return "sudo systemctl enable --now siteagent"
	case User:
		return "systemctl --user enable --now siteagent"
	case ByHand:
	}
	if s.Config == s.Default {
		return "siteagent run"
	}
	return "siteagent --config " + s.Config + " run"
}

// unit is the unit of the user's service, the strongest if there are several; empty if there is
// none, or if this site's configuration is not the one that it reads.
func (s Site) unit() string {
	if s.Config != s.Default {
		return ""
	}
	return exists(append([]string{s.ownUnit()}, s.sharedUnits()...)...)
}

// ownUnit is the path of the user's own unit, be it there or not.
func (s Site) ownUnit() string {
	return filepath.Join(s.folder("XDG_CONFIG_HOME", ".config"), "systemd", "user", unitName)
}

// sharedUnits are where packages and administrators put units of users, as systemd.unit(5) says.
func (s Site) sharedUnits() []string {
	var all []string
	dirs := append([]string{
		"/etc/systemd/user", "/run/systemd/user",
		filepath.Join(s.folder("XDG_DATA_HOME", ".local/share"), "systemd", "user"),
	}, s.dataDirs()...)
	for _, dir := range append(dirs, "/usr/local/lib/systemd/user", "/usr/lib/systemd/user") {
		all = append(all, filepath.Join(dir, unitName))
	}
	return all
}

// dataDirs are the folders of units below those of XDG_DATA_DIRS.
func (s Site) dataDirs() []string {
	var dirs []string
	list, _ := s.Env("XDG_DATA_DIRS")
	for _, dir := range filepath.SplitList(list) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Join(dir, "systemd", "user"))
		}
	}
	return dirs
}

func systemUnits() []string {
	return []string{"/etc/systemd/system/" + unitName, "/usr/lib/systemd/system/" + unitName}
}

// folder is an XDG base directory.
func (s Site) folder(variable, standard string) string {
	if dir, ok := s.Env(variable); ok && filepath.IsAbs(dir) {
		return dir
	}
	home, _ := s.Env("HOME")
	return filepath.Join("/", home, standard)
}

// exists is the first of the files that is there; empty if none is.
func exists(files ...string) string {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// unitFor is the unit of the user's service for a program at this path.
func unitFor(program string) ([]byte, error) {
	const standard = "%h/.local/bin/siteagent"
	if strings.ContainsAny(program, "\n\r") || !filepath.IsAbs(program) {
		return nil, fmt.Errorf("a service cannot start %q", program)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(program)
	if strings.ContainsAny(quoted, " \t'") {
		quoted = `"` + quoted + `"`
	}
	_, text, _ := strings.Cut(unitText, "[Unit]\n") // what the head says is done
	head := "# A site of the mesh as a service of this user. siteagent join made this file, and\n" +
		"# siteagent leave removes it.\n[Unit]\n"
	return []byte(head + strings.Replace(text, standard, quoted, 1)), nil
}
