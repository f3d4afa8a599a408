// Package wire holds what the rooms of a mesh share, and decides nothing.
//
//	identity.go  a site's key pair, and its name in libp2p's form
//	frame.go     messages read off a stream, with deadlines
//	pause.go     pauses between attempts, and functions called later
//	counters.go  what is counted, by family and label
package wire
