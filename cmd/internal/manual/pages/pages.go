// Package pages writes manual pages, one for each command and topic of help of a program, from the
// same words as --help. Only releases need it, see package manual.
package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Command is the command "man DIR" of the program whose tree it is put into. The pages bear the
// time that SOURCE_DATE_EPOCH has, in seconds of Unix, or else the present one. Anything but one
// argument is an error.
func Command() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a directory", Hidden: true,
		Args:              cobra.ExactArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it asks no agent
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := dateOf(os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return write(root, args[0], doc.GenManHeader{
				Section: "1", Date: &date, Source: "mrs", Manual: "Scheduling mesh",
			})
		},
	}
}

func dateOf(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: want seconds of Unix, have %q", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// write writes the pages of a command and of all below it, hidden ones left out.
func write(cmd *cobra.Command, dir string, header doc.GenManHeader) error {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() && !c.Hidden {
			if err := write(c, dir, header); err != nil {
				return err
			}
		}
	}
	cmd.Long = markdown(cmd.Long)
	path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	page, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	if err = doc.GenMan(cmd, &header, page); err != nil {
		_ = page.Close() // the page is lost anyway
		return fmt.Errorf("write manual page %s: %w", path, err)
	}
	return page.Close()
}

// markdown turns a text for terminals into what pages are made from: lines that are indented
// stay as they are, and no sign in the others means anything but itself.
func markdown(text string) string {
	signs := regexp.MustCompile("[\\\\*_<>#`\\[\\]]")
	var b strings.Builder
	before := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "  ")
		if indented != before {
			b.WriteByte('\n')
		}
		before = indented
		if indented {
			b.WriteString("    " + line)
			continue
		}
		b.WriteString(signs.ReplaceAllString(line, `\$0`))
	}
	return b.String()
}
