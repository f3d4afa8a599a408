package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	tasks    = 12 // of the job that fills the first domain, which has places for four
	places   = 2 * cores
	nap      = 4 * time.Second
	estimate = 6 * time.Second
)

// fill submits more tasks than the first domain has places for, and waits for their end.
func (s *story) fill(ctx context.Context) error {
	module := localmesh.Program{Sleep: nap, Stdout: "done\n"}.Module()
	ref, err := s.owner().PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return fmt.Errorf("upload the program: %w", err)
	}
	id, err := s.owner().Submit(ctx, grid.Job{
		Spec: grid.Spec{
			Name: "overflow", Kind: grid.KindWasm, Need: need(),
			Module:  grid.Input{CID: ref.CID, Bytes: ref.Bytes},
			Runtime: estimate, Weights: grid.DefaultWeights(),
		},
		Count: tasks, TTL: ttl,
	})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s.out.Say("submitted %d tasks; domain %s has places for %d of them now", tasks, labName, places)
	told := false
	err = localmesh.Await(ctx, limit, "the job to end", func(ctx context.Context) (bool, error) {
		all, wrong := s.owner().AllTasks(ctx, id)
		if wrong != nil {
			return false, nil //nolint:nilerr // a busy agent is asked again, until the limit
		}
		s.overflow = all
		if !told {
			told = s.sayWhy(ctx, id)
		}
		ended := s.count()
		s.out.Progress("%d of %d tasks have ended, %d ran in domain %s", ended, tasks,
			s.result.nextDoor, campusName)
		return ended == tasks, nil
	})
	if err == nil {
		s.out.Say("%d of %d tasks are done; %d of them ran in domain %s", s.result.done, tasks,
			s.result.nextDoor, campusName)
	}
	return err
}

// sayWhy shows once what each domain has answered, as submit why does.
func (s *story) sayWhy(ctx context.Context, id grid.JobID) bool {
	offers, err := s.owner().Offers(ctx, id)
	if err != nil || len(offers.Domains) == 0 {
		return false
	}
	for _, line := range offers.Domains {
		s.out.Say("  %s", line)
	}
	return true
}

// count counts the tasks that have ended, and what came of them.
func (s *story) count() (ended int) {
	s.result.done, s.result.nextDoor = 0, 0
	for _, t := range s.overflow {
		if t.Phase.Ended() {
			ended++
		}
		if t.Phase == view.PhaseDone {
			s.result.done++
			if t.Domain == campusName {
				s.result.nextDoor++
			}
		}
	}
	return ended
}

// receipts waits until both sides have written down what was given, and shows it.
func (s *story) receipts(ctx context.Context) error {
	var lab, campus view.LinkRow
	err := localmesh.Await(ctx, limit, "all tasks next door to be receipted",
		func(ctx context.Context) (bool, error) {
			var err error
			if lab, err = row(ctx, s.lab); err == nil {
				campus, err = row(ctx, s.campus)
			}
			if err != nil {
				return false, err
			}
			s.result.receipts = receipts{
				labGave: lab.Given, labTook: lab.Taken, campusGave: campus.Given,
				campusTook: campus.Taken,
			}
			settled := lab.Taken >= float64(s.result.nextDoor)*nap.Seconds()
			return settled && s.result.receipts.agree(), nil
		})
	if err != nil {
		return fmt.Errorf("%w; by the receipts: %s", err, s.result.receipts)
	}
	s.out.Say("by the receipts: %s", s.result.receipts)
	return nil
}

// row shows a domain's only link, as its gateway sees it.
func row(ctx context.Context, m *localmesh.Mesh) (view.LinkRow, error) {
	links, err := m.Submitter().API.Links(ctx)
	if err != nil || len(links.Links) != 1 {
		return view.LinkRow{}, fmt.Errorf("ask for the link: %d of them, %w", len(links.Links), err)
	}
	return links.Links[0], nil
}
