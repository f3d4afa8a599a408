//go:build e2e && !linux

package e2e_test

// enterMounting does nothing: no test mounts there.
func enterMounting() (dir string, entered bool) { return "", false }
