// Package config turns a file, the environment and flags into the typed
// configuration of an agent and of the submit command.
//
// Every setting has one dotted name ("ceilings.memory"), which gives the place in
// the YAML file, the flag (--ceilings-memory) and the variable
// (MRS_CEILINGS_MEMORY). A flag wins over the environment, that over the file,
// that over the default. A preset (lan, wan, test) chooses the defaults. All
// mistakes are reported at once, each with its source, the setting, what was
// expected and, for an unknown name, the nearest known one.
//
//	agent.go     Agent: the configuration of a site, and its parts
//	submit.go    Submit: that of the command line, and secrets
//	defaults.go  the values of a preset
//	settings.go  the table of all settings, in the order of files and help
//	keys.go      one setting: its name, its unit, its text
//	load.go      defaults, file, environment and flags put together
//	yaml.go      a file read as settings with lines
//	validate.go  what is wrong with a whole
//	origin.go    where a value comes from, and lines that repeat a default
//	file.go      a new file: what was chosen, and the rest as comments
//	edit.go      one setting changed in a file, with its comments kept
//	owner_*.go   a file that root wrote given back to whom it belongs
package config
