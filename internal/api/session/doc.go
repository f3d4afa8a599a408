// Package session knows which browsers may use an agent's page: links that are good once and for
// a minute, and the sessions that they open. It decides who is signed in, until when, and as what.
// What a session may do, and how it is carried in a cookie, is up to internal/api.
//
// All is held in memory and lost with the agent. Secrets are 256 random bits, of which only
// digests are kept. Time is an argument.
package session
