// Package figures draws what experiments gave: bars with error bars for a run, lines with bands
// for a sweep, and who held which site when. What is drawn it gets from internal/eval; the same
// results give the same bytes.
//
//	album.go     directories of figures: which files, and whether they may be written
//	style.go     fonts, colours, the names of measures
//	bars.go      the measures of a run, a bar for each strategy
//	settings.go  ... where sites fail, a plot for each law, bars for each run factor
//	rules.go     ... of rules for checkpoints, lines over their interval
//	thresholds.go ... of rules for reservations, lines over their threshold
//	lines.go     the measures of a sweep over a value that is varied
//	profile.go   how wide and long the jobs of a log are, and when they come
//	odds.go      how likely copies, predictions and tries succeed
//	outages.go   the time of a task over the number of its checkpoints
//	gantt.go     who holds how many nodes of which site when
//	map.go       where sites are in the virtual map as time passes
//	mapstrips.go ... and how many offer, and how far they are, over all jobs
//	panels.go    several plots in one figure
package figures
