// Package signed judges whether somebody whose work a site's owner runs vouches for a job. It says
// which text is signed for a job, and whether a signature is good for it; it reads no file and
// knows no secret key. Signatures and keys are those of minisign.
//
// A site judges in three places: an announcement by the digest that it carries, an award by the
// text of the job itself, and an attempt, before it starts, by the bytes that lie there. The first
// two are Keys.Judge, Covers and CoversItem; the third is the driver's, with Hash.
//
// Where to look:
//
//	template.go  the text of a job that is signed
//	items.go     the items of an array under one signature, each with a proof
//	keys.go      the owner's list of signers, and what a signature is worth to it
//	attach.go    a job and its signature, at the submitter
package signed
