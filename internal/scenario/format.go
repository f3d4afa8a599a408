package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// String writes the scenario so that Parse reads the same one.
func (s Scenario) String() string {
	var b strings.Builder
	for i := 0; i < len(s.Sites); {
		n := 1
		for i+n < len(s.Sites) && alike(s.Sites[i], s.Sites[i+n]) {
			n++
		}
		b.WriteString(s.Sites[i].text(n))
		i += n
	}
	for _, k := range s.Links {
		b.WriteString(k.text())
	}
	if s.Net != (Net{}) {
		b.WriteString(s.Net.text())
	}
	for _, site := range s.Sites {
		if site.Skew != 0 {
			fmt.Fprintf(&b, "clock site=%s skew=%s\n", site.Name, site.Skew)
		}
	}
	for _, e := range s.Events {
		b.WriteString(e.String())
	}
	fmt.Fprintf(&b, "run for=%s seed=%d\n", s.Run.For, s.Run.Seed)
	for _, e := range s.Expect {
		fmt.Fprintf(&b, "expect %s\n", e)
	}
	return b.String()
}

func alike(a, b Site) bool {
	return a.Domain == b.Domain && a.Capability.Total == b.Capability.Total &&
		a.Capability.UpBps == b.Capability.UpBps && a.Capability.DownBps == b.Capability.DownBps
}

func (s Site) text(n int) string {
	c := s.Capability
	return fmt.Sprintf("sites n=%d cores=%s gflops=%s mem=%dB disk=%dB uplink=%dbps downlink=%dbps "+
		"domain=%s\n", n, decimal(c.Total.MilliCPUs), decimal(c.Total.MFLOPS), c.Total.MemoryBytes,
		c.Total.DiskBytes, c.UpBps, c.DownBps, s.Domain)
}

// decimal is a number of thousandths.
func decimal(thousandths int64) string {
	return strconv.FormatFloat(float64(thousandths)/1000, 'f', -1, 64)
}

func (n Net) text() string {
	var b strings.Builder
	b.WriteString("net" + timeText("latency", n.Latency) + timeText("jitter", n.Jitter))
	for _, p := range []struct {
		key   string
		value float64
	}{{"loss", n.Loss}, {"duplicate", n.Duplicate}, {"reorder", n.Reorder}} {
		if p.value > 0 {
			b.WriteString(" " + p.key + "=" + strconv.FormatFloat(p.value, 'g', -1, 64))
		}
	}
	return b.String() + "\n"
}

// timeText is a key with its time, nothing for 0.
func timeText(key string, d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" %s=%s", key, d)
}

// String is the line that the event is written as.
func (e Event) String() string {
	switch e.Kind {
	case Submit:
		return e.Submit.text(e.At)
	case Cancel, Migrate:
		return fmt.Sprintf("%s job=%s at=%s\n", e.Kind, e.Job, e.At)
	case Upset:
		return fmt.Sprintf("%s site=%s at=%s%s%s\n",
			e.Trouble.Word, e.Site, e.At, timeText("for", e.For), e.Trouble.text())
	default:
		text := fmt.Sprintf("%s site=%s at=%s%s", e.Kind, e.Site, e.At, timeText("for", e.For))
		if e.Amid {
			text += " amid=step"
		}
		return text + "\n"
	}
}

// placingText says how long, when, after and in what, and beside whom the submission runs.
func (s Submission) placingText() string {
	text := timeText("takes", s.Takes) + timeText("start", s.Start) +
		timeText("notbefore", s.NotBefore) + timeText("deadline", s.Deadline)
	if s.Reserve {
		text += timeText("reserve", s.Run)
	}
	if s.Reservation != "" {
		text += " reservation=" + s.Reservation
	}
	if len(s.After) > 0 {
		text += " after=" + strings.Join(s.After, ",")
	}
	if s.Split != grid.SplitNone {
		text += " split=" + s.Split.String()
	}
	if s.Flood {
		text += " placing=flood"
	}
	if s.Map != grid.MapThesis {
		text += " map=" + s.Map.String()
	}
	return text
}

func (s Submission) text(at time.Duration) string {
	text := fmt.Sprintf("submit job=%s at=%s by=%s jobs=%d count=%d gflops=%s cpus=%d mem=%dB "+
		"disk=%dB run=%s ttl=%s",
		s.Name, at, s.By, s.Jobs, s.Count, decimal(s.Need.MFLOPS), s.Need.MilliCPUs/1000,
		s.Need.MemoryBytes, s.Need.DiskBytes, s.Run, s.TTL)
	if s.Data > 0 {
		text += fmt.Sprintf(" data=%dB", s.Data)
	}
	if s.Need.NetBps > 0 {
		text += fmt.Sprintf(" net=%dbps", s.Need.NetBps)
	}
	if s.Unattended != grid.UnattendedFreeze {
		text += " unattended=" + s.Unattended.String()
	}
	if s.NoWait {
		text += " wait=no"
	}
	text += timeText("limit", s.Limit)
	if s.Output {
		text += " output=yes"
	}
	return text + s.placingText() + "\n"
}
