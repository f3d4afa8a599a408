//go:build !unix

package agent

// plainFileOnly adds nothing: no job runs on such a system, so none wrote a link.
const plainFileOnly = 0
