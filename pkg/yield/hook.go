package yield

import (
	"fmt"
	"strings"
	"unicode"
)

// WhyHook begins why a site yields by its owner's program, for people.
const WhyHook = "owner.hook: "

// HookAnswer is the answer of a program of the owner's that is asked whether the machine is shared.
// The zero value: it has not answered yet.
type HookAnswer struct {
	Ended bool   // it ended by itself, with Code
	Code  int    // 0 shares the machine, 1 does not
	Line  string // the first of its output, by HookLine
	Fault string // why it did not end by itself, for people
}

// Said is the result of asking somebody whether the machine is shared.
type Said struct {
	Why     string // it is not, for people; empty: it is
	Trouble string // why there is no answer of use, for people; empty: there is
}

// Judge says what an answer decides. A program that does not work pauses the site: the owner wanted
// something to be asked before the machine is used.
func (a HookAnswer) Judge() Said {
	const share, pause = 0, 1
	switch {
	case a.Fault != "":
		return troubled(a.Fault)
	case !a.Ended:
		return Said{Why: WhyHook + "it has not answered yet"}
	case a.Code == share:
		return Said{}
	case a.Code == pause && a.Line != "":
		return Said{Why: WhyHook + a.Line}
	case a.Code == pause:
		return Said{Why: WhyHook + "it says no, and not why"}
	}
	text := fmt.Sprintf("it ended with code %d, want 0 or 1", a.Code)
	if a.Line != "" {
		text += ", and said: " + a.Line
	}
	return troubled(text)
}

func troubled(text string) Said {
	return Said{Why: WhyHook + "it does not work: " + text, Trouble: text}
}

// hookLineLength bounds a line that is shown, in characters.
const hookLineLength = 100

// HookLine is the first line of an output, as far as it can be printed and shown.
func HookLine(output string) string {
	line, _, _ := strings.Cut(strings.ToValidUTF8(output, ""), "\n")
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, line))
	if chars := []rune(line); len(chars) > hookLineLength {
		line = strings.TrimSpace(string(chars[:hookLineLength-1])) + "…"
	}
	return line
}
