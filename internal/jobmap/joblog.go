package jobmap

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// LogHeader is the first line of a log of tasks, as GNU parallel writes it.
const LogHeader = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

// LogEntry is a task that has ended.
type LogEntry struct {
	Number        int // from 1
	Host          string
	Start         time.Time     // zero: it never started
	Run           time.Duration // from start to end
	Send, Receive int64         // bytes of its inputs, of its outputs
	Code          int           // 0 to 255; -1 if it has none, as one that was cancelled
	Signal        int           // that ended it; 0 for none
	Command       string
}

// Line is the entry as a line of the log. Line breaks and tabs of texts are escaped.
func (e LogEntry) Line() string {
	start := 0.0
	if !e.Start.IsZero() {
		start = float64(e.Start.UnixMilli()) / 1000
	}
	escape := strings.NewReplacer("\n", `\n`, "\t", `\t`)
	return fmt.Sprintf("%d\t%s\t%.3f\t%10.3f\t%d\t%d\t%d\t%d\t%s\n", e.Number,
		escape.Replace(e.Host), start, e.Run.Seconds(), e.Send, e.Receive, e.Code, e.Signal,
		escape.Replace(e.Command))
}

// ReadLog gives the numbers of the tasks that a log has, and how many bytes it takes up to the end
// of its last whole line: what follows was cut short, as by a crash, and is left out. A file that
// is no such log is an error.
func ReadLog(from io.Reader) (seen map[int]bool, whole int64, err error) {
	seen = map[int]bool{}
	lines := bufio.NewReader(from)
	for first := true; ; first = false {
		line, err := lines.ReadString('\n')
		if first && line != "" && line != LogHeader {
			return nil, 0, fmt.Errorf("want a log of tasks, whose first line begins with Seq and "+
				"Host, have %.20q; name another file", line)
		}
		if err == io.EOF {
			return seen, whole, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read log of tasks: %w", err)
		}
		whole += int64(len(line))
		text, _, _ := strings.Cut(line, "\t")
		if number, wrong := strconv.Atoi(text); wrong == nil {
			seen[number] = true
		}
	}
}
