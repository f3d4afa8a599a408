package tes

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Where the script stands in the sandbox, and what it leaves.
const (
	scriptPath = ownDir + "/run"
	logDir     = ownDir + "/log" // of each executor N.code, N.start, N.end, N.stdout, N.stderr
	matchDir   = ownDir + "/out" // what wildcards match: of each output a directory with its number
)

// tailBytes bounds what a log keeps of each stream of an executor, in bytes.
const tailBytes = 10 << 10

// ownFailure is the code of a script that could not do its own part.
const ownFailure = 125

// script runs a task's executors one after the other, notes how each went, and then gathers what
// the wildcards of the outputs match. It ends with the code of the executor that stopped it.
func (w *work) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "now() { date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ; }\nstop=\n")
	fmt.Fprintf(&b, "mkdir -p %s || exit %d\n", quoteAll(w.directories()), ownFailure)
	for _, i := range w.mounts {
		w.mount(&b, i)
	}
	for i, s := range w.steps {
		s.write(&b, i)
	}
	for i, out := range w.outputs {
		if out.prefix != "" {
			out.gather(&b, i)
		}
	}
	fmt.Fprintln(&b, `exit "${stop:-0}"`)
	return b.String()
}

// directories are those that the executors expect.
func (w *work) directories() []string {
	dirs := append([]string{logDir}, w.volumes...)
	for _, s := range w.steps {
		if s.workdir != "" {
			dirs = append(dirs, s.workdir)
		}
		for _, stream := range []string{s.stdout, s.stderr} {
			if stream != "" {
				dirs = append(dirs, path.Dir(stream))
			}
		}
	}
	for _, out := range w.outputs {
		if out.prefix != "" {
			dirs = append(dirs, out.prefix)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// write adds an executor to the script.
func (s stage) write(b *strings.Builder, number int) {
	stdout, stderr := s.stdout, s.stderr
	if stdout == "" {
		stdout = fmt.Sprintf("%s/%d.out", ownDir, number)
	}
	if stderr == "" {
		stderr = fmt.Sprintf("%s/%d.err", ownDir, number)
	}
	note := fmt.Sprintf("%s/%d.", logDir, number)
	fmt.Fprintf(b, "if [ -z \"$stop\" ]; then\nnow >%sstart\n(\n", note)
	if stdout == stderr {
		fmt.Fprintf(b, "exec >%s 2>&1\n", quote(stdout))
	} else {
		fmt.Fprintf(b, "exec 2>%s >%s\n", quote(stderr), quote(stdout))
	}
	if s.stdin != "" {
		fmt.Fprintf(b, "exec <%s\n", quote(s.stdin))
	}
	if s.workdir != "" {
		fmt.Fprintf(b, "cd %s || exit %d\n", quote(s.workdir), ownFailure)
	}
	words := s.command
	if len(s.env) > 0 {
		words = []string{"env"}
		for _, v := range s.env {
			words = append(words, v[0]+"="+v[1])
		}
		words = append(words, s.command...)
	}
	fmt.Fprintf(b, "exec %s\n)\ncode=$?\nnow >%send\n", quoteAll(words), note)
	fmt.Fprintf(b, "tail -c %d %s >%sstdout\n", tailBytes, quote(stdout), note)
	if stdout != stderr {
		fmt.Fprintf(b, "tail -c %d %s >%sstderr\n", tailBytes, quote(stderr), note)
		fmt.Fprintf(b, "cat %sstderr >&2\n", note)
	}
	fmt.Fprintf(b, "cat %sstdout\necho \"$code\" >%scode\n", note, note)
	if !s.ignoreError {
		fmt.Fprintln(b, `[ "$code" = 0 ] || stop=$code`)
	}
	fmt.Fprintln(b, "fi")
}

// gather adds what copies the matches of an output's wildcards.
func (t target) gather(b *strings.Builder, number int) {
	dir := matchOf(number)
	fmt.Fprintf(b, "mkdir -p %s\nprefix=%s\nfor match in %s; do\n", dir, quote(t.prefix),
		quotePattern(t.path))
	fmt.Fprintln(b, `[ -e "$match" ] || continue`)
	fmt.Fprintf(b, "to=%s/\"${match#\"$prefix\"/}\"\n", dir)
	fmt.Fprintln(b, `mkdir -p "${to%/*}" && cp -RL "$match" "$to" ||`)
	fmt.Fprintf(b, "stop=${stop:-%d}\ndone\n", ownFailure)
}

// matchOf names the directory of an output's matches.
func matchOf(number int) string { return fmt.Sprintf("%s/%d", matchDir, number) }

// quote makes a text one word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = quote(word)
	}
	return strings.Join(out, " ")
}

// quotePattern is quote, but wildcards keep their meaning. A backslash takes the next one's away.
func quotePattern(pattern string) string {
	var b strings.Builder
	plain := false
	for _, r := range pattern {
		switch {
		case plain:
			b.WriteString(quote(string(r)))
			plain = false
		case r == '\\':
			plain = true
		case strings.ContainsRune("*?[]!^-/._:", r), r >= '0' && r <= '9', r >= 'a' && r <= 'z',
			r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		default:
			b.WriteString(quote(string(r)))
		}
	}
	return b.String()
}
