package jobmap

import (
	"fmt"
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
