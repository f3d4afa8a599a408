package yield

// WhyMetered is why a site yields while data costs money, for people.
const WhyMetered = "the connection is metered"

// Metered says by NetworkManager's numbers whether data costs money on the connection to the
// Internet.
type Metered uint32

// Judge says what that decides. What nobody knows decides nothing: many machines have no
// NetworkManager.
func (m Metered) Judge() Said {
	const yes, guessed = 1, 3 // 2 and 4: no, and guessed; 0: unknown
	if m == yes || m == guessed {
		return Said{Why: WhyMetered}
	}
	return Said{}
}
