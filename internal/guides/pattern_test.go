package guides

import (
	"regexp"
	"testing"
)

// loosening replaces what differs from run to run by the placeholders of scripttest.
type loosening struct {
	pattern *regexp.Regexp
	by      string
}

func loosenings() []loosening {
	rows := [][2]string{
		{`#open=[\w-]{43}`, "#open=<any>"}, // the code of a link to the page
		{`12D3KooW[1-9A-Za-z]{44}`, "<site>"},
		{`\d{4}-\d\d-\d\d(?:T| )\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?`, "<any>"},
		{`(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\b\d\d:\d\d(?::\d\d)?\b`, "<any>"},
		{`mrs(?:link)?1\.[A-Za-z0-9_-]+`, "<any>"}, // a token
		{`\bed25519:[\w-]{43}`, "<any>"},
		{`\b[0-9a-f]{8}\b`, "<any>"},       // an invitation
		{`\b[0-9A-F]{16}\b`, "<any>"},      // its short form
		{`\bRW[A-Za-z0-9+/]{54}`, "<any>"}, // a public key of minisign
		{`\b[a-z2-7]{16}\b`, "<id>"},
		{`/[\w.~/+-]*/[\w.~/+-]+`, "<any>"}, // a path or an address
		{`-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)? ?` +
			`(?:B|KiB|MiB|GiB|TiB|[kMG]?bit/s|ns|us|µs|ms|s|min|m|h|d)\b`, "<any>"},
		{`-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b`, "<n>"},
	}
	var all []loosening
	for _, row := range rows {
		all = append(all, loosening{regexp.MustCompile(row[0]), row[1]})
	}
	return all
}

// loosen makes a pattern of a line that a document shows.
func loosen(line string) string {
	for _, l := range loosenings() {
		line = l.pattern.ReplaceAllString(line, l.by)
	}
	return line
}

func TestLoosen(t *testing.T) {
	for line, want := range map[string]string{
		"200 tasks  34 done 17 %":                              "<n> tasks  <n> done <n> %",
		"job mfrgg43foq5dkmru.0 ended after 1.2s":              "job <id>.<n> ended after <any>",
		"wrote /home/attic/.config/mrs/siteagent.yaml":         "wrote <any>",
		"memory 1.5 GiB of 2 GiB":                              "memory <any> of <any>",
		"valid until Mon 01:05":                                "valid until <any>",
		"start 2026-05-01T14:00:00+02:00, kept":                "start <any>, kept",
		"distance 7.274e-05 of 2":                              "distance <n> of <n>",
		"at #open=Byg2Gtby55z0zhw89euc-dOgiF5d_hGdsJMMTzssWqz": "at #open=<any>",

		"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3": "<any>",

		"no figures here": "no figures here",
	} {
		if got := loosen(line); got != want {
			t.Errorf("loosen(%q) = %q, want %q", line, got, want)
		}
	}
}
