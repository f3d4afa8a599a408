// Package manual gives programs that are built with the tag "manual" a hidden command that writes
// their manual pages. A release builds them so once, and never ships them: the library that makes
// pages takes half a millisecond of each start of a program, also where none is written.
package manual
