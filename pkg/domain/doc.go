// Package domain is the controller's machine: it knows what the sites of a domain have promised and
// not begun, and says which of it leaves a site that has failed, when, and where to. One runs in
// the domain's group, at the member that acts. It holds no lease and awards nothing: the
// submitters' machines (pkg/broker) do, so that two controllers at a time can do no harm beyond a
// needless move, and a domain without one works as one that has never had one.
//
// Source: L.-O. Burchard and others, "VRM: A Failure-Aware Grid Resource Management System".
package domain
