// Package routine does several things at once.
package routine

import "iter"

func starts(work func(), walk iter.Seq[int]) {
	go work()             // want "goroutine"
	c := make(chan int)   // want "channels"
	var d <-chan struct{} // want "channels"
	select {              // want "channels"
	case <-c:
	case <-d:
	}
	next, stop := iter.Pull(walk) // want "coroutine"
	next()
	stop()
}

func fine(walk iter.Seq[int]) (sum int) {
	for n := range walk {
		sum += n
	}
	return sum
}
