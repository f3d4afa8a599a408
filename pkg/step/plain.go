package step

import (
	"bytes"
	"encoding/json"
)

// decodePlain reads facts as AppendFacts writes them, each row with its value, kinds and keys
// without escapes. It is several times faster than what reads any JSON, which matters where tables
// of a hundred thousand tasks are replicated. plain is false for all else, right or wrong.
func decodePlain(text []byte) (facts []Fact, plain bool) {
	rest, ok := bytes.CutPrefix(text, []byte("["))
	for ok && len(rest) > 0 && rest[0] == '{' {
		var f Fact
		if f, rest, ok = plainRow(rest); !ok {
			return nil, false
		}
		facts = append(facts, f)
		if rest, ok = bytes.CutPrefix(rest, []byte(",")); !ok {
			return facts, string(rest) == "]"
		}
	}
	return nil, false
}

// plainRow reads one row.
func plainRow(text []byte) (f Fact, rest []byte, ok bool) {
	if f.Kind, rest, ok = plainText(text, `{"kind":"`); !ok {
		return f, nil, false
	}
	if f.Key, rest, ok = plainText(rest, `,"key":"`); !ok {
		return f, nil, false
	}
	if after, removed := bytes.CutPrefix(rest, []byte("}")); removed {
		return f, after, true
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`,"value":`)); !ok {
		return f, nil, false
	}
	end := valueEnd(rest)
	if end >= len(rest) || rest[end] != '}' || !json.Valid(rest[:end]) ||
		len(bytes.TrimSpace(rest[:end])) < end {
		return f, nil, false
	}
	f.Value = bytes.Clone(rest[:end]) // the text is not kept for the sake of one row
	return f, rest[end+1:], true
}

// plainText reads a string without escapes that stands behind so much.
func plainText(text []byte, behind string) (s string, rest []byte, ok bool) {
	if rest, ok = bytes.CutPrefix(text, []byte(behind)); !ok {
		return "", nil, false
	}
	for i, c := range rest {
		switch {
		case c == '"':
			return string(rest[:i]), rest[i+1:], true
		case c < ' ' || c > '~' || c == '\\':
			return "", nil, false
		}
	}
	return "", nil, false
}

// valueEnd finds the end of the value that text begins with, behind all that it opens.
func valueEnd(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']' || c == ',') && depth == 0:
			return i
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(text)
}
