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
//	agent.go     Agent: an agent's configuration, typed
//	submit.go    Submit: that of the submit command
//	settings.go  the list of an agent's settings: name, topic, text, how it is read and shown
//	keys.go      a setting as others see it: Key
//	defaults.go  what the presets choose; where files lie
//	load.go      flags over environment over file over preset
//	origin.go    Explain: where each value comes from
//	yaml.go      a file's entries with their lines
//	file.go      NewFile: what init writes
//	edit.go      a setting changed or removed in a file, its comments kept
//	owner_*.go   a file that is written anew keeps its owner
//	validate.go  what must hold of the values
package config
