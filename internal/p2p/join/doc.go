// Package join is both sides of an invitation: the lobby, where a few strangers wait
// for a moment while an invitation is open and may use the join stream alone, and
// Redeem, by which a newcomer asks. Invitations themselves are internal/member's; what
// an admission means to the mesh its caller is told by Config.Admitted. The doors are
// New and Redeem.
package join
