package tes

import (
	"path"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// ownDir is the directory in the sandbox that holds the script and what it notes.
const ownDir = "/.tes"

// taken are the directories in which a task may not place anything.
func taken() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/dev", "/sys",
		"/etc", ownDir,
	}
}

// maxPathBytes is the longest path in a task.
const maxPathBytes = 4096

// placeOf is a path of a task as the sandbox has it: absolute, without a slash at its end.
func placeOf(field, given string) (string, error) {
	wrong := func(detail, remedy string) error { return invalid(field, detail, remedy) }
	switch {
	case len(given) > maxPathBytes:
		return "", wrong("the path is too long", "at most 4096 bytes are taken")
	case !strings.HasPrefix(given, "/"):
		return "", wrong("want an absolute path, have "+quoted(given), "begin it with /")
	case strings.ContainsRune(given, 0), strings.Contains(given, "{{"):
		return "", wrong("the path holds a zero byte or {{", "choose another name")
	}
	for part := range strings.SplitSeq(given, "/") {
		if part == ".." || part == "." {
			return "", wrong("the path has "+part+" as a part: "+quoted(given), "write it out")
		}
	}
	clean := path.Clean(given)
	for _, dir := range taken() {
		if below(clean, dir) {
			return "", wrong(dir+" belongs to the site's system, which a task cannot change",
				"choose another directory, such as one below /data")
		}
	}
	return clean, nil
}

// below reports whether a clean path is a directory or stands in it.
func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// streamOf is the path of a standard stream; empty stays empty. Nothing may be read from it, or
// written to it, at /dev/null.
func streamOf(field string, given *string) (string, error) {
	switch {
	case given == nil || *given == "":
		return "", nil
	case *given == "/dev/null":
		return *given, nil
	default:
		return placeOf(field, *given)
	}
}

// invalid is the problem of a request with a field that is wrong.
func invalid(field, detail, remedy string) error {
	return &view.Problem{Status: 400, Field: field, Detail: detail, Remedy: remedy}
}

// quoted is a text of a request for an error, not too long.
func quoted(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return `"` + text + `"`
}

// wild reports whether a path has wildcards of the shell.
func wild(p string) bool { return strings.ContainsAny(p, "*?[") }
