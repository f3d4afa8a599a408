package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// owners lists for whom data is kept on a disk, ascending.
func (d *disk) owners() []string {
	all := make(map[string]bool)
	for _, cid := range slices.Sorted(maps.Keys(d.pins)) {
		for _, owner := range slices.Sorted(maps.Keys(d.pins[cid])) {
			all[owner] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// isAbout reports whether an identifier names one of the jobs.
func (o *Oracle) isAbout(id string) bool {
	return slices.ContainsFunc(o.order, func(job grid.JobID) bool {
		return strings.HasPrefix(id, string(job))
	})
}

// kept are the tables that keep something of what has ended, for a time or up to a number
// of rows that their configuration names.
func kept() []string {
	return []string{
		"broker.enquiries.jobs.all", "broker.enquiries.jobs.dependants", "broker.enquiries.jobs.tail",
		"broker.peers", "broker.run.lines", "broker.rolls",
		"broker.run.out.facts",
		"site.cache", "site.submitters", "site.held", "site.links",
	}
}

// grown finds tables that are larger than before there was any job.
func (o *Oracle) grown(w *World) []Finding {
	if o.sizes == nil {
		return nil // nobody asked for that
	}
	var findings []Finding
	now := w.sizes()
	for _, path := range slices.Sorted(maps.Keys(now)) {
		site, table, _ := strings.Cut(path, " ")
		bounded := slices.ContainsFunc(kept(), func(k string) bool { return strings.HasPrefix(table, k) })
		if before, was := o.sizes[path]; was && now[path] > before && !bounded {
			findings = append(findings, Finding{
				Flaw: flawGrown, Site: grid.SiteID(site),
				Text: fmt.Sprintf("%s has %d rows, %d before any job", table, now[path], before),
			})
		}
	}
	return findings
}

// sizes measures all tables of all machines that run.
func (w *World) sizes() map[string]int {
	sizes := make(map[string]int)
	for _, id := range w.order {
		if h := w.hosts[id]; h.up {
			m := meter{sizes: sizes, seen: make(map[uintptr]bool)}
			m.measure(string(id)+" site", reflect.ValueOf(h.site))
			m.measure(string(id)+" broker", reflect.ValueOf(h.broker))
		}
	}
	return sizes
}

// meter looks into a machine.
type meter struct {
	sizes map[string]int
	seen  map[uintptr]bool
}

// measure notes the length of each map and slice that a value has.
func (m meter) measure(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !m.seen[v.Pointer()] {
			m.seen[v.Pointer()] = true
			m.measure(path, v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			m.measure(path, v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || strings.HasSuffix(path, ".cfg") {
			return
		}
		for i := range v.NumField() {
			m.measure(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map, reflect.Slice:
		m.sizes[path] = v.Len()
	default: // no table
	}
}
