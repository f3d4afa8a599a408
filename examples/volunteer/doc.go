// Package volunteer holds what an owner needs to share a machine for good: units
// for systemd, buttons for the desktop, and a walk-through from nothing to sharing
// and back. Its tests check that the units can be read and that every command of
// the walk-through exists.
package volunteer
