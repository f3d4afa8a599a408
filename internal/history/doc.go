// Package history writes down when this site was up and available, over restarts and
// crashes, and reads it back as what pkg/avail learns from.
//
// It keeps one small file of lines in the state directory. A start, an end in order, a
// suspend, a clock that was set, and the owner's coming and going have a line each;
// once a minute a heartbeat says that the site lives, so that the end of a crash is
// known within a minute. Superfluous heartbeats are dropped now and then, and what is
// older than two years or does not fit into the file's limit, oldest first.
//
// Which clock is believed: lengths of time are counted by the clock that runs from boot
// on, suspend included, which nobody sets. The wall clock only says at which hour of
// the week a run was, and the last reading of each run is the one that counts, for a
// clock that is set is set right. A run whose clock cannot be right still counts, but
// for no hour. Lines that are damaged are put aside and counted.
//
// pkg/avail says what the times mean. The caller says whether the owner is there.
package history
