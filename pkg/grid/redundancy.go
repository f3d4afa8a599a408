package grid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Redundancy says how often each task of a job runs, and what has to agree before a result is
// delivered. The zero value: once, and what its site says is believed. One of Replicas, Auto and
// Verify is given, or none.
type Redundancy struct {
	// Replicas of each task run, on as many sites: 2 to MaxReplicas; 0 or 1: one. Of several the
	// first that ends well counts, unless more have to agree.
	Replicas uint32 `json:",omitempty"`
	// Agreement counts those that have to give the same result: 1 to Replicas; 0 = 1.
	Agreement uint32 `json:",omitempty"`
	// Auto lets a task run a second time unless its site has earned trust, and sometimes then.
	Auto bool `json:",omitempty"`
	// Verify is the part of the results, 0 to 1, that is compared with that of another site before
	// it is delivered; of sites that have not earned trust all are. 0: none.
	Verify float64 `json:",omitempty"`
}

// MaxReplicas bounds Redundancy.Replicas.
const MaxReplicas = 8

// checkedBy counts the results that have to agree where a task is run again only to compare.
const checkedBy = 2

// First is the number of copies with which each task begins, at least 1.
func (r Redundancy) First() uint32 { return max(r.Replicas, 1) }

// Agreed counts the copies of a task that have to give the same result, if it is to be compared: at
// least 1.
func (r Redundancy) Agreed() uint32 {
	if r.Draws() {
		return checkedBy
	}
	return max(r.Agreement, 1)
}

// Draws reports whether it is left to chance which results are compared.
func (r Redundancy) Draws() bool { return r.Auto || r.Verify > 0 }

// Compares reports whether results of different sites are compared.
func (r Redundancy) Compares() bool { return r.Agreed() > 1 }

// Several reports whether a task may run in several copies.
func (r Redundancy) Several() bool { return r.First() > 1 || r.Draws() }

// Most is the number of copies that a task has at most, those that were begun because others
// disagreed included: K + 2m.
func (r Redundancy) Most() uint32 {
	if !r.Compares() {
		return r.First()
	}
	return r.First() + 2*r.Agreed()
}

// ReplicasWord is the job file's word for Replicas and Auto; empty for a single copy.
func (r Redundancy) ReplicasWord() string {
	switch {
	case r.Auto:
		return "auto"
	case r.Replicas == 0:
		return ""
	default:
		return strconv.FormatUint(uint64(r.Replicas), 10)
	}
}

// ParseReplicas reads what ReplicasWord writes. The error is ErrInvalid.
func ParseReplicas(word string) (Redundancy, error) {
	switch word {
	case "":
		return Redundancy{}, nil
	case "auto":
		return Redundancy{Auto: true}, nil
	}
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil || n < 1 || n > MaxReplicas {
		return Redundancy{}, invalidf("replicas: want auto, or 1 to %d, have %q", MaxReplicas, word)
	}
	return Redundancy{Replicas: uint32(n)}, nil
}

// Validate reports what contradicts itself or is out of its range.
func (r Redundancy) Validate() error {
	switch {
	case r.Replicas > MaxReplicas:
		return invalidf("replicas: want at most %d, have %d", MaxReplicas, r.Replicas)
	case r.Auto && r.Replicas > 0:
		return invalidf("replicas: auto and a number exclude each other")
	case r.Agreement > r.First():
		return invalidf("agreement: %d copies cannot agree where replicas is %d; raise replicas",
			r.Agreement, r.First())
	case math.IsNaN(r.Verify) || r.Verify < 0 || r.Verify > 1:
		return invalidf("verify: want a part from 0 to 1, such as .02, have %v", r.Verify)
	case r.Verify > 0 && (r.Auto || r.Replicas > 1):
		return invalidf("verify: replicas are compared already; remove one of them")
	default:
		return nil
	}
}

// ValidateRedundancy reports why the tasks of a job cannot run as often as is asked for.
func (j Job) ValidateRedundancy() error {
	r := j.Redundancy
	if err := r.Validate(); err != nil || !r.Several() {
		return err
	}
	switch {
	case j.Spec.Kind == KindReservation:
		return invalidf("replicas, verify: a reservation runs nothing that could be compared")
	case j.Split != SplitNone:
		return invalidf("replicas, verify: the parts of a split job exchange data " +
			"while they run, and cannot run a second time beside themselves")
	case j.Flood:
		return invalidf("replicas, verify: not with placing: flood, " +
			"which queues one copy at several sites")
	case j.Spec.Window.Promised():
		return invalidf("replicas, verify: not with a fixed start or a deadline: " +
			"a promise is made by one site, and other copies may end later")
	case j.Spec.Reservation != "":
		return invalidf("replicas, verify: not in a reservation, which holds places for one copy")
	case uint64(j.Count)*uint64(r.Most()) > MaxTasks:
		return invalidf("replicas, verify: a task may run in %d copies, so that a job has "+
			"at most %d tasks then, have %d; split the job", r.Most(), MaxTasks/r.Most(), j.Count)
	default:
		return nil
	}
}

// indexWord stands for a task's place in the array.
const indexWord = "{{index}}"

// FillIndex is the template of one task: {{index}} is replaced, {{item}} is not. It reports whether
// there was anything to replace.
func (s Spec) FillIndex(index uint32) (Spec, bool) {
	found, number := false, strconv.FormatUint(uint64(index), 10)
	fill := func(text string) string {
		found = found || strings.Contains(text, indexWord)
		return strings.ReplaceAll(text, indexWord, number)
	}
	s.Args, s.Env = slices.Clone(s.Args), slices.Clone(s.Env)
	s.Inputs, s.Outputs = slices.Clone(s.Inputs), slices.Clone(s.Outputs)
	for i := range s.Args {
		s.Args[i] = fill(s.Args[i])
	}
	for i := range s.Env {
		s.Env[i].Value = fill(s.Env[i].Value)
	}
	for i := range s.Inputs {
		s.Inputs[i].Path = fill(s.Inputs[i].Path)
	}
	for i := range s.Outputs {
		s.Outputs[i].Path, s.Outputs[i].To = fill(s.Outputs[i].Path), fill(s.Outputs[i].To)
	}
	return s, found
}

// ResultDigest names what an attempt has computed, in hexadecimal digits of a SHA-256: how it has
// ended, what it has left, and what it has printed to its standard output. Two attempts with the
// same digest agree. Standard error does not count, nor what a site says in words.
func (e Exit) ResultDigest() string {
	outputs := slices.Clone(e.Outputs)
	slices.SortFunc(outputs, func(a, b Produced) int { return strings.Compare(a.Path, b.Path) })
	for i := range outputs {
		outputs[i].Bytes = 0 // the content says it
	}
	text, err := json.Marshal(struct {
		Cause   ExitCause
		Code    int
		Outputs []Produced
		Stdout  CID
	}{e.Cause, e.Code, outputs, e.Stdout.CID})
	if err != nil {
		return "" // plain texts and numbers always can be written
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
