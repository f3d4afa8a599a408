package lrm

// Farewell is done when an agent has died and nothing of an attempt is left: the
// attempt's submitter is told, who need not wait for the lease's end then. It is prepared
// while the agent lives.
type Farewell struct {
	// Dir takes a file for each attempt that is gone. One directory is for all attempts of an
	// agent.
	Dir  string
	Text []byte // of this attempt's file
	// Command tells what the files in Dir say, removes them, and ends. One runs at a time; it
	// gets Dir as its last argument.
	Command []string
}
