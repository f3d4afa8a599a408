// Package wirepb is the wire format of the mesh: wire.proto and what protoc and
// protoc-gen-go v1.36.12 make of it. Only pkg/protocol uses it; the messages
// there say what the fields mean. To generate it anew, in the module's root:
//
//	protoc --go_out=. --go_opt=module=github.com/mrsmesh/mrsmesh pkg/protocol/wirepb/wire.proto
package wirepb
