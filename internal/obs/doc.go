// Package obs makes the agent observable: a logger made from configuration and
// a registry of metrics. Both are handed to the rooms that need them; no
// package keeps a logger or a registry of its own.
package obs
