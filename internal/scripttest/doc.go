// Package scripttest runs scripts of commands as a person would type them, with the
// real programs, against real agents on the loopback interface; for tests only.
//
// A script is a txtar file of github.com/rogpeppe/go-internal/testscript. Beside that
// library's commands it may use:
//
//	submit ARGS, siteagent ARGS   run the program; `! submit ...` wants it to fail
//	exits CODE PROGRAM ARGS       run it and want this exit code
//	eventually PATTERN PROGRAM ARGS
//	                              run it again and again until its standard output matches
//	mesh                          use the agents that all scripts share: anna and ben
//	mesh [-commands] NAME[:CORES]...
//	                              start agents for this script alone; they end with it
//	kill NAME                     kill an agent of this script's own mesh
//	module FILE [sleep=TIME] [stdout=TEXT] [stderr=TEXT] [file=PATH] [text=TEXT] [code=N]
//	                              write a WebAssembly module that does that
//	keep NAME                     put the last standard output into a variable
//	like stdout|stderr FILE       compare with a file in which <id>, <site>, <time>, <span>,
//	                              <n> and <any> stand for what differs from run to run;
//	                              blanks in a line may be more, and line ends are cut
//
// submit talks to the first agent of the mesh; of each agent, $ANNA is its id, $ANNA_ADDR
// what submit --addr takes and $ANNA_CONFIG what siteagent --config takes. A script sees
// no setting of whoever runs it. The condition [bwrap] holds where bubblewrap
// makes sandboxes.
package scripttest
