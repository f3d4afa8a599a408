package jobmap

import (
	"fmt"
	"slices"
	"strings"
)

// plain reports whether sh takes a text as one word as it stands.
func plain(text string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.,:=@%+-"
	return text != "" && strings.Trim(text, safe) == ""
}

// quote makes a text one word of sh.
func quote(text string) string {
	if plain(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// quoteAll makes texts words of sh, with spaces between.
func quoteAll(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = quote(text)
	}
	return strings.Join(words, " ")
}

// unquote reads words that quoteAll wrote; it knows no more of sh than that takes.
func unquote(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inside, begun := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			inside, begun = !inside, true
		case inside:
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			begun = true
		case c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if inside {
		return nil, fmt.Errorf("read the words of %.40q: a quote is open at the end", line)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// isSimple reports whether words are a command that sh would start as they are: a shell of its own
// takes as long as many a command. An item stands for a plain text.
func isSimple(words []string) bool {
	for i, word := range words {
		if i == 0 && (strings.ContainsAny(word, "={") || slices.Contains(ofTheShell(), word)) ||
			!plain(strings.ReplaceAll(word, item, "x")) {
			return false
		}
	}
	return len(words) > 0
}

// ofTheShell are the words that mean something to a shell itself where a command begins.
func ofTheShell() []string {
	return strings.Fields(`. : [ alias bg break builtin case cd command continue declare dirs disown
		do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts
		hash if in jobs kill let local logout popd printf pushd pwd read readonly return select set
		shift shopt source suspend test then time times trap true type typeset ulimit umask unalias
		unset until wait while`)
}
