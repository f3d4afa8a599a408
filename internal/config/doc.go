// Package config turns a file, the environment and flags into the typed
// configuration of an agent and of the submit command, and writes the file.
//
// Every setting has one dotted name ("ceilings.memory"), which gives its key in
// the YAML file, the flag (--ceilings-memory) and the variable
// (MRS_CEILINGS_MEMORY). A flag wins over the environment, that over the file,
// that over the preset (lan, wan, test), and that over the default. A file holds
// what was chosen. All mistakes are reported together, each with its source, the
// setting, what was expected and, for an unknown name, the nearest known one.
//
//	agent.go     what an agent is told, as types
//	submit.go    what the command line is told
//	settings.go  the table of all settings: name, help, place, and whether it is live
//	keys.go      how values are written and read, in the units of people
//	defaults.go  defaults, presets, and where files and sockets are looked for
//	load.go      the sources put above each other
//	yaml.go      the settings in a file's text
//	validate.go  ranges, and what does not go together
//	validate_owner.go  the same of when the site yields
//	origin.go    where each value comes from, and what a change changes
//	file.go      new files, and putting a file in place
//	edit.go      changes in a file's text that leave the rest as it is
//	owner_*.go   whom a file belongs to that was written anew
package config
