package main

import "fmt"

// offersNothing says why a site on this operating system runs no jobs; empty where
// it does. Such a site is a member all the same: it joins, submits and fetches
// results.
//
// An agent that cannot see its owner at work could not yield, so it takes jobs
// only from an owner who asks for that.
func offersNothing(goos string, yields bool) string {
	switch {
	case goos == "linux":
		return ""
	case goos == "windows":
		return "this site submits jobs and runs none: running jobs is not supported on Windows"
	case yields:
		return fmt.Sprintf("this site submits jobs and runs none: on %s the agent cannot see when you "+
			"use the machine; "+
			"to share it all the same, set owner.yield to false", goos)
	default:
		return ""
	}
}
