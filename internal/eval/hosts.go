package eval

import (
	"bufio"
	"fmt"
	"io"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Hosts makes up how fast sites are.
type Hosts struct {
	Sites  int
	Speeds string  // file with a table of speeds, packed or not; empty = a lognormal law
	Median float64 // of that law
	Sigma  float64 // of that law: standard deviation of ln
	Total  float64 // all together have this speed; 0 = as they were drawn
	Seed   uint64
}

// Bounds of what is written: a file of some 20 MB.
const (
	mostHosts       = 1_000_000
	mostLinkedSites = 1_000
)

// Write writes the lines site,speed.
func (h Hosts) Write(out io.Writer) error {
	if h.Sites < 1 || h.Sites > mostHosts {
		return fmt.Errorf("%w: --sites: want 1 to %d, have %d", ErrUsage, mostHosts, h.Sites)
	}
	if !(h.Total >= 0) {
		return fmt.Errorf("%w: --total: want a positive speed, have %v", ErrUsage, h.Total)
	}
	speeds, err := h.draw()
	if err != nil {
		return err
	}
	factor := 1.0
	if h.Total > 0 {
		factor = h.Total / sum(speeds)
	}
	buffered := bufio.NewWriter(out)
	fmt.Fprintln(buffered, "site,speed")
	for i, speed := range speeds {
		fmt.Fprintf(buffered, "%d,%.6g\n", i, factor*speed)
	}
	return buffered.Flush()
}

func (h Hosts) draw() ([]float64, error) {
	rng := workload.Stream(h.Seed, "host speeds")
	if h.Speeds != "" {
		table, err := readSpeeds(h.Speeds)
		if err != nil {
			return nil, err
		}
		return table.Sample(rng, h.Sites), nil
	}
	law, err := logNormal(h.Median, h.Sigma)
	if err != nil {
		return nil, err
	}
	return law.Sample(rng, h.Sites), nil
}

// logNormal is the law with what the flags call median and sigma.
func logNormal(median, sigma float64) (workload.Law, error) {
	law := workload.Law{Name: workload.LogNormal, Scale: median, Shape: sigma}
	if !(median > 0) {
		return law, fmt.Errorf("%w: --median: want a positive number, have %v", ErrUsage, median)
	}
	if err := law.Validate(); err != nil {
		return law, fmt.Errorf("%w: --median, --sigma: %w", ErrUsage, err)
	}
	return law, nil
}

// Links makes up how fast data travels between sites.
type Links struct {
	Sites  int
	Median float64 // of a lognormal law of rates, one for each ordered pair
	Sigma  float64 // of that law: standard deviation of ln
	Local  float64 // rate of a copy within a site
	Seed   uint64
}

// Write writes the lines from,to,rate.
func (l Links) Write(out io.Writer) error {
	if l.Sites < 1 || l.Sites > mostLinkedSites {
		return fmt.Errorf("%w: --sites: want 1 to %d, have %d", ErrUsage, mostLinkedSites, l.Sites)
	}
	if !(l.Local > 0) {
		return fmt.Errorf("%w: --local: want a positive rate, have %v", ErrUsage, l.Local)
	}
	law, err := logNormal(l.Median, l.Sigma)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	fmt.Fprintln(buffered, "from,to,rate")
	for from, row := range workload.Rates(workload.Stream(l.Seed, "links"), l.Sites, law, l.Local) {
		for to, rate := range row {
			fmt.Fprintf(buffered, "%d,%d,%.6g\n", from, to, rate)
		}
	}
	return buffered.Flush()
}
