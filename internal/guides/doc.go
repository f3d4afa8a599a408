// Package guides holds the tests that walk README.md and the guides of docs/; it has
// no code of its own.
//
// Each block that is fenced with "console" is a part of one script for each document.
// A line "$ CMD" is a command of the reader, a line "NAME$ CMD" one of the user NAME on
// another machine; the lines below it are what it prints. The test runs siteagent,
// submit, gridsim and cat against real agents, and compares their output with what the document
// shows: the words and their order count, while numbers, times, identities and paths
// may differ, and a line of three dots is any number of lines.
//
//   - "siteagent run" starts the user's agent and goes on when it answers.
//   - "cat FILE" of a file that nothing has written yet writes it; right below a command of submit
//     it shows what that has written.
//   - TOKEN in a command is the token of the last invitation, ID the last job.
//   - Other programs than curl and Snakemake are not run. What "go" is given must exist.
//   - A comment "<!-- script" holds lines for the script that a reader does not need.
//
// The real output is written into the documents by
//
//	go test ./internal/guides -update
//
// which leaves blocks with three dots alone.
package guides
