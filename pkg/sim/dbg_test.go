package sim

import (
	"testing"
	"time"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/border"
)

func TestDbg(t *testing.T) {
	cfg := Config{Seed: 5, CheckFacts: true, Network: lan()}
	cfg.Watch = func(s Sight) {
		if s.At < 14*time.Second && s.At > 5*time.Second && (s.Kind == SightReported) {
			if strings.HasPrefix(s.Report.Event, "lease") { return }
			t.Log(s.At, s.Site, s.Report.Event, s.Report.Attempt, s.Report.Site, s.Report.Reason, s.Report.Text)
		}
	}
	cfg.Sites, cfg.Realms = realms(1, 1, 2)
	cfg.Realms[0].Links = cfg.Realms[0].Links[:1]
	cfg.Realms[2].Links = cfg.Realms[2].Links[1:]
	for i := range cfg.Realms {
		cfg.Realms[i].Tune = func(c *border.Config) { c.MaxHops = 2 }
	}
	w := New(cfg)
	_ = w.Run(5 * time.Second)
	mustSubmit(t, w, "a0", bags(4, time.Minute))
	_ = w.Run(15 * time.Second)
	t.Log(w.Trace().Sent)
}
