// Package figures draws what experiments gave: bars with error bars for a run, lines with bands
// for a sweep, and who held which site when. What is drawn it gets from internal/eval; the same
// results give the same bytes.
//
//	album.go  directories of figures: which files, and whether they may be written
//	style.go  fonts, colours, the names of measures
//	bars.go   the measures of a run, a bar for each strategy
//	lines.go  the measures of a sweep over a value that is varied
//	gantt.go  who holds how many nodes of which site when
package figures
