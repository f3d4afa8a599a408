// Package obs is how the agent is observed: a logger made from configuration
// and a registry of metrics. Both are handed to the rooms that need them; no
// package keeps a logger or a registry of its own.
package obs
