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
//	crash NAME                    kill an agent of this script's own mesh
//	module FILE [sleep=TIME] [stdout=TEXT] [stderr=TEXT] [file=PATH] [text=TEXT] [code=N]
//	                              write a WebAssembly module that does that
//	keep NAME                     put the last standard output into a variable
//	like stdout|stderr FILE       compare with a file in which <id>, <site>, <time>, <span>,
//	                              <n> and <any> stand for what differs from run to run;
//	                              blanks in a line may be more, and line ends are cut; a
//	                              line of three dots is any number of lines
//	user [-fresh] NAME            become NAME from here on: a home, a configuration and an
//	                              agent of one's own, with settings for tests: a free port
//	                              of the loopback interface, two cores, short leases, no
//	                              yielding to the owner. -fresh: nothing is set, as on a
//	                              new account
//	agent start [FLAGS]           start the user's agent and wait until it answers; its log
//	                              is $HOME/agent.log. With ! before it, it must end with an
//	                              error, and stderr holds its messages
//	agent stop                    end it with TERM and wait for a good end
//	agent wait                    wait for a good end that something else causes
//	agent kill                    end it as a power cut would
//	agent signal HUP|STOP|CONT    send a signal
//	freeport NAME                 put a TCP port that was free a moment ago into a variable
//	othertime NAME                put hours of the week that are not now into a variable
//	terminal FILE PROGRAM ARGS    run it on a terminal of 80 columns and 24 lines and do what
//	                              FILE says: "see PATTERN" waits for what is drawn since the
//	                              last keys, "press KEYS" types them, "press enter", "press
//	                              tab" and "press ^C" those keys, and "agent ARGS" is as above.
//	                              Then the program has to end with code 0 and to leave the
//	                              terminal as it was; with NO_COLOR it may draw none. With
//	                              -columns N the terminal is so wide, with -code N the program
//	                              has to end with that, and with -lines it prints lines and
//	                              draws no screen
//
// After mesh, submit talks to its first agent; of each agent, $ANNA is its id, $ANNA_ADDR
// what submit --addr takes and $ANNA_CONFIG what siteagent --config takes. After user, both
// programs find that user's agent as they do on a real account. A script sees no setting
// of the person who runs it, and all its agents end with it. [bwrap] holds where
// bubblewrap makes sandboxes, [lan] where the machine has an address on a network, [snakemake]
// where Snakemake, its package for TES and python are installed.
//
//	run.go        Run: a test for each script, and the programs built
//	commands.go   exits, eventually, module, keep and the like
//	like.go       comparing with placeholders
//	mesh.go       meshes: the one that scripts share, and their own
//	held.go       whether commands can be held by the kernel here
//	user.go       users with a home each
//	agent.go      a user's agent
//	terminal_*.go a program on a terminal of its own
//	pipe.go       a program whose reader is gone
//	signals_*.go  signals of this system by name
//	sys_*.go      processes that end with the test
package scripttest
