// Package data keeps and moves what jobs read and write: inputs, outputs and
// modules, named by their content. A file or a directory is a UnixFS graph of
// blocks with sha2-256 names; the rest of the mesh names it by its root's CID.
// Blocks travel over bitswap on the host's own connections, under a protocol
// name of this mesh, and only between members. There is no content routing: who
// wants data is told who holds it.
//
// On disk, below Config.Dir:
//
//	blocks/ab/abcd...  one file for each block, named by its digest in hex
//	tmp/               blocks being written; emptied when the store opens
//	roots.log          one JSON line for each change of a root: what is held,
//	                   how long it is pinned, when it was last used; and small
//	                   blocks, until their files are on disk
//
// A block is written aside and renamed, and its hash is checked whenever it is
// read, so neither a crash nor a bad disk is mistaken for data. A damaged block
// counts as missing, its roots are no longer held, and fetching them again moves
// only what is missing.
//
// A root is either held (its whole graph is here) or partial (a fetch did not
// end; its blocks wait for the next one). When the quota is reached, blocks that
// belong to nothing go first, then the roots that are not pinned, least recently
// used first.
//
// Lock order: gcMu, then mu, then the block store's own.
//
//	store.go     Store: opened, closed, what is held
//	config.go    Config, Limits
//	graph.go     content identifiers, and nodes of a graph read and written
//	add.go       files, directories and tar streams taken in
//	built.go     a graph built outside the store, and its blocks taken in
//	sources.go   what is taken in, read from the host or a tar stream
//	read.go      Cat and Tar: a root given out as a stream
//	export.go    a root laid out as files
//	compare.go   files that were laid out compared with a root
//	walk.go      going through a graph
//	fetch.go     Fetch: one root asked for, and how far it is
//	fetcher.go   one fetch: rounds of wants, arrivals, holders that fail
//	holders.go   whom to ask, and connections to them
//	exchange.go  bitswap between members
//	gate.go      which blocks a peer gets
//	share.go     FetchFor, Charge: a submitter's share of the quota
//	meter.go     transfers measured
//	links.go     the rate of each link, remembered on disk
//	probe.go     small measurements of links that nothing crossed
//	blocks.go    blocks as files, checked when read
//	held.go      which roots a directory holds, read from outside
//	rootlog.go   roots.log: what is held and pinned, over restarts
//	settle.go    what is acknowledged survives a power failure
//	collect.go   space freed when the quota is reached
//	keeper.go    what the store does by itself: saving, checking, telling of damage
package data
