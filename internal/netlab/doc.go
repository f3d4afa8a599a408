// Package netlab makes small networks of network namespaces for tests and
// measurements, on Linux and as root: hosts with links of a chosen rate, routers
// that translate addresses, partitions, and delay and loss.
//
// A lab is a star. Each host has a namespace of its own with one interface,
// eth0, whose other end is in the namespace of the switch, which routes between
// them; behind a NAT there is a second star with the NAT in the middle. No
// namespace has a way out of the lab, and the machine's own namespace is never
// touched. Rates are those of tc tbf. Delay and loss come from a program, since
// not every kernel has netem: the switch hands all packets to a TUN device, and
// this process puts them back when their time has come.
//
// Everything of a lab has a name with the process's ID and is gone after Close;
// what a run left behind that died is removed by the next one. Processes are
// started in a host by Command; a function that makes sockets runs there by Do.
//
// The package decides nothing about the programs that run in a lab.
package netlab
