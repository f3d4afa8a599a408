// Package localmesh runs a whole mesh on one machine, each agent a process of its own,
// for programs that show or try it. All that it writes stands in one temporary
// directory, and all that it starts ends with it.
package localmesh
