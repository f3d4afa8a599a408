//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Two machines that know nothing of each other, each with an address of its own:
// one invites, the other one joins, works, is paused, resumed and banned.
func TestJoinAcrossANetwork(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	m := startLab(ctx, t)
	for _, name := range []string{"home", "attic"} {
		m.add(ctx, t, name, netlab.Link{UpBps: 50e6, DownBps: 50e6},
			"domain: "+name+"\nceilings: {cpus: 1, memory: 1GiB, disk: 1GiB, gflops: 1}\n")
	}
	home, attic := m.sites[0], m.sites[1]
	for _, start := range []func(context.Context) error{home.launch, home.ready} {
		if err := start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	token := home.mustSay(ctx, t, "invite")
	began := time.Now()
	told := attic.mustSay(ctx, t, "join", token)
	took := time.Since(began)
	if !strings.HasPrefix(told, "my offers arrive: yes") {
		t.Fatalf("join says %q", told)
	}
	t.Logf("%.1f s from join to the first offer: %s", took.Seconds(), told)
	if took > 10*time.Second {
		t.Errorf("the first offer came after %s, want at most 10s", took)
	}
	for _, start := range []func(context.Context) error{attic.launch, attic.ready} {
		if err := start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	home.mustSay(ctx, t, "pause") // so that jobs go to the other one, or nowhere
	offers := func() int { return offersTo(ctx, t, home) }
	awaitOffers := func(what string, want int) {
		t.Helper()
		if err := await(
			ctx, patience, what, func() (bool, error) { return offers() == want, nil },
		); err != nil {
			t.Fatal(err)
		}
	}
	awaitOffers("the new member offers", 1)
	attic.mustSay(ctx, t, "pause")
	awaitOffers("a paused member does not offer", 0)
	attic.mustSay(ctx, t, "resume")
	awaitOffers("it offers again", 1)
	home.mustSay(ctx, t, "ban", string(attic.id))
	awaitOffers("a banned member does not offer", 0)
	if err := await(ctx, patience, "the ban takes effect", func() (bool, error) {
		status, err := home.client.Status(ctx)
		return status.Peers == 0, err
	}); err != nil {
		t.Error(err)
	}
}

// say runs an owner's command on the site's machine.
func (s *labSite) say(ctx context.Context, args ...string) (string, error) {
	var out, trouble bytes.Buffer
	cmd := s.host.Command(ctx, bin.siteagent, append([]string{"--config", s.file()}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &trouble
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf(
			"siteagent %s: %w: %s%s", strings.Join(args, " "), err, out.String(), trouble.String(),
		)
	}
	return strings.TrimSpace(out.String()), nil
}

func (s *labSite) mustSay(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.say(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// offersTo counts the sites that offer for a small job.
func offersTo(ctx context.Context, t *testing.T, s *labSite) int {
	t.Helper()
	ref, err := s.client.PutData(ctx, false, bytes.NewReader(sleeper("probe", tick, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.client.Plan(ctx, grid.Job{Count: 1, TTL: time.Second, Spec: grid.Spec{
		Name: "probe", Kind: grid.KindWasm, Runtime: time.Second, Weights: grid.DefaultWeights(),
		Module: grid.Input{CID: ref.CID, Bytes: ref.Bytes},
		Need:   grid.Resources{MilliCPUs: 500, MemoryBytes: 64 << 20, DiskBytes: 64 << 20, MFLOPS: 100},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range table.Rows {
		if row.Rank > 0 {
			n++
		}
	}
	return n
}
