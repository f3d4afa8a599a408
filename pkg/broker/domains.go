package broker

import (
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// byDomain says what the own domain and each neighbour have answered; empty: no neighbour has.
// Answers are sorted, offers first.
func byDomain(answers []Answer) string {
	own := make(map[grid.Reason]int)
	best, abroad := "", []string(nil)
	for _, a := range answers {
		text := a.Refusal.Reason.String()
		if a.Offer != nil {
			text = strconv.FormatFloat(a.Offer.Parts.Distance, 'g', 2, 64)
		}
		switch {
		case a.Domain != "":
			asked := ""
			if a.Beside {
				asked = ", asked beside the members"
			}
			abroad = append(abroad,
				"domain "+string(a.Domain)+asked+": "+strings.TrimPrefix(text, "0"))
		case a.Offer != nil && best == "":
			best = strings.TrimPrefix(text, "0")
		case a.Offer == nil:
			own[a.Refusal.Reason]++
		}
	}
	if len(abroad) == 0 {
		return ""
	}
	for why := grid.ReasonNone + 1; why <= grid.ReasonFull && best == ""; why++ {
		if most := mostOf(own); own[why] == most && most > 0 {
			best = why.String()
		}
	}
	if best == "" {
		best = "nobody answered"
	}
	return strings.Join(append([]string{"own domain: " + best}, abroad...), "; ")
}

// mostOf is the highest of some counts.
func mostOf(counts map[grid.Reason]int) int {
	most := 0
	for why := grid.ReasonNone; why <= grid.ReasonFull; why++ {
		most = max(most, counts[why])
	}
	return most
}
