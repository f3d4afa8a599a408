// Package archtest holds the tests that keep the house in order; it has no code
// of its own. They read the repository's source and fail on
//
//   - an import that the table of rooms (rooms_test.go) does not allow, a package
//     that the table does not name, and third-party code outside its room;
//   - impurity in pkg/: a clock, global randomness, input or output, a goroutine,
//     a channel, a lock, or a walk over a map in its random order;
//   - a package without exactly one package doc, and an exported name in pkg/
//     without a doc comment;
//   - more exported names that no other package uses than a bound, which only
//     falls (names_test.go; make names lists them);
//   - a package of more than eight files whose doc has no line for each of them;
//   - a picture of the arrows, docs/arrows.svg, that is not what the table says;
//   - a package that the tree in ARCHITECTURE.md does not show, and a symbol that
//     docs/papers.md names but the code no longer has;
//   - a phrase that docs/nomenclature.md gives up, a word that it defines twice, and
//     a line over 100 columns: in Markdown all of them, in Go more than
//     testdata/ratchet.txt allows for the directory.
//
// Every rule is itself tested against the wrong code in testdata: a line that
// must be refused carries a comment with the words of the refusal. A new room or
// arrow is a decision: it comes with a record in docs/adr, a line in the table
// and a line in the tree, all in one commit.
package archtest
