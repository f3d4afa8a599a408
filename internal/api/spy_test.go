package api_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var _ api.Backend = (*spy)(nil)

// spy notes what it is asked, and answers with nothing or with an error.
type spy struct {
	err    error // set before use
	events []view.Event

	mu    sync.Mutex
	asked []string // guarded by mu
}

// note takes one question down; its words follow each other as they were given.
func (s *spy) note(words ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
	return s.err
}

// take gives what was asked since the last time.
func (s *spy) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := strings.Join(s.asked, "; ")
	s.asked = nil
	return asked
}

func (s *spy) Jobs(_ context.Context, q view.JobQuery) ([]view.JobView, error) {
	err := s.note("jobs", q.Since.Year(), "before:"+q.Before, "prefix:"+q.Prefix, q.Limit)
	return nil, err
}

func (s *spy) Job(_ context.Context, id grid.JobID) (view.JobDetail, error) {
	return view.JobDetail{}, s.note("job", id)
}

func (s *spy) Tasks(
	_ context.Context, id grid.JobID, from uint32, limit int,
) ([]view.TaskView, error) {
	return nil, s.note("tasks", id, from, limit)
}

func (s *spy) Reservations(context.Context) ([]view.Reservation, error) {
	return make([]view.Reservation, 1), s.note("reservations")
}

func (s *spy) Submit(_ context.Context, job grid.Job, key string) (grid.JobID, error) {
	return "aaaabbbbccccdddd", s.note("submit", job.Spec.Name, "key:"+key)
}

func (s *spy) Cancel(_ context.Context, id grid.JobID) error { return s.note("cancel", id) }

func (s *spy) Hold(_ context.Context, id grid.JobID, release bool) error {
	return s.note("hold", id, release)
}

func (s *spy) Migrate(_ context.Context, id grid.JobID, r view.MoveRequest) error {
	return s.note("migrate", id, r.Tasks, r.Restart)
}

func (s *spy) Forget(_ context.Context, id grid.JobID) error { return s.note("forget", id) }

func (s *spy) ForgetEnded(_ context.Context, before time.Time) (int, error) {
	return 3, s.note("forget before", before.Format(time.RFC3339))
}

func (s *spy) Plan(_ context.Context, job grid.Job) (view.OfferTable, error) {
	return view.OfferTable{}, s.note("plan", job.Spec.Name)
}

func (s *spy) Offers(_ context.Context, id grid.JobID) (view.OfferTable, error) {
	return view.OfferTable{}, s.note("offers", id)
}

func (s *spy) Rounds(_ context.Context, id grid.JobID) ([]view.OfferTable, error) {
	return make([]view.OfferTable, 1), s.note("rounds", id)
}

func (s *spy) PutData(_ context.Context, tar bool, body io.Reader) (view.DataRef, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return view.DataRef{}, err
	}
	return view.DataRef{CID: "bput", Bytes: int64(len(data))}, s.note("put", "tar:", tar, string(data))
}

func (s *spy) PutExecutable(_ context.Context, body io.Reader) (view.DataRef, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return view.DataRef{}, err
	}
	return view.DataRef{CID: "bput", Executable: true}, s.note("put program", string(data))
}

func (s *spy) PutEncrypted(
	_ context.Context, name string, u view.Upload, body io.Reader,
) (view.DataRef, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return view.DataRef{}, err
	}
	return view.DataRef{CID: "bput", Bytes: int64(len(data)), Dir: u.Tar},
		s.note("put encrypted", name, "tar:", u.Tar, "x:", u.Executable, string(data))
}

func (s *spy) GetOutput(
	_ context.Context, task grid.TaskID, cid grid.CID,
) (view.DataRef, io.ReadCloser, error) {
	ref := view.DataRef{CID: cid, Bytes: 4}
	return ref, io.NopCloser(strings.NewReader("text")), s.note("output", task, cid)
}

// GetData has a directory whose CID is bdir, and files.
func (s *spy) GetData(_ context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error) {
	ref := view.DataRef{CID: cid, Bytes: 4, Dir: cid == "bdir", Executable: cid == "bprogram"}
	return ref, io.NopCloser(strings.NewReader("data")), s.note("get", cid)
}

func (s *spy) StatData(_ context.Context, cid grid.CID) (view.DataRef, error) {
	ref := view.DataRef{CID: cid, Bytes: 4, Dir: cid == "bdir", Executable: cid == "bprogram"}
	return ref, s.note("stat", cid)
}

// EventsAfter gives what it has immediately, and waits when it has nothing more.
func (s *spy) EventsAfter(ctx context.Context, after uint64, limit int) ([]view.Event, error) {
	if err := s.note("events", after, limit); err != nil {
		return nil, err
	}
	for i, e := range s.events {
		if e.ID > after {
			return s.events[i:min(len(s.events), i+limit)], nil
		}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *spy) TaskLog(_ context.Context, id grid.TaskID, q view.LogQuery) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("log")), s.note("log", id, q.Stream, q.Offset, q.Follow)
}

func (s *spy) Sites(context.Context) ([]view.SiteRow, error) { return nil, s.note("sites") }

func (s *spy) Status(context.Context) (view.AgentStatus, error) {
	return view.AgentStatus{Reach: view.Reach{Relays: []grid.SiteID{}}}, s.note("status")
}

func (s *spy) Given(context.Context) ([]view.GivenDay, error) {
	return []view.GivenDay{{Date: "2026-03-02"}}, s.note("given")
}

func (s *spy) Members(context.Context) (view.Members, error) {
	return view.Members{}, s.note("members")
}

func (s *spy) Admit(_ context.Context, peer, note string) (view.MemberRow, error) {
	return view.MemberRow{Site: grid.SiteID(peer)}, s.note("admit", peer, "note:"+note)
}

func (s *spy) Ban(_ context.Context, peer, note string, keep bool) (view.MemberRow, error) {
	row := view.MemberRow{Site: grid.SiteID(peer), Revoked: []view.InviteRow{{}}}
	return row, s.note("ban", peer, "note:"+note, keep)
}

func (s *spy) Listen(_ context.Context, addrs []string) error { return s.note("listen", addrs) }

func (s *spy) Invite(_ context.Context, terms view.InviteTerms) (view.Invitation, error) {
	return view.Invitation{},
		s.note("invite", "name:"+terms.Name, terms.Span, terms.Uses, terms.Ask)
}

func (s *spy) Invites(context.Context) ([]view.InviteRow, error) {
	return []view.InviteRow{{}}, s.note("invites")
}

func (s *spy) Revoke(_ context.Context, which string) (view.InviteRow, error) {
	return view.InviteRow{}, s.note("revoke", which)
}

func (s *spy) RevokeAll(context.Context) ([]view.InviteRow, error) {
	return []view.InviteRow{{}}, s.note("revoke all")
}

func (s *spy) Neighbours(context.Context) ([]view.NeighbourRow, error) {
	return []view.NeighbourRow{{}}, s.note("neighbours")
}

func (s *spy) Links(context.Context) (view.Links, error) {
	return view.Links{Links: []view.LinkRow{{}}}, s.note("links")
}

func (s *spy) InviteDomain(
	_ context.Context, name grid.DomainID, span time.Duration,
) (view.LinkInvitation, error) {
	return view.LinkInvitation{}, s.note("invite domain", "name:"+name, span)
}

func (s *spy) WithdrawInvite(_ context.Context, id string) error { return s.note("withdraw", id) }

func (s *spy) JoinDomain(_ context.Context, token string) (view.LinkRow, error) {
	return view.LinkRow{}, s.note("join domain", token)
}

func (s *spy) SetLinkPolicy(
	_ context.Context, name grid.DomainID, c view.PolicyChange,
) (view.LinkRow, error) {
	said := []any{"policy", name, c.Kinds}
	for _, n := range []*int{c.Give, c.Take, c.Tasks} {
		if n != nil {
			said = append(said, *n)
		}
	}
	if c.Closed != nil {
		said = append(said, *c.Closed)
	}
	return view.LinkRow{}, s.note(said...)
}

func (s *spy) Unlink(_ context.Context, name grid.DomainID) error { return s.note("unlink", name) }

func (s *spy) RotateKey(_ context.Context, from grid.DomainKey) (view.Rotation, error) {
	return view.Rotation{Revoked: []view.InviteRow{{}}}, s.note("rotate", "from:"+from)
}

func (s *spy) Check(context.Context) (view.CheckResult, error) {
	return view.CheckResult{}, s.note("check")
}

func (s *spy) Pause(_ context.Context, span time.Duration) error { return s.note("pause", span) }

func (s *spy) Leave(_ context.Context, span, stop time.Duration) error {
	return s.note("leave", span, stop)
}

func (s *spy) Resume(context.Context) error { return s.note("resume") }

// bareStatus has no more than what an answer cannot do without.
func bareStatus() *view.AgentStatus {
	return &view.AgentStatus{Reach: view.Reach{Relays: []grid.SiteID{}}}
}

func (s *spy) Fleet(_ context.Context, q view.PageQuery) ([]view.FleetRow, error) {
	return []view.FleetRow{{Site: "a", Status: bareStatus()}},
		s.note("fleet", "after:"+q.After, q.Limit)
}

func (s *spy) StatusAt(_ context.Context, site string) (view.AgentStatus, error) {
	return *bareStatus(), s.note("status at", site)
}

func (s *spy) PauseAt(
	_ context.Context, site string, p view.PauseOrder,
) (view.AgentStatus, error) {
	return *bareStatus(), s.note("pause at", site, p.Span, p.Leave, p.StopAfter)
}

func (s *spy) ResumeAt(_ context.Context, site string) (view.AgentStatus, error) {
	return *bareStatus(), s.note("resume at", site)
}

func (s *spy) Recover(_ context.Context, without []grid.SiteID) error {
	return s.note("recover", "without:", without)
}

func (s *spy) Stop(_ context.Context, now bool) error { return s.note("stop", "now:", now) }

func (s *spy) Configuration(context.Context) (view.Configuration, error) {
	return view.Configuration{}, s.note("configuration")
}

func (s *spy) Reload(context.Context) (view.Configuration, error) {
	return view.Configuration{}, s.note("reload")
}

func (s *spy) ChangeSettings(
	_ context.Context, values map[string]string,
) (view.Configuration, error) {
	return view.Configuration{}, s.note("set", values)
}

func (s *spy) Planning(context.Context) (view.Planning, error) {
	return view.Planning{}, s.note("planning")
}

func (s *spy) SetPlanning(_ context.Context, p view.Planning) (view.Planning, error) {
	return p, s.note("set planning", p.Policy, p.Backfill)
}
