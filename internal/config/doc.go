// Package config turns a file, the environment and flags into the typed
// configuration of an agent and of the submit command.
//
// Every setting has one dotted name ("ceilings.memory"), which gives the place in
// the YAML file, the flag (--ceilings-memory) and the variable
// (MRS_CEILINGS_MEMORY). A flag wins over the environment, that over the file,
// that over the default. A preset (lan, wan, test) chooses the defaults. All
// mistakes are reported at once, each with its source, the setting, what was
// expected and, for an unknown name, the nearest known one.
package config
