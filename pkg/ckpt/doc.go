// Package ckpt decides when a task should save its state: often enough that a
// failure costs little, rarely enough that saving does not cost more.
//
// Three ways to decide stand side by side. LFCA asks before each checkpoint whether the
// site has been stable for so long that this one may be left out. MFCA lengthens or
// shortens the interval after each checkpoint by what is known of the site's failures.
// Young, Daly, Segments and CheckpointCount give one interval, or one number of checkpoints,
// for a whole task. ExpectedCompletion gives the cost of any interval under failures, to
// compare them.
//
// Sources: Antony Lidya Therasa S., Sumathi G., Antony Dalya S., "Dynamic
// Adaptation of Checkpoints and Rescheduling in Grid Computing", sections 3.1 to
// 3.3 ("the FIBR paper"), for LFCA and MFCA; D. Battre, M. Hovestadt, O. Kao, A.
// Keller, K. Voss, "Planning-based Scheduling for SLA-awareness and Grid
// Integration", figure 2 ("OpenCCS"), for CheckpointCount; J. W. Young, 1974, and
// J. T. Daly, 2006, for the intervals that bear their names.
//
// Times are float64 seconds. An argument that is no number, negative or outside
// its range is an argument.ErrInvalid, also where the result does not depend on
// it. The package decides nothing about how state is saved.
//
// A site asks running programs for their states at Daly's interval, or by LFCA or MFCA where the
// job's owner wants that (pkg/site). gridsim compares all rules (pkg/sim/failing), and
// internal/vectors compares them with a second implementation.
package ckpt
