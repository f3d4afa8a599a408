// Package view holds what the API and the command line show: jobs, tasks,
// offers, sites, events and the agent's own state as JSON-facing values, so that
// pkg/grid stays small. Times are RFC 3339 in UTC; durations and sizes carry
// their unit in the field's name (runtime_seconds, memory_bytes). Unknown is
// left out, never 0.
//
// The package also names the errors by which a backend tells the API what went
// wrong (ErrNotFound, ErrDenied, ...), because both sides may import it.
package view
