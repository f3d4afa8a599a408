package api

import (
	"context"
	"io"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Backend is everything the API asks of an agent. It is declared here, where it
// is used: internal/agent/backend has these methods and does not import this
// package. Errors wrap view.ErrNotFound, view.ErrDenied, view.ErrConflict,
// view.ErrTooLarge, view.ErrBusy or grid.ErrInvalid where one of them fits;
// anything else is answered with status 500. Methods are safe for concurrent use
// and return when their context ends.
type Backend interface {
	work
	mesh
}

// work serves submitters.
type work interface {
	Jobs
	reservations
	submissions
	plans
	data
	logs
}

// mesh shows the mesh, and serves the owner of the site.
type mesh interface {
	Events
	around
	membership
	links
	owner
	planner
}

// around shows other sites and domains to submitters.
type around interface {
	sites
	neighbours
}

// membership is about the sites of this domain.
type membership interface {
	roster
	joining
	fleet
}

// Jobs shows this agent's own submissions.
type Jobs interface {
	// Jobs lists them, newest first, a page at a time.
	Jobs(ctx context.Context, q view.JobQuery) ([]view.JobView, error)
	// Job is one of them in full.
	Job(ctx context.Context, id grid.JobID) (view.JobDetail, error)
	// Tasks gives up to limit (at least 1) tasks from index from on, by index.
	Tasks(ctx context.Context, id grid.JobID, from uint32, limit int) ([]view.TaskView, error)
}

// reservations shows the submissions that only hold capacity, with what is bound to
// them.
type reservations interface {
	// Reservations lists them, newest first.
	Reservations(ctx context.Context) ([]view.Reservation, error)
}

// submissions takes jobs and withdraws them.
type submissions interface {
	// Submit makes the job durable, starts placing it and returns without waiting.
	// The job is valid; its data was stored before. A key that is not empty names the
	// request: one that is repeated gives the job that it made before, and view.ErrConflict
	// if the key named another request.
	Submit(ctx context.Context, job grid.Job, key string) (grid.JobID, error)
	// Cancel withdraws a job. Cancelling one that has ended changes nothing.
	Cancel(ctx context.Context, id grid.JobID) error
	// Hold keeps a job that has not begun from being placed, or lets it go on: view.ErrConflict if
	// it has begun or has ended. To do so again changes nothing.
	Hold(ctx context.Context, id grid.JobID, release bool) error
	// Migrate begins to move running tasks to other sites; what becomes of it is shown with each.
	Migrate(ctx context.Context, id grid.JobID, r view.MoveRequest) error
	// Forget drops what is known of a job that has ended, and its outputs.
	Forget(ctx context.Context, id grid.JobID) error
	// ForgetEnded drops all that ended before a time, and returns how many those were.
	ForgetEnded(ctx context.Context, before time.Time) (int, error)
}

// plans shows how sites answer.
type plans interface {
	// Plan announces the job with the explain flag, collects the answers for at
	// most its TTL and withdraws it: nothing is dispatched.
	Plan(ctx context.Context, job grid.Job) (view.OfferTable, error)
	// Offers returns how the sites answered the last announcement of a job.
	Offers(ctx context.Context, id grid.JobID) (view.OfferTable, error)
	// Rounds returns how they answered its last announcements, as far as that is remembered, oldest
	// first and by rising Round. The last one is that of Offers.
	Rounds(ctx context.Context, id grid.JobID) ([]view.OfferTable, error)
}

// data stores what clients upload and hands out what it holds.
type data interface {
	// PutData stores a file's bytes, or, with tar, the directory tree a tar
	// stream describes. It reads body to its end and pins the result for its
	// submitter.
	PutData(ctx context.Context, tar bool, body io.Reader) (view.DataRef, error)
	// PutExecutable stores a file's bytes as PutData does, with its x bit.
	PutExecutable(ctx context.Context, body io.Reader) (view.DataRef, error)
	encrypted
	// GetData opens stored data: a file's bytes, or a tar stream of a directory.
	GetData(ctx context.Context, cid grid.CID) (view.DataRef, io.ReadCloser, error)
	// StatData says what is behind a CID without reading it.
	StatData(ctx context.Context, cid grid.CID) (view.DataRef, error)
}

// encrypted stores content of encrypted jobs, and opens what they have left.
type encrypted interface {
	// PutEncrypted stores a file's bytes, or what a tar stream describes, for the job whose key has
	// a name.
	PutEncrypted(
		ctx context.Context, name string, u view.Upload, body io.Reader,
	) (view.DataRef, error)
	// GetOutput opens what a task has left: a file's bytes, or a tar stream of a directory.
	GetOutput(
		ctx context.Context, task grid.TaskID, cid grid.CID,
	) (view.DataRef, io.ReadCloser, error)
}

// Events tells what happens. view.EventLog has this method.
type Events interface {
	// EventsAfter gives up to limit events whose ID is above after, oldest
	// first, and waits for the first one.
	EventsAfter(ctx context.Context, after uint64, limit int) ([]view.Event, error)
}

// logs reads what tasks print.
type logs interface {
	// TaskLog reads one stream of a task from an offset; with q.Follow reading
	// blocks until there is more or the task has ended.
	TaskLog(ctx context.Context, task grid.TaskID, q view.LogQuery) (io.ReadCloser, error)
}

// sites shows the mesh as this agent sees it.
type sites interface {
	// Sites lists the known sites by name, then ID, this one first.
	Sites(ctx context.Context) ([]view.SiteRow, error)
	// Status is this agent's own state.
	Status(ctx context.Context) (view.AgentStatus, error)
	// Given lists what this site gave, by day, ascending.
	Given(ctx context.Context) ([]view.GivenDay, error)
}

// roster shows and decides who takes part. A peer is a site's ID, or the name of
// one that is known; the error is view.ErrNotFound or view.ErrConflict when that
// fits no site or several.
type roster interface {
	// Members lists who takes part and who is kept out, this site first, then by name and ID.
	Members(ctx context.Context) (view.Members, error)
	// Admit makes a site a member, and takes back a ban.
	Admit(ctx context.Context, peer, note string) (view.MemberRow, error)
	// Ban keeps a site out from now on; its jobs here are stopped. The invitations by which it
	// came are revoked if they are still open, unless keep says to leave them.
	Ban(ctx context.Context, peer, note string, keep bool) (view.MemberRow, error)
}

// invites are invitations to this domain.
type invites interface {
	// Invite makes an invitation.
	Invite(ctx context.Context, terms view.InviteTerms) (view.Invitation, error)
	// Invites lists those that were made here, the oldest first, closed ones included.
	Invites(ctx context.Context) ([]view.InviteRow, error)
	// Revoke makes an open invitation useless. It is named by its ID, the beginning of that, or
	// its name; the error is view.ErrNotFound or view.ErrConflict when that fits none or several.
	Revoke(ctx context.Context, which string) (view.InviteRow, error)
	// RevokeAll makes all open ones useless, and returns them.
	RevokeAll(ctx context.Context) ([]view.InviteRow, error)
}

// joining lets other sites in, and finds out how well this one is in.
type joining interface {
	// Listen listens for other sites on further addresses, until the agent ends.
	Listen(ctx context.Context, addrs []string) error
	invites
	keys
	// Check lets another site announce a probe and say whether this site's offer
	// arrives. That none does is a result, not an error.
	Check(ctx context.Context) (view.CheckResult, error)
}

// links are between this domain and others. A domain is named as it is called here; the error is
// view.ErrNotFound when none is called so, view.ErrDenied where this site does not hold the
// domain's key, and view.ErrConflict, with what to do, when the other side refuses.
type links interface {
	// Links lists the linked domains, and the open invitations.
	Links(ctx context.Context) (view.Links, error)
	// InviteDomain makes an invitation that is good once and for so long; with a name only for a
	// domain of that name.
	InviteDomain(
		ctx context.Context, name grid.DomainID, span time.Duration,
	) (view.LinkInvitation, error)
	// WithdrawInvite makes an open invitation useless.
	WithdrawInvite(ctx context.Context, id string) error
	// JoinDomain links this domain with the one whose token it is.
	JoinDomain(ctx context.Context, token string) (view.LinkRow, error)
	// SetLinkPolicy changes what was decided about a linked domain, from now on.
	SetLinkPolicy(
		ctx context.Context, name grid.DomainID, change view.PolicyChange,
	) (view.LinkRow, error)
	// Unlink ends a link; the other domain is told why when it is reached.
	Unlink(ctx context.Context, name grid.DomainID) error
}

// keys change the key of the domain; the errors are those of links.
type keys interface {
	// RotateKey gives the domain a new key. Where from is the key that was replaced last, nothing
	// more is done; an empty from is the present key.
	RotateKey(ctx context.Context, from grid.DomainKey) (view.Rotation, error)
}

// neighbours shows linked domains to those who do not hold the links.
type neighbours interface {
	// Neighbours lists the linked domains that this agent's jobs may run in, by name.
	Neighbours(ctx context.Context) ([]view.NeighbourRow, error)
}

// owner holds the orders that the owner of the site may give.
type owner interface {
	// Pause refuses new work for that long; 0 = until Resume. Running jobs go on.
	Pause(ctx context.Context, span time.Duration) error
	// Leave is Pause after which jobs that can go on elsewhere move there when their state is
	// saved. The others are stopped after stopAfter; 0 = they go on.
	Leave(ctx context.Context, span, stopAfter time.Duration) error
	// Resume ends a pause.
	Resume(ctx context.Context) error
	// Stop makes the agent end: after its running tasks, or now, moving them.
	Stop(ctx context.Context, now bool) error
	// Recover goes on with the own jobs without their standbys, all of which are lost for good.
	Recover(ctx context.Context, without []grid.SiteID) error
	Settings
}

// Settings are what the owner chose.
type Settings interface {
	// Configuration says where each setting comes from.
	Configuration(ctx context.Context) (view.Configuration, error)
	// Reload reads the configuration again. A mistake in it is a result, not an error:
	// the old settings stay.
	Reload(ctx context.Context) (view.Configuration, error)
	// ChangeSettings writes values by the names of settings into the configuration, and puts them
	// in force. If one of them cannot be, nothing is written, and the error is a *view.Problem
	// with status 422 that names it.
	ChangeSettings(ctx context.Context, values map[string]string) (view.Configuration, error)
}

// fleet shows and steers the sites whose owners allow it.
type fleet interface {
	// Fleet gives a page of the members of the domain, in the order of Members, with what each
	// says of itself. Only the sites of the page are asked. The error of a page that follows no
	// member is that of view.Page.
	Fleet(ctx context.Context, q view.PageQuery) ([]view.FleetRow, error)
	// StatusAt is the state of a site, which its ID or its name names, as in PauseAt and ResumeAt.
	StatusAt(ctx context.Context, site string) (view.AgentStatus, error)
	// PauseAt pauses it, and returns its state then.
	PauseAt(ctx context.Context, site string, p view.PauseOrder) (view.AgentStatus, error)
	// ResumeAt ends a pause that was ordered from afar, and returns its state then.
	ResumeAt(ctx context.Context, site string) (view.AgentStatus, error)
}

// planner is the order in which those that wait in the site's plan move up.
type planner interface {
	// Planning says what it is.
	Planning(ctx context.Context) (view.Planning, error)
	// SetPlanning changes it until the agent ends. The words are known ones.
	SetPlanning(ctx context.Context, p view.Planning) (view.Planning, error)
}
