package data

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What callers branch on. Every error names what it concerns.
var (
	// errConfig is the cause of a refused Config.
	errConfig = errors.New("invalid data configuration")
	// ErrQuota means that the data does not fit even when all that may go is gone.
	ErrQuota = errors.New("data quota exceeded")
	// ErrDiskFull means that the file system has no space left; the store stays usable.
	ErrDiskFull = errors.New("disk full")
	// ErrNotHeld means that the data is not, or no longer wholly, here.
	ErrNotHeld = errors.New("not held here")
	// ErrUnsupported means that a CID, a graph, a file or a tar entry is of a kind
	// that the mesh does not carry.
	ErrUnsupported = errors.New("unsupported data")
	// ErrTooLarge means that a bound of Limits or of a block is exceeded.
	ErrTooLarge = errors.New("data too large")
	// errNoHolder means that none of the named holders delivered the data.
	errNoHolder = errors.New("no holder delivered the data")
	// errExists means that the path to export to exists already.
	errExists = errors.New("path exists already")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("data store is closed")
)

// maxBlockBytes is the largest block that is kept, sent or accepted.
const maxBlockBytes = 2 << 20

const (
	chunkBytes      = 256 << 10 // of a file in one leaf: what a broken transfer loses at most
	stateChunkBytes = 64 << 10  // of a state: a page of WebAssembly's memory
	maxFileLinks    = 1024      // children of one file node
	maxNameBytes    = 255       // of one path element
	maxPathBytes    = 4096      // of one relative path
	maxGraphDepth   = 256       // links from the root to any block
	minQuota        = 2 * maxBlockBytes
)

// Limits bound one file or directory, from any source.
type Limits struct {
	Files int   // files and directories; 0 = 100,000
	Bytes int64 // content, in bytes; 0 = 1 TiB
	Depth int   // directories within one another; 0 = 64
	Nodes int   // blocks of the graph; 0 = 4,194,304, which is 1 TiB of whole leaves
}

// Config says where data is kept and what it may cost. Dir and Allow are
// required; the zero value of the others is the default.
type Config struct {
	Dir         string             // directory of the store; made if missing
	QuotaBytes  int64              // bytes of blocks at most, at least 4 MiB; 0 = no quota
	UploadBps   int64              // cap on sending, bit/s; 0 = none
	DownloadBps int64              // cap on receiving, bit/s; 0 = none
	Allow       func(peer.ID) bool // who is served: the members; called from any goroutine
	Trades      func(peer.ID) bool // blocks go to these, too, and nothing else; nil = nobody

	// Serves reports whether a peer, one that Allow or Trades names, may have a root and all below
	// it; nil = all of them may have everything. It is called from any goroutine.
	Serves func(grid.SiteID, grid.CID) bool

	Limits         Limits        // of one file or directory
	ConnectTimeout time.Duration // to reach one holder; 0 = 10 s
	StallTimeout   time.Duration // without a block before holders are given up; 0 = 60 s
	Fetches        int           // fetches at the same time, the others wait; 0 = 16

	// OnChange hears, from one goroutine of the store and with no data of the
	// store's, which roots became held and which are no longer. Changes that
	// happen while it runs are collected and told together, only the last state of
	// each, so a slow listener costs nothing. It must not call Close.
	OnChange func(added, removed []grid.CID)

	// OnLink hears when a rate to or from a peer was measured and differs from what
	// it heard before; zeros say that a measurement has become too old. It is
	// called from several goroutines and must be quick.
	OnLink func(grid.SiteID, Link)

	// ProbeEvery is the time between two probes of links that nothing is known of, at
	// most 1.25 MiB each; 0 = none.
	ProbeEvery time.Duration

	Log     *slog.Logger  // nil = silent
	Metrics *obs.Registry // nil = counted, not shown
}

// Validate reports every field that is out of its range.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{errConfig}, args...)...))
	}
	if c.Dir == "" {
		bad("dir: name a directory for the data")
	}
	if c.Allow == nil {
		bad("allow: say who is served")
	}
	if c.QuotaBytes < 0 || (c.QuotaBytes > 0 && c.QuotaBytes < minQuota) {
		bad("quota: want 0 or at least %s, have %s",
			grid.FormatBytes(minQuota), grid.FormatBytes(c.QuotaBytes))
	}
	if c.UploadBps < 0 || c.DownloadBps < 0 {
		bad("upload, download (bit/s): want 0 or more")
	}
	if c.Limits.Files < 0 || c.Limits.Bytes < 0 || c.Limits.Depth < 0 || c.Limits.Nodes < 0 {
		bad("limits: want 0 or more")
	}
	if min(c.ConnectTimeout, c.StallTimeout, c.ProbeEvery) < 0 || c.Fetches < 0 {
		bad("connect timeout, stall timeout, fetches, pause between probes: want 0 or more")
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left at 0.
func (c Config) withDefaults() Config {
	orDefault(&c.Limits.Files, 100_000)
	orDefault(&c.Limits.Bytes, 1<<40)
	orDefault(&c.Limits.Depth, 64)
	orDefault(&c.Limits.Nodes, 1<<22)
	orDefault(&c.ConnectTimeout, 10*time.Second)
	orDefault(&c.StallTimeout, time.Minute)
	orDefault(&c.Fetches, 16)
	c.Log = obs.Or(c.Log)
	return c
}

func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
