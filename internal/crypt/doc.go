// Package crypt encrypts what an encrypted job reads and leaves for the job's own key, and that key
// for the one site that is to have it. All of it is in the format of age. It decides nothing: who
// gets a key is the business of pkg/broker, and what is encrypted that of internal/agent.
//
// Keys are ed25519 keys, as age takes them from SSH: a site's is that of its name, so that nobody
// has to say it, and a job's follows from its agent's and a random name.
//
//	key.go      keys of jobs, and keys encrypted for a site
//	content.go  streams encrypted and opened
//	folder.go   directories packed, and laid out within bounds
package crypt
