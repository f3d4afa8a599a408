// Package given keeps the account of what this site gave: for each day and each submitter, how
// much processor time its attempts used and how many of them came to an end of their own.
//
// It is one small file in the state directory, put in place as a whole, so that a crash at any
// moment leaves the account as it was at the last save. It holds the last six weeks in which
// something was given, and bounds the names of a day; what goes beyond is added to the others.
// No clock decides what is dropped: one that was wrong for a while costs no entries. A file that
// cannot be read is put aside, not overwritten.
//
// What an attempt used is measured by internal/lrm; when to save is the caller's decision.
package given
