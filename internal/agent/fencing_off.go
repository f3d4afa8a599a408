//go:build unsafe_nofencing

package agent

const noFencing = true
