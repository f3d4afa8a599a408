// Package death tells submitters that a site's agent has died and that nothing is left of
// their attempts: the site's death certificate. It is told by a process that the attempts'
// supervisors start when the agent is gone and each has ended its attempt, one process for all
// of them, with the site's own key: the connection proves who speaks, over every transport
// and through relays. What is to be told, and where, was written while the agent lived (a
// Note). The doors are Main and Note; the side that listens is the mesh.
package death
