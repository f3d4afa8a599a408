// Package intake takes large content into the data room by a process of the lowest priority.
// Reading, encrypting and hashing is most of the work of that, and it is done while the machine's
// owner may be at the keyboard. A thread of the agent with such a priority would hold up the whole
// agent, which waits for its threads when it collects garbage. So the agent starts itself again.
//
//	agent --order, acknowledgements--> process --reads--> file or directory
//	      <--blocks, root or failure--         --writes--> files of blocks
//
// The process builds the graph with the code of internal/data and leaves each block in a file on
// the store's file system. The agent hears of it, counts it in its quota and renames the file; it
// neither hashes nor copies content. The process is a window of blocks ahead at most, which
// also bounds what it writes beyond a quota. A job's key goes to it in the order, through the pipe.
//
// The process dies with the agent: by the end of its standard input, and on Linux by the
// parent-death signal, too. Where it fails as a process, the error is ErrProcess; what is wrong
// with the content is told by the errors of internal/data. Which content is large enough, and what
// happens after ErrProcess, internal/agent decides.
//
//	intake.go     the agent's side: processes started, watched, and ended
//	content.go    what is taken in, by a process or here
//	frames.go     what the two say to each other
//	main.go       the process
//	idle_*.go     the lowest priority of this system, for all threads
package intake
