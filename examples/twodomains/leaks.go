package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// secret is something of the inside of a domain that the other one must not know.
type secret struct {
	what string // for people
	form []byte // as it would stand in a file or an answer
}

// leak is a secret that was found where it must not be.
type leak struct{ what, where string }

func (l leak) String() string { return l.what + " in " + l.where }

// inside lists the secrets of a domain: the names of its sites, and the IDs and the addresses of
// those which the other domain never has to dial: its gateway can be any of its group.
func inside(ctx context.Context, m *localmesh.Mesh) ([]secret, error) {
	var all []secret
	for i, a := range m.Agents {
		all = append(all, secret{"the name of " + a.Name, []byte(a.Name)})
		if i < outward {
			continue
		}
		all = append(all, formsOfID(a.Name, a.ID)...)
		if !a.Running() {
			continue // nobody has its address any more
		}
		status, err := a.API.Status(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask %s for its addresses: %w", a.Name, err)
		}
		for _, addr := range status.Addresses {
			all = append(all, formsOf(a.Name, addr)...)
		}
	}
	return all, nil
}

// formsOfID are the forms of a site's ID: as text, and the public key that it is, as it stands in
// messages.
func formsOfID(name string, id grid.SiteID) []secret {
	const (
		digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz" // base58
		key    = 32                                                           // bytes, at the end
	)
	what, number := "the ID of "+name, new(big.Int)
	for _, r := range string(id) {
		number.Mul(number, big.NewInt(int64(len(digits))))
		number.Add(number, big.NewInt(int64(strings.IndexRune(digits, r))))
	}
	coded := number.Bytes()
	return []secret{{what, []byte(id)}, {what, coded[max(len(coded)-key, 0):]}}
}

// formsOf are the forms of an address such as /ip4/127.0.0.1/tcp/4801/p2p/ID: as text, and in
// messages.
func formsOf(name, addr string) []secret {
	what := "an address of " + name
	addr, _, _ = strings.Cut(addr, "/p2p/")
	forms := []secret{{what, []byte(addr)}}
	parts := strings.Split(addr, "/")
	const ip, port, want = 2, 4, 5 // of "", "ip4", IP, "tcp", PORT
	if len(parts) != want || parts[1] != "ip4" || parts[3] != "tcp" {
		return forms
	}
	host, err := netip.ParseAddr(parts[ip])
	number, wrong := strconv.ParseUint(parts[port], 10, 16)
	if err != nil || wrong != nil || !host.Is4() {
		return forms
	}
	const ip4, tcp = 4, 6 // the codes of multiaddr
	coded := append(append([]byte{ip4}, host.AsSlice()...), tcp)
	coded = binary.BigEndian.AppendUint16(coded, uint16(number))
	text := []byte(host.String() + ":" + parts[port])
	return append(forms, secret{what, coded}, secret{what, text})
}

// find lists what of some secrets stands in a text.
func find(secrets []secret, text []byte, where string) []leak {
	var found []leak
	for _, s := range secrets {
		if bytes.Contains(text, s.form) {
			found = append(found, leak{s.what, where})
		}
	}
	return found
}

// findKept looks for secrets in all that an agent has kept: its state directory, with journals,
// facts and data, in the names of the files there too, and its log.
func findKept(secrets []secret, paths ...string) ([]leak, error) {
	var found []leak
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			found = append(found, find(secrets, []byte(entry.Name()), "the name of "+path)...)
			if !entry.Type().IsRegular() {
				return nil
			}
			text, err := os.ReadFile(path) //nolint:gosec // the example made that directory
			if err != nil {
				return err
			}
			found = append(found, find(secrets, text, path)...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look for what leaked: %w", err)
		}
	}
	return found, nil
}

// answers hold all that the API of an agent says to its users.
type answers struct {
	all   []any
	wrong []error
}

// take adds the answer to a question.
func take[T any](a *answers) func(T, error) T {
	return func(answer T, err error) T {
		a.all, a.wrong = append(a.all, answer), append(a.wrong, err)
		return answer
	}
}

// ask asks an agent for all that it shows.
func ask(ctx context.Context, at *localmesh.Agent) ([]byte, error) {
	var a answers
	for _, job := range take[[]view.JobView](&a)(at.API.Jobs(ctx, view.JobQuery{
		Limit: view.NeighbourJobs,
	})) {
		take[view.JobDetail](&a)(at.API.Job(ctx, job.ID))
		take[[]view.TaskView](&a)(at.API.AllTasks(ctx, job.ID))
		take[view.OfferTable](&a)(at.API.Offers(ctx, job.ID))
	}
	take[view.AgentStatus](&a)(at.API.Status(ctx))
	take[[]view.SiteRow](&a)(at.API.Sites(ctx))
	take[view.Members](&a)(at.API.Members(ctx))
	take[view.Links](&a)(at.API.Links(ctx))
	take[[]view.NeighbourRow](&a)(at.API.Neighbours(ctx))
	take[[]view.Reservation](&a)(at.API.Reservations(ctx))
	take[[]view.Event](&a)(eventsOf(ctx, at))
	if err := errors.Join(a.wrong...); err != nil {
		return nil, fmt.Errorf("ask %s for all that it shows: %w", at.Name, err)
	}
	return json.Marshal(a.all)
}

// quiet is the time without an event after which all that there were are taken for read.
const quiet = time.Second

// eventsOf are the events that an agent keeps, until none has come for a while.
func eventsOf(ctx context.Context, a *localmesh.Agent) (events []view.Event, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(quiet, cancel)
	defer idle.Stop()
	err = a.API.Events(ctx, 0, limit, func(e view.Event) error {
		idle.Reset(quiet)
		events = append(events, e)
		return nil
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return events, err
}

// look is one domain's secrets, and what the agents of the other one have said to their users. The
// secrets of those themselves are what shows that the search works.
type look struct {
	secrets []secret
	own     []secret
	by      *localmesh.Mesh
	said    map[*localmesh.Agent][]byte
}

// shown asks all agents for all that they show, while they run.
func (s *story) shown(ctx context.Context) ([]look, error) {
	s.out.Progress("asking all agents for all that they show")
	var looks []look
	for _, pair := range [][2]*localmesh.Mesh{{s.campus, s.lab}, {s.lab, s.campus}} {
		secrets, err := inside(ctx, pair[0])
		if err != nil {
			return nil, err
		}
		own, err := inside(ctx, pair[1])
		if err != nil {
			return nil, err
		}
		l := look{secrets: secrets, own: own, by: pair[1], said: make(map[*localmesh.Agent][]byte)}
		for _, a := range l.by.Agents {
			if !a.Running() {
				continue // it was killed
			}
			if l.said[a], err = ask(ctx, a); err != nil {
				return nil, err
			}
		}
		looks = append(looks, l)
	}
	return looks, nil
}

// leaks are the secrets of the other domain that were found.
func (l look) leaks() ([]leak, error) { return l.find(l.secrets) }

// unseen are the secrets of the agents' own domain that were found nowhere, though its agents talk
// of them all the time: where there are some, having found no leak says nothing.
func (l look) unseen() ([]string, error) {
	found, err := l.find(l.own)
	var missing []string
	for _, s := range l.own {
		if !slices.ContainsFunc(found, func(f leak) bool { return f.what == s.what }) {
			missing = append(missing, s.what)
		}
	}
	return slices.Compact(missing), err
}

// find looks for secrets in what was said and in what was kept.
func (l look) find(secrets []secret) ([]leak, error) {
	var found []leak
	for _, a := range l.by.Agents {
		found = append(found, find(secrets, l.said[a], "what "+a.Name+" answers")...)
		kept, err := findKept(secrets, a.Config.StateDir, a.Config.StateDir+".log")
		if err != nil {
			return nil, err
		}
		found = append(found, kept...)
	}
	return found, nil
}
