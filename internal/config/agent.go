package config

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Agent is the configuration of one site's agent. The zero value is not useful:
// start from Default.
type Agent struct {
	Preset    string          // lan, wan or test: where the other defaults come from
	StateDir  string          // identity key, facts, data; directories 0700, keys 0600
	Name      string          // for people; default: the host's name
	Domain    grid.DomainID   // domain to be a member of
	DomainKey grid.DomainKey  // whose roster is believed; empty = that of its own domain.key, if any
	Listen    []string        // multiaddrs to listen on; default loopback only
	Bootstrap []string        // multiaddrs with /p2p/ID of sites to dial first
	Peers     []grid.SiteID   // who may take part besides the bootstrap sites; empty list: only those
	NAT       nat             // for machines behind translating routers
	MDNS      bool            // find members on the local network, and be found there
	DHT       bool            // ask members for the addresses of members that are not reached
	Accept    string          // listed (default) or anyone; anyone implies that only WASM is run
	Kinds     []grid.WorkKind // work this site runs, ascending; default wasm
	Signers   []grid.Signer   // whose work it runs; empty: nothing has to be signed
	Sandbox   string          // what encloses commands: auto (default), bubblewrap or gvisor
	Commands  string          // who holds what they take: bounded (default) or unbounded
	Ceilings  Ceilings        // what the owner gives
	Price     price           // what the owner asks for
	Rates     Rates           // links, as the owner caps them
	Lease     Lease           // how long a site may run on without hearing from the submitter
	Data      dataRoom        // the data room
	History   History         // own jobs that have ended
	Owner     Owner           // when the site yields to its owner
	Jobs      jobs            // limits on other people's jobs
	Placing   placing         // how this agent's own jobs find their sites
	Standby   standby         // who goes on with own jobs, and whose jobs go on here
	Control   Control         // the controller of the domain
	Planning  planning        // what this site promises, and in what order it runs what waits
	API       API             // the agent's own interface
	TES       tasks           // what tasks of workflow engines may do
	Log       logging         // what it tells
}

// Ceilings are what the owner gives to the mesh. 0 leaves the choice to the
// agent: three quarters of the cores, half of the memory, a quarter of the free
// disk, and the measured speed.
type Ceilings struct {
	MilliCPUs   int64 // thousandths of a core
	MemoryBytes int64
	DiskBytes   int64
	MFLOPS      int64 // of all given cores together, 10^6 FLOP/s; 0 = what is measured
}

// price is the owner's price of an hour of a core, in a unit that the owners of a
// domain agree on. It is told to jobs whose map has that dimension; nothing is
// charged.
type price struct {
	Named    bool
	CoreHour float64 // 0 to 1e9
}

// Rates cap and describe the site's links, bit/s.
type Rates struct {
	DownBps int64 // towards this site, more than 0
	UpBps   int64 // away from this site, more than 0
	DiskBps int64 // of the local disk; 0 = measured, with 32 MiB in the state directory at most
	Probe   bool  // measure links that carried no data yet; 1.25 MiB a minute at most
}

// nat says how a site connects to the others from behind a router that translates
// addresses and accepts no connections.
type nat struct {
	Relay        string // off, use, serve or auto
	Punch        bool   // make relayed connections direct
	MapPort      bool   // ask the router, by UPnP or NAT-PMP, to let connections in
	Reachability string // auto, public or private: what this site is to believe of itself
}

// The parts in relaying.
const (
	relayOff   = "off"   // none
	relayUse   = "use"   // be reached through members that relay, unless reachable
	relayServe = "serve" // be reachable, and relay for other members
	relayAuto  = "auto"  // use, and serve once found to be reachable
)

// What may be believed of reachability.
const (
	reachAuto    = "auto" // found out by asking members
	reachPublic  = "public"
	reachPrivate = "private"
)

// Lease is a submitter's promise not to start another attempt.
type Lease struct {
	Length time.Duration // from 100 ms; counted by the site from sending its request
	Margin time.Duration // added by the submitter
	// Reserved is the length for reservations: a site that is back within it has them still.
	Reserved time.Duration
}

// dataRoom bounds what the data room keeps.
type dataRoom struct {
	QuotaBytes int64         // of all data on disk
	Keep       time.Duration // results are kept this long
}

// History bounds what is kept of own jobs that have ended.
type History struct {
	Keep      time.Duration // from a job's end
	SizeBytes int64         // of all that is kept, data left out
}

// Owner says when the site yields to the owner's own work.
type Owner struct {
	Yield        bool          // suspend running jobs while the owner uses the machine
	ReserveMilli int64         // thousandths of a core that stay free beside what the owner uses
	FreeDisk     int64         // bytes of the disk that stay free; 0 = what the agent itself needs
	Patience     time.Duration // an attempt suspended for longer moves elsewhere
	MoveAfter    time.Duration // the same with a checkpoint, where another site offers
	Hours        yield.Hours   // when the machine is shared; always if there are none
	Battery      bool          // the machine is shared also while it runs on battery
	Metered      bool          // it is shared also while data costs money
	Heat         int64         // degrees Celsius from which on processors are too hot; 0 = any
	Input        bool          // it is shared only while nobody uses keyboard or mouse
	InUse        inUse         // how much is given while somebody does
	Hook         []string      // program, with arguments, that is asked whether it is shared
	Remote       []grid.SiteID // who may look at this site, pause it and end that pause
	Priority     string        // of jobs: idle or low
	Look         time.Duration // between two looks at what other programs leave; 0 = never
	Root         string        // where the machine's proc and sys are, if not below /
	Name         string        // who owns the machine; empty: it is the owner's only one
}

// inUse limits what is given while somebody uses keyboard or mouse.
type inUse struct {
	CPUs    int64 // percent of the cores of other times, 1 to 100
	Memory  int64 // percent of the memory of other times, 1 to 100
	DownBps int64 // cap on data towards this site, bit/s; 0 = that of other times
	UpBps   int64 // likewise away from it
}

// The priorities.
const (
	PriorityIdle = "idle" // a job gets the processor only when nobody else wants it
	priorityLow  = "low"  // a job gets a small share in any case
)

// jobs bounds what this site takes from others.
type jobs struct {
	MaxRuntime time.Duration // longest estimate accepted, and the limit of jobs without one
}

// placing says how offers are requested and chosen. The defaults are the thesis':
// all sites are asked, and the nearest is taken.
type placing struct {
	Choice   string // nearest, or softmin: by chance among the nearest eight
	Failover string // where failed tasks go on: by risk, or fibr: by the lowest fault index
	Replies  int    // ask for about so many answers, by chance; 0 = for all
	// Statements: share what is counted of sites with other submitters, or heed own counts alone.
	Statements    string
	FaultHalfLife time.Duration // in which a fault counts for half
	Policy        string        // what availability does: none, saa, naa or nsa (thesis 3.3.1)
	HoldAll       bool          // offers of this site hold their capacity (thesis 4.1)
}

// standby says who keeps the facts of own jobs, so that they go on without this machine, and
// whether this site does so for others.
type standby struct {
	Count     int    // other agents that keep the facts of the own jobs: 0 or 2
	Accept    string // for whom this site stands by: domain or none
	DataBytes int64  // kept of inputs and modules of one other owner, at most
}

// Control says whether this site takes part in the domain's group of three, which runs the domain's
// controller, and, at the site that has the domain's key, what that goes by.
type Control struct {
	Found       bool                    // the site with the domain's key makes that group
	Accept      string                  // whether this site is a member if asked: domain or none
	WeightMilli int64                   // of a failed site's load, thousandths (zeta)
	Share       float64                 // of full load; above it the domain is busy (eta)
	Slot        time.Duration           // in which load is looked at
	AllNodes    bool                    // full load is that of all sites, the failed ones included
	Fines       map[grid.SiteID]float64 // of submitters to whom a broken promise costs more
	Prices      bool                    // the cheapest site with space takes what leaves
}

// For whom a site stands by.
const (
	StandbyDomain = "domain"
	standbyNone   = "none"
)

// The choices.
const (
	choiceNearest = "nearest"
	ChoiceSoftMin = "softmin"
)

// Where failed tasks go on.
const (
	failoverRisk = "risk"
	FailoverFIBR = "fibr"
)

// Whether other submitters are told of faults, and heeded.
const (
	statementsShare = "share"
	StatementsOwn   = "own"
)

// planning says what this site promises and in what order it runs what waits. The
// percentages are of what the owner gives.
type planning struct {
	Policy       string        // the order in which waiting jobs move up, one of grid.Policies
	Backfill     string        // how gaps before the first are filled, one of grid.Backfills
	Horizon      time.Duration // what is planned beyond it is not displaced by an outage
	Promised     int64         // percent that promises hold together, 1 to 100
	Strangers    int64         // percent for promises to others where anyone may submit; 0 = no limit
	Submitter    int64         // percent that one other submitter holds at one time; 0 = no limit
	Project      int64         // percent that one project holds at one time; 0 = no limit
	Ahead        time.Duration // how far ahead others are promised anything
	Longest      time.Duration // longest reservation of others
	Fairshare    bool          // promises begin behind everything that waits already (Migol 4)
	Overestimate float64       // part by which run times are overestimated, 0 to 0.9
}

// The sandboxes of commands.
const (
	sandboxAuto       = "auto"       // bubblewrap, or gVisor where that does not work
	sandboxBubblewrap = "bubblewrap" // quick to start; the machine's own kernel
	sandboxGVisor     = "gvisor"     // a kernel of its own between commands and the machine
)

// Who holds what commands take of memory, processes and disk.
const (
	CommandsBounded   = "bounded"   // the kernel; no commands where it does not
	CommandsUnbounded = "unbounded" // the agent, where the kernel does not
)

// API says where the agent's own interface listens.
type API struct {
	Socket    string // path of the unix socket, 0600; "off" for none
	Listen    string // loopback TCP address; empty for none
	TokenFile string // bearer token for TCP, made at the first start, 0600
	Debug     bool   // serve /debug/pprof
}

// tasks says what tasks of the Task Execution Service may do, which workflow engines create.
type tasks struct {
	Files  []string // directories below which they read inputs and write outputs
	Mounts []string // those of them in which they may also change directories that are inputs
	URLs   []string // beginnings of the addresses of the web that they read inputs from
	Images []string // images whose programs the sites have; * stands for any text
}

// logging says what the agent tells on standard error.
type logging struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}
