package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/internal/given"
	"github.com/mrsmesh/mrsmesh/internal/history"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Config configures an agent for its whole life. All fields but those with a
// stated zero value are required.
type Config struct {
	StateDir    string                        // everything that outlives a run; one agent at a time
	Machine     string                        // that the state is bound to; empty = none
	Hardware    []string                      // names of its parts; empty = none are known
	Version     string                        // of the build, for people
	Name        string                        // of the site, for people
	P2P         p2p.Config                    // Incarnation, Capability and Members are filled in
	DomainKey   grid.DomainKey                // of the roster; empty = that of domain.key, if any
	Data        data.Config                   // Dir, Allow, Trades and OnChange are filled in
	Lease       time.Duration                 // granted at a time; 0 = the machine's default
	LeaseMargin time.Duration                 // waited beyond a lease; 0 = the machine's default
	Reserved    time.Duration                 // lease of reservations; 0 = the machine's default
	Past        Past                          // how long ended jobs are kept
	Summary     func(broker.JobState) []byte  // what lists show of an ended job; nil = nothing
	FIBR        bool                          // failed tasks go by the fault index alone
	OwnFaults   bool                          // other submitters hear of no faults, nor are heeded
	FaultHalf   time.Duration                 // in which a fault fades to half; 0 = the default
	SoftMin     bool                          // choose offers by chance among the nearest
	Replies     int                           // answers asked for; 0 = all
	HoldAll     bool                          // offers of this site hold their capacity
	WasmOnly    bool                          // run nothing but WASM, whatever the adapters could
	InMemory    bool                          // what commands write counts as memory
	Capability  grid.Capability               // the owner's ceilings
	Adapters    map[grid.WorkKind]lrm.Adapter // by kind of work; empty: the site only submits
	Herald      []string                      // the command whose body is p2p.TellDeaths; empty = none
	Intake      []string                      // the command whose body is intake.Main; empty = none
	Notices     []view.Notice                 // what the owner should know, found before the start
	OutputBytes int64                         // of stdout and of stderr that are kept, each
	Priced      bool                          // the owner names a price
	Price       float64                       // of an hour of a core, in the owners' own unit
	MaxRuntime  time.Duration                 // no attempt runs longer; 0 = no limit of the owner's
	Signers     []grid.Signer                 // whose work is run; none: it need not be signed
	Owner       Owner                         // when the site yields to its owner; zero: never
	Host        Host                          // what is known of the machine; zero: nothing
	Walls       []Wall                        // how ceilings are enforced here, for people
	Seed        uint64                        // of randomness and job names; secret, always new
	Planning    Planning                      // what the owner decides about the site's plan
	Closed      []avail.Window                // when the owner has announced to want the machine back
	Policy      grid.AvailPolicy              // what availability does to the placing of own jobs
	Ballast     int64                         // bytes kept for records on a full disk; 0 = none
	Standbys    Standbys                      // who keeps the facts of own jobs, too; zero: nobody
	Controller  Controlling                   // the domain's controller; zero: no part in it
	Tidy        func() error                  // shortens the run record; nil = nobody does
	Metrics     *obs.Registry                 // nil = counted, but shown nowhere
	Log         *slog.Logger                  // nil = silent

	BootNow func() lrm.BootTime // for tests: the clock of leases; nil = lrm.BootNow
	WallNow func() time.Time    // for tests: the wall clock; nil = time.Now
	Taps    Taps                // for measurements
	Gossip  bool                // for measurements: broadcast by gossip even if all members are known
}

// Taps look at the messages on the way between the machines and the mesh. They
// are called from the goroutines that carry the messages and must be quick. A
// nil tap costs nothing.
type Taps struct {
	// Sending is asked before a message leaves, to one site, which may be this one,
	// or, with to empty, to all; false keeps it back, as a network that loses it
	// would. What is said to all this site hears nevertheless.
	Sending func(to grid.SiteID, m protocol.Message) bool
	// Received is told what comes from the mesh, before the machine is.
	Received func(from grid.SiteID, m protocol.Message)
	// LogBytes bounds the log of a group beside its table, instead of logSlack.
	LogBytes int64
}

func (t Taps) pass(to grid.SiteID, m protocol.Message) bool {
	return t.Sending == nil || t.Sending(to, m)
}

// Agent is one running site. Make it with New, let it live with Run.
type Agent struct {
	cfg        Config
	inForce    inForce // what the owner may change of cfg, as it is now
	steering   atomic.Pointer[steering]
	log        *slog.Logger
	clock      clock
	started    time.Time
	recordPath string

	ctx   context.Context //nolint:containedctx // the agent's life, which its own goroutines share
	leave context.CancelCauseFunc
	group sync.WaitGroup
	runs  sync.Mutex // held while Run lasts

	store    *store.Store
	past     *history.Recorder
	account  *given.Account // of what this site gave
	bootID   string
	outlook  outlook
	members  *member.Registry
	links    *member.Links
	border   *gateway
	deputies deputies
	mesh     *p2p.Mesh
	data     *data.Store
	intake   *intake.Intake // nil: large content is taken in as small content is
	pins     *pins
	archive  *archivist
	rounds   rounds
	work     *workshop
	owner    *owner.Watcher
	host     *hostState
	disk     *disk
	tried    sync.Mutex  // guards shown
	shown    []view.Wall // how the ceilings are enforced
	adapters map[grid.WorkKind]lrm.Adapter

	siteMachine   *site.Machine   // only within site's loop
	brokerMachine *broker.Machine // only within broker's loop; see seenBroker
	site          *loop
	broker        *loop // of the group of the own jobs
	groups        groups
	domain        domainName
	around        around
	neighbours    neighbours
	readers       *readers // who may have what is kept here
	heeding       *heeding // between the mesh and the site's machine

	events   *view.EventLog
	reports  *reporter
	commands commands
	checks   *checks
	bans     bans
	ready    chan struct{} // closed when the loops can be told something
	stopping bool          // only within site's loop: endWhenIdle runs
}

// RecordFile is the name of the run record in the state directory.
const RecordFile = "runs.jsonl"

// errStopped ends an agent whose owner asked it to.
var errStopped = errors.New("stopped by its owner")

const keptEvents = 8192

// New opens everything the agent needs and recovers what an earlier run left,
// but lets nothing happen yet. The agent must be ended with Close.
func New(ctx context.Context, cfg Config) (a *Agent, err error) {
	a = &Agent{
		cfg: cfg, log: obs.Or(cfg.Log), clock: newClock(cfg.BootNow, cfg.WallNow),
		started: time.Now(), readers: newReaders(), adapters: cfg.Adapters,
		recordPath: filepath.Join(cfg.StateDir, RecordFile),
		events:     view.NewEventLog(keptEvents, uint64(time.Now().UnixMicro())),
		ready:      make(chan struct{}), checks: newChecks(), host: newHost(cfg.Host, cfg.Capability),
		intake: newIntake(cfg.Intake),
	}
	a.inForce.terms = cfg.terms()
	a.ctx, a.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	a.shown = viewsOf(cfg.Walls)
	a.reports = newReporter(cfg.Metrics, a.log, a.events)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err = os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return a, fmt.Errorf("make the state directory: %w", err)
	}
	a.disk = a.newDisk()
	a.disk.look() // the ballast of an earlier life may be what the facts need now
	signs := []string{RecordFile, filepath.Join("data", "roots.log")}
	options := store.Options{
		Signs: signs, Machine: cfg.Machine, Hardware: cfg.Hardware, Wall: a.clock.wall,
	}
	if a.store, err = store.OpenWith(cfg.StateDir, options, a.log); err != nil {
		return a, err
	}
	if err = a.openHistory(); err != nil {
		return a, err
	}
	a.openPast()
	for _, adapter := range cfg.Adapters {
		if err = adapter.Recover(ctx); err != nil {
			return a, fmt.Errorf("recover what an earlier run left: %w", err)
		}
	}
	a.tidy()
	if err = a.openMembers(); err != nil {
		return a, err
	}
	if err = a.openLinks(); err != nil {
		return a, err
	}
	if err = a.join(); err != nil { //nolint:contextcheck // what is opened lives as long as the agent
		return a, err
	}
	if a.work, err = newWorkshop(a, cfg.StateDir); err != nil {
		return a, err
	}
	if err = a.makeMachines(); err != nil {
		return a, err
	}
	if err = a.openGroups(); err != nil {
		return a, err
	}
	a.bootSite()
	a.learn()
	a.watchOwner()
	close(a.ready) // from here on others may tell the machines something
	a.watchHost()
	a.watchDisk()
	for _, lasting := range []func(){
		a.tryWalls, a.remember, a.keepAccount, a.followClock, a.lookAfterGroups, a.archive.run,
	} {
		a.spawn(lasting)
	}
	a.tellBans()
	a.border.decided(a.links.List)
	return a, nil
}

// viewsOf lists the walls as people see them before they were tried.
func viewsOf(walls []Wall) []view.Wall {
	views := make([]view.Wall, 0, len(walls))
	for _, w := range walls {
		views = append(views, w.View)
	}
	return views
}

// bootSite tells the site's machine first of all what it begins with.
func (a *Agent) bootSite() {
	a.site.tell(step.Boot{
		Incarnation: a.store.Incarnation(), Nonce: a.store.Nonce(), Restored: a.store.Restored(),
		Clock: a.clock.continuous(a.bootID), Line: a.store.Line(),
	})
	a.site.tell(step.HeldChanged{Added: a.heldNow()})
}

// Run lets the site live until the context ends or its owner stops it, and
// returns nil in both cases.
func (a *Agent) Run(ctx context.Context) error {
	a.runs.Lock()
	defer a.runs.Unlock()
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // until all is handed over
	defer end()
	group, live := errgroup.WithContext(life)
	group.Go(func() error { return a.site.run(live) })
	group.Go(func() error { return a.broker.run(live) })
	a.runGroups() //nolint:contextcheck // the agent's life, not the caller's
	group.Go(func() error {
		defer end()
		select {
		case <-ctx.Done():
			a.HandOver() //nolint:contextcheck // the caller's has ended
		case <-a.ctx.Done():
		case <-live.Done(): // a loop has failed
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	cause := context.Cause(a.ctx) //nolint:contextcheck // the agent's life, not the caller's
	if cause != nil && !errors.Is(cause, errStopped) {
		return cause
	}
	return nil
}

// trustState notes that the broker has taken up a state that was restored. It is called on the
// broker's loop.
func (a *Agent) trustState() {
	if err := a.store.Trust(); err != nil {
		a.log.Warn("the next start takes the state for restored again", "error", err)
	}
}

// ownSubmissions tells the pins who owns what since the earlier runs; then the
// rest can go. It is called on the broker's loop.
func (a *Agent) ownSubmissions() {
	for _, id := range a.brokerMachine.Jobs() {
		a.pins.hold(jobOwner(id), a.brokerMachine.Data(id)...)
	}
	a.site.soon(func() {
		for _, at := range a.siteMachine.Status().Attempts {
			owner := attemptOwner(at.ID)
			a.readers.belong(owner, at.Submitter)
			for _, cid := range at.Kept {
				if tenant := a.work.tenant(at.Submitter); a.data.Charge(tenant, cid) == nil {
					a.pins.charged(owner, tenant, cid)
				}
			}
			a.pins.hold(owner, at.Kept...)
		}
		if !a.archive.history.Damaged() { // else what it kept may be all that is left of results
			a.pins.sweep()
		}
	})
}

// Close ends everything, jobs that still run included; their submitters move
// them. It waits for Run, and is safe on an agent that New returned with an error.
func (a *Agent) Close() error {
	a.leave(errStopped)
	select {
	case <-a.ready:
	default:
		close(a.ready) // who waits for it finds no loops and lets it be
	}
	var errs []error
	if a.data != nil {
		errs = append(errs, a.data.Close())
	}
	if a.mesh != nil {
		errs = append(errs, a.mesh.Close())
	}
	a.group.Wait()
	a.runs.Lock()
	defer a.runs.Unlock()
	errs = append(errs, a.flushGroups())
	if a.past != nil {
		errs = append(errs, a.past.Close(a.reading()))
	}
	if a.archive != nil {
		errs = append(errs, a.archive.history.Close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}

// Self is the site's name.
func (a *Agent) Self() grid.SiteID { return a.mesh.Self() }

// Addrs lists where other sites can dial this one.
func (a *Agent) Addrs() []string { return a.mesh.Addrs() }

// spawn runs a function that ends when the agent's context does.
func (a *Agent) spawn(do func()) { a.group.Go(do) }
