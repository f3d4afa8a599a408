package yield

// WhyInput begins why a site yields to those at its keyboard or mouse, for people.
const WhyInput = "owner.input: "

// InputAnswer is the answer to the question whether somebody uses the machine's keyboard or mouse.
type InputAnswer struct {
	Idle  bool   // nobody does
	Fault string // why that is not known, for people
}

// Judge says what an answer decides. Where nothing is known the site pauses: the owner wanted to
// have the machine alone.
func (a InputAnswer) Judge() Said {
	switch {
	case a.Fault != "":
		return Said{
			Why:     WhyInput + "it is not known whether you are there: " + a.Fault,
			Trouble: a.Fault,
		}
	case a.Idle:
		return Said{}
	default:
		return Said{Why: WhyInput + "keyboard or mouse are in use"}
	}
}
