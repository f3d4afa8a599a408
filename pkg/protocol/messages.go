package protocol

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Message is a message between two sites. A message that was decoded has been validated.
// Messages are values: one that was sent or received is never changed.
type Message interface {
	// Validate reports the first field that is out of its range.
	Validate() error
}

// Hello opens every stream in both directions and decides admission.
type Hello struct {
	MinVersion  uint32 // lowest protocol version spoken
	MaxVersion  uint32 // highest protocol version spoken
	Domain      grid.DomainID
	Name        string // for people, at most 64 bytes
	Incarnation uint64 // number of this start of the agent, from 1
	WallMS      int64  // sender's wall clock, ms since 1970 UTC, to measure skew
	Capability  grid.Capability
	Refusal     grid.Reason // set by the answering side: why the peer is not admitted
	// Peers are members that the sender can name: multiaddrs that end in /p2p/ID, at most
	// MaxHelloPeers.
	Peers  []string
	Roster Digest // of the sender's roster of members; zero: it keeps none
	// Run is the sender's run; Number is Incarnation. Zero: it does not say.
	Run Run
	// Newer is sent with ReasonOlderRun: the run of the refused site that was started later.
	Newer Run
	// Owner names who owns the site, as it says itself, at most 64 bytes: results of sites of one
	// owner do not confirm each other. Empty: it is its owner's only one.
	Owner string
}

// Announce asks every site how well it fits one task of a job (thesis 4.1,
// step 1). Seq tells announcements of one job apart.
type Announce struct {
	Job       grid.JobID
	Seq       uint32 // from 1, grows with every announcement of the job
	Submitter grid.SiteID
	Addrs     []string // where the submitter can be dialled, multiaddrs, at most MaxAddrs
	Req       grid.Requirement
	Count     uint32        // how many tasks are to be placed
	TTL       time.Duration // how long answers are awaited
	Sample    float64       // probability with which a site answers, above 0 to 1; 1 = all
	Theta     float64       // sites nearer than this answer whatever Sample says; 0 = none
	Explain   bool          // sites that cannot offer say why
	// Clock reads the submitter's wall clock when this is sent: the times of Req.Window are times
	// on it. Zero: it is not said, as by an older agent.
	Clock time.Time
	// Nearer is a distance up to which sites answer with the probability Part, 0 to 1, beside those
	// that Sample and Theta ask. 0: none. Older agents do not know it and answer by those alone.
	Nearer, Part float64
	// Probe says that nothing is awarded for it: who answers keeps nothing and hears of it no more.
	// Older agents do not know it and keep the requirement for a while.
	Probe bool `json:",omitempty"`
}

// Reannounce asks again for a job whose requirement the sites may have cached
// (thesis 4.1, re-submission, step 1).
type Reannounce struct {
	Job       grid.JobID
	Seq       uint32
	Submitter grid.SiteID
	Digest    Digest // of the requirement, so that a stale cache is noticed
	Count     uint32
	TTL       time.Duration
	Explain   bool
	Clock     time.Time // as in Announce
}

// NeedRequirements says that a re-announcement met a cold cache (thesis 4.1,
// re-submission, step 2).
type NeedRequirements struct {
	Job grid.JobID
	Seq uint32
}

// Requirements brings the requirement to a site whose cache was cold (thesis
// 4.1, re-submission, step 3).
type Requirements struct {
	Announce Announce
}

// Bid is a site's offer for an announcement: the ACK with the distance (thesis
// 4.1, step 2).
type Bid struct {
	Job   grid.JobID
	Seq   uint32
	Offer grid.Offer
}

// Vacancy names cached jobs that the site now has capacity for.
type Vacancy struct {
	Jobs []grid.JobID // at most MaxVacancies
}

// AwardedTask is one task of an award.
type AwardedTask struct {
	Index uint32
	Token grid.Token // the attempt's fencing token
	Item  grid.Item  // what sets the task apart; empty when the job has no items
	// Saved are the checkpoints that count, the latest first, at most grid.MaxSaved: the site goes
	// on from the first that it finds whole.
	Saved []grid.Checkpoint `json:",omitempty"`
	// CopyOf is 1 + the index of the first copy, where it is a further one of the same task; 0: it
	// is none. Spec and Item are those of the first already.
	CopyOf uint32 `json:",omitempty"`
}

// Award gives tasks to the site that made the offer (thesis 4.1, step 4: the
// full job description is dispatched). The site may not start any of them
// before it holds a lease.
type Award struct {
	Job      grid.JobID
	OfferID  uint64
	Spec     grid.Spec
	Tasks    []AwardedTask // ascending by index, at most MaxAwardTasks
	Quoted   float64       // the distance that was offered
	RunnerUp float64       // the next nearest site's distance; Quoted or more
	HasNext  bool          // whether there is a runner-up

	// AskFirst says that other sites have the same tasks: the site asks with MayStart
	// when their turn has come, and holds no lease before (Migol 6.2.2).
	AskFirst bool

	Clock time.Time // as in Announce; the times of Spec.Window are times on it

	// Key is the job's, encrypted for the site alone, at most grid.MaxWrappedKey bytes; none unless
	// the job is encrypted.
	Key []byte `json:",omitempty"`
}

// Accepted says that the site committed the attempts to its plan. It is a
// request for their first lease, too.
type Accepted struct {
	Attempts []grid.AttemptID
	Renewal  uint64 // as in Renew
}

// Declined says that the site does not take the attempts.
type Declined struct {
	Attempts []grid.AttemptID
	Refusal  grid.Refusal
	Quote    *grid.Offer // a new offer, if the old one only became worse
}

// ClearKind says why a job is cleared.
type ClearKind uint8

// Why a job is cleared.
const (
	// ClearPlaced says that all tasks are placed: drop the offer, keep the requirement for
	// failover.
	ClearPlaced    ClearKind = iota + 1
	ClearEnded               // the job ended: drop both
	ClearWithdrawn           // the job was cancelled or refused: drop both
)

// Clear is the thesis' "cache clear" (4.1, step 5).
type Clear struct {
	Job       grid.JobID
	Submitter grid.SiteID
	Kind      ClearKind
}

// Lease prolongs leases. The site counts Duration from the sending of the
// request that Renewal names, the submitter from the sending of this answer.
type Lease struct {
	Renewal  uint64
	Attempts []grid.AttemptID
	Duration time.Duration
}

// Fence stops all attempts of each task whose token is below the one given.
type Fence struct {
	Below []grid.AttemptID
}

// Cancel stops all attempts of a job.
type Cancel struct {
	Job grid.JobID
}

// Progress tells the submitter how an attempt goes.
type Progress struct {
	Attempt grid.AttemptID
	Phase   grid.Phase // staging, running or frozen
	Done    int64      // staging: bytes here
	Total   int64      // staging: bytes in all
	// Reason says why a frozen attempt is frozen, ReasonNone = its lease ended, and what keeps
	// the program of a running one from running.
	Reason grid.Reason `json:",omitempty"`

	// StartsIn is the time until its place in the site's plan, counted from sending; 0
	// if its place has come. Only while staging.
	StartsIn time.Duration `json:",omitempty"`

	// StartedAgo is the time since it began at the site, counted from sending; 0 = just now, or
	// not said. Only of one that has begun.
	StartedAgo time.Duration `json:",omitempty"`
}

// Exited says how an attempt ended. The site repeats it until ExitAck.
type Exited struct {
	Attempt grid.AttemptID
	Exit    grid.Exit

	// StartedAgo and EndedAgo are how long ago it began and ended at the site, counted from
	// sending: what is heard late is not taken for late. 0 = just now, or not said.
	StartedAgo time.Duration `json:",omitempty"`
	EndedAgo   time.Duration `json:",omitempty"`
}

// ExitAck says that the submitter has all that it wants of the attempts; the
// site may forget them and their outputs.
type ExitAck struct {
	Attempts []grid.AttemptID
}

// Limits on messages.
const (
	Version          = 1         // the protocol version spoken here
	MinVersion       = 1         // the lowest version understood
	maxAnnounceBytes = 64 << 10  // size of an encoded announcement
	MaxMessageBytes  = 256 << 10 // size of any other encoded message
	MaxAddrs         = 16        // addresses of a submitter
	MaxHelloPeers    = 64        // addresses of members in a Hello
	MaxVacancies     = 256       // jobs of a Vacancy
	MaxAwardTasks    = 1_024     // tasks of an Award
	MaxAttempts      = 1_024     // attempts of one message
	maxLease         = 7 * 24 * time.Hour
	maxAgo           = 2 * grid.MaxRuntime
	maxHelloName     = 64
	maxAddrBytes     = 256
)

// Validate reports the first field that is out of its range.
func (m Hello) Validate() error {
	switch {
	case m.MinVersion < 1 || m.MaxVersion < m.MinVersion:
		return invalidf("hello: version range %d to %d", m.MinVersion, m.MaxVersion)
	case len(m.Name) > maxHelloName:
		return invalidf("hello: name longer than %d bytes", maxHelloName)
	case len(m.Owner) > maxHelloName:
		return invalidf("hello: owner longer than %d bytes", maxHelloName)
	case m.Incarnation == 0 || m.WallMS < 0:
		return invalidf("hello: incarnation or clock out of range")
	case len(m.Peers) > MaxHelloPeers:
		return invalidf("hello: more than %d peers", MaxHelloPeers)
	}
	for _, a := range m.Peers {
		if a == "" || len(a) > maxAddrBytes {
			return invalidf("hello: a peer's address takes 1 to %d bytes, have %d", maxAddrBytes, len(a))
		}
	}
	if err := firstError(m.Run.Validate(), m.Newer.Validate()); err != nil {
		return err
	}
	if m.Run.Number != 0 && m.Run.Number != m.Incarnation {
		return invalidf("hello: run %d of incarnation %d", m.Run.Number, m.Incarnation)
	}
	return firstError(m.Domain.Validate(), m.Capability.Validate())
}

// Validate reports the first field that is out of its range.
func (m Announce) Validate() error {
	if len(m.Addrs) > MaxAddrs {
		return invalidf("announce: more than %d addresses", MaxAddrs)
	}
	for _, a := range m.Addrs {
		if len(a) > maxAddrBytes {
			return invalidf("announce: address longer than %d bytes", maxAddrBytes)
		}
	}
	if !(m.Sample > 0 && m.Sample <= 1) || !(m.Theta >= 0) || math.IsInf(m.Theta, 1) {
		return invalidf("announce: sample %v or theta %v out of range", m.Sample, m.Theta)
	}
	if !(m.Part >= 0 && m.Part <= 1) || !(m.Nearer >= 0) || math.IsInf(m.Nearer, 1) {
		return invalidf("announce: part %v or nearer %v out of range", m.Part, m.Nearer)
	}
	return firstError(checkCall(m.Job, m.Seq, m.Submitter),
		checkCount(m.Count, m.TTL), m.Req.Validate())
}

// Validate reports the first field that is out of its range.
func (m Reannounce) Validate() error {
	return firstError(checkCall(m.Job, m.Seq, m.Submitter), checkCount(m.Count, m.TTL))
}

// Validate reports the first field that is out of its range.
func (m NeedRequirements) Validate() error { return checkAnswer(m.Job, m.Seq) }

// Validate reports the first field that is out of its range.
func (m Requirements) Validate() error { return m.Announce.Validate() }

// Validate reports the first field that is out of its range.
func (m Bid) Validate() error { return firstError(checkAnswer(m.Job, m.Seq), m.Offer.Validate()) }

// Validate reports the first field that is out of its range.
func (m Vacancy) Validate() error {
	if len(m.Jobs) == 0 || len(m.Jobs) > MaxVacancies {
		return invalidf("vacancy: want 1 to %d jobs, have %d", MaxVacancies, len(m.Jobs))
	}
	for _, id := range m.Jobs {
		if err := id.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Validate reports the first field that is out of its range.
func (m Award) Validate() error {
	if m.OfferID == 0 || len(m.Tasks) == 0 || len(m.Tasks) > MaxAwardTasks {
		return invalidf("award: want an offer and 1 to %d tasks, have %d", MaxAwardTasks, len(m.Tasks))
	}
	if len(m.Key) > grid.MaxWrappedKey || (len(m.Key) > 0) != m.Spec.Encrypted {
		return invalidf("award: want a key of at most %d bytes for encrypted jobs alone, have %d",
			grid.MaxWrappedKey, len(m.Key))
	}
	if !finite(m.Quoted) || !finite(m.RunnerUp) {
		return invalidf("award: distances must be finite and at least 0")
	}
	for i, t := range m.Tasks {
		if t.Token == 0 || t.Index >= grid.MaxTasks || i > 0 && t.Index <= m.Tasks[i-1].Index {
			return invalidf("award: task %d has no token, is out of range or out of order", t.Index)
		}
		if t.CopyOf > t.Index {
			return invalidf("award: task %d is a copy of a later one", t.Index)
		}
		if err := firstError(t.Item.Validate(), grid.ValidateSaved(t.Saved)); err != nil {
			return err
		}
	}
	return firstError(m.Job.Validate(), m.Spec.Validate())
}

// Validate reports the first field that is out of its range.
func (m Accepted) Validate() error { return checkAttempts(m.Attempts) }

// Validate reports the first field that is out of its range.
func (m Declined) Validate() error {
	if m.Quote != nil {
		if err := m.Quote.Validate(); err != nil {
			return err
		}
	}
	return firstError(checkAttempts(m.Attempts), m.Refusal.Validate())
}

// Validate reports the first field that is out of its range.
func (m Clear) Validate() error {
	if m.Kind < ClearPlaced || m.Kind > ClearWithdrawn {
		return invalidf("clear: kind %d is unknown", m.Kind)
	}
	return firstError(m.Job.Validate(), m.Submitter.Validate())
}

// Validate reports the first field that is out of its range.
func (m Lease) Validate() error {
	if m.Duration <= 0 || m.Duration > maxLease {
		return invalidf("lease: want more than 0 and at most %s, have %s", maxLease, m.Duration)
	}
	return checkAttempts(m.Attempts)
}

// Validate reports the first field that is out of its range.
func (m Fence) Validate() error { return checkAttempts(m.Below) }

// Validate reports the first field that is out of its range.
func (m Cancel) Validate() error { return m.Job.Validate() }

// Validate reports the first field that is out of its range.
func (m Progress) Validate() error {
	if m.Phase < grid.PhaseStaging || m.Phase > grid.PhaseFrozen || m.Done < 0 || m.Total < 0 ||
		m.StartsIn < 0 || m.StartsIn > grid.MaxRuntime || !isPast(m.StartedAgo) {
		return invalidf("progress: phase, bytes or time out of range")
	}
	return m.Attempt.Validate()
}

// Validate reports the first field that is out of its range.
func (m Exited) Validate() error {
	if !isPast(m.StartedAgo) || !isPast(m.EndedAgo) {
		return invalidf("exited: its start or end: want 0 to %s ago", maxAgo)
	}
	return firstError(m.Attempt.Validate(), m.Exit.Validate())
}

// isPast reports whether a time ago can be said.
func isPast(ago time.Duration) bool { return ago >= 0 && ago <= maxAgo }

// Validate reports the first field that is out of its range.
func (m ExitAck) Validate() error { return checkAttempts(m.Attempts) }

func checkCall(job grid.JobID, seq uint32, submitter grid.SiteID) error {
	return firstError(checkAnswer(job, seq), submitter.Validate())
}

func checkAnswer(job grid.JobID, seq uint32) error {
	if seq == 0 {
		return invalidf("announcements count from 1")
	}
	return job.Validate()
}

func checkCount(count uint32, ttl time.Duration) error {
	if count < 1 || count > grid.MaxTasks {
		return invalidf("count: want 1 to %d, have %d", grid.MaxTasks, count)
	}
	if ttl < grid.MinTTL || ttl > grid.MaxTTL {
		return invalidf("ttl: want %s to %s, have %s", grid.MinTTL, grid.MaxTTL, ttl)
	}
	return nil
}

func checkAttempts(attempts []grid.AttemptID) error {
	if len(attempts) == 0 || len(attempts) > MaxAttempts {
		return invalidf("want 1 to %d attempts, have %d", MaxAttempts, len(attempts))
	}
	for _, a := range attempts {
		if err := a.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func finite(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
