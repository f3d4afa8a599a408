package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/config"
)

const settingsHead = `The settings of a site, by subject. Each stands in the configuration file under
its name, is a variable MRS_NAME, and is a flag that all commands take: ceilings.cpus is
MRS_CEILINGS_CPUS and --ceilings-cpus. A flag is stronger than a variable, that than
the file, that than the preset, and that than the default, which is in brackets.

Sizes are written 512MiB or 4GiB, rates 50Mbit/s, times 90s, 10m, 2h or 7d, lists with
commas. A running agent applies settings marked * right away, the rest after a restart:

  siteagent config set ceilings.memory 4GiB
`

const advancedHead = `
Few need the following; in the file they may stand under the word advanced:
`

// settingsTopic shows every setting: siteagent help settings.
func settingsTopic() *cobra.Command {
	return &cobra.Command{Use: "settings", Short: "Every setting, by subject", Long: settingsText()}
}

func settingsText() string {
	var b strings.Builder
	b.WriteString(settingsHead)
	keys := config.AgentKeys(os.LookupEnv)
	writeTopics(&b, keys, true)
	b.WriteString(advancedHead)
	writeTopics(&b, keys, false)
	return b.String()
}

func writeTopics(b *strings.Builder, keys []config.Key, documented bool) {
	topic := ""
	for _, k := range keys {
		if k.Documented != documented {
			continue
		}
		if k.Topic != topic {
			topic = k.Topic
			fmt.Fprintf(b, "\n%s:\n", topic)
		}
		b.WriteString(settingText(k))
	}
}

// settingText is one setting in help: its name, what it does, what may be written and
// its default.
func settingText(k config.Key) string {
	const indent, width = 26, 100
	mark := " "
	if k.Live {
		mark = "*"
	}
	line := fmt.Sprintf("%s %-*s", mark, indent-2, k.Name)
	text, blank := "", strings.Repeat(" ", indent)
	column := indent
	for _, part := range settingParts(k) {
		if column > indent && column+1+len(part) > width {
			text, column = text+"\n"+blank, indent
		}
		if column > indent {
			text, column = text+" ", column+1
		}
		text, column = text+part, column+len(part)
	}
	return line + text + "\n"
}

// settingParts are what may stand on a line of its own.
func settingParts(k config.Key) []string {
	parts := []string{k.Help}
	if strings.Contains(k.Type, "|") && k.Type != "true|false" {
		parts = append(parts, "("+strings.ReplaceAll(k.Type, "|", ", ")+")")
	}
	defaults := k.Default
	if defaults == "" {
		defaults = "none"
	}
	if k.Name == "owner.yield" { // not only for the reader
		defaults = "true; false for an agent that root runs"
	}
	if k.WAN == "" {
		return append(parts, "["+defaults+"]")
	}
	return append(parts, "["+defaults+";", "preset wan: "+k.WAN+"]")
}
