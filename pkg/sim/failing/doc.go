// Package failing plays jobs that save their state on resources that fail: how much time is
// lost with one rule for checkpoints or another, and where a job goes on when its resource
// has failed. The rules are those of pkg/ckpt, what is learned of resources is learned by
// pkg/avail, and counted by pkg/fault.
//
// The mesh takes no checkpoints yet, so that there are no machines to play: here a job holds one
// resource, there is one queue, and all is known of which resources are up and free. For each seed
// the resources fail at the same instants and the same jobs come, whatever the rules.
//
//	model.go    resources and jobs, as they are drawn
//	policy.go   rules for checkpoints and for places
//	play.go     Play: what happens, one event after the other
//	events.go   events to come
//	save.go     when a job saves its state next
//	place.go    the resource on which a job goes on
//	share.go    whose jobs they are, and what submitters tell each other
//	past.go     what is known of a resource
//	age.go      ... and of how it ages
//	measure.go  what came of it all
package failing
