package view

// MoveView says how far a task is that is moved to another site on purpose, or why it stays.
type MoveView struct {
	// Phase is seeking: other sites are asked; saving: its last state is awaited; stopping: its
	// attempt is being ended; or stays: the move came to nothing, for Reason.
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"` // why its site wants it, or why it stays
	Text   string `json:"text,omitempty"`   // what a person can do
}

// MoveStays is the Phase of a move that came to nothing.
const MoveStays = "stays"

// Line is the move in words.
func (m MoveView) Line() string {
	why := ""
	if m.Reason != "" {
		why = ": " + m.Reason
	}
	switch m.Phase {
	case MoveStays:
		text := "stays where it is" + why
		if m.Text != "" {
			text += "; " + m.Text
		}
		return text
	case "seeking":
		return "looks for another site" + why
	case "saving":
		return "moves when its state is saved" + why
	default:
		return "is stopped to move" + why
	}
}

// MoveRequest asks for tasks of a job to be moved to other sites.
type MoveRequest struct {
	Tasks   []uint32 `json:"tasks,omitempty"`   // empty: all that a site has
	Restart bool     `json:"restart,omitempty"` // those that have saved nothing begin anew
}
