package grid

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	someJob = JobID("mfrggzdfmztwq2lk")
	someCID = CID("bmodule")
)

func validSpec(change func(*Spec)) Spec {
	s := Spec{
		Kind: KindWasm, Module: Input{Path: "/m.wasm", CID: someCID}, Runtime: time.Minute,
		Weights: DefaultWeights(),
	}
	change(&s)
	return s
}

func validJob(change func(*Job)) Job {
	j := Job{Spec: validSpec(func(*Spec) {}), Count: 2, TTL: time.Second}
	change(&j)
	return j
}

func validRequirement(change func(*Requirement)) Requirement {
	r := validJob(func(*Job) {}).Requirement("home", "site", Capability{}, 0)
	change(&r)
	return r
}

func validOffer(change func(*Offer)) Offer {
	o := Offer{ID: 1, TasksNow: 1, Validity: time.Second}
	change(&o)
	return o
}

func validExit(change func(*Exit)) Exit {
	e := Exit{Cause: CauseExited}
	change(&e)
	return e
}

// limit is the last value of something that is taken, and the first that is not.
type limit struct{ last, first interface{ Validate() error } }

// TestEachLimitIsExact knows the last value that is taken and the first that is not, for each
// limit of what people and other sites send.
func TestEachLimitIsExact(t *testing.T) {
	for name, c := range merged(
		limitsOfIDs(), limitsOfSpecs(), limitsOfJobs(), limitsOfRequirements(), limitsOfOffers(),
		limitsOfExits(), limitsOfResources(), limitsOfPlacing(), limitsOfWindows(), limitsOfKinds()) {
		if err := c.last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := c.first.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

func merged(tables ...map[string]limit) map[string]limit {
	all := make(map[string]limit)
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

func long(n int) string { return strings.Repeat("a", n) }

func limitsOfIDs() map[string]limit {
	key := NewDomainKey(make([]byte, domainKeyBytes))
	return map[string]limit{
		"site":              {SiteID(long(maxIDBytes)), SiteID(long(maxIDBytes + 1))},
		"no site":           {SiteID("a"), SiteID("")},
		"site, space":       {SiteID("!"), SiteID(" ")},
		"site, last":        {SiteID("~"), SiteID("\x7f")},
		"site, slash":       {SiteID("."), SiteID("/")},
		"site, colon":       {SiteID(";"), SiteID(":")},
		"job":               {someJob, someJob + "a"},
		"short job":         {someJob, someJob[1:]},
		"job, z":            {someJob[1:] + "z", someJob[1:] + "{"},
		"job, a":            {someJob[1:] + "a", someJob[1:] + "`"},
		"job, 2":            {someJob[1:] + "2", someJob[1:] + "1"},
		"job, 7":            {someJob[1:] + "7", someJob[1:] + "8"},
		"domain":            {DomainID(long(maxLabelBytes)), DomainID(long(maxLabelBytes + 1))},
		"no domain":         {DomainID("a"), DomainID("")},
		"domain, dash":      {DomainID("a-b"), DomainID("a_b")},
		"domain, first":     {DomainID("a-b"), DomainID("-b")},
		"domain, last":      {DomainID("a-b"), DomainID("a-")},
		"domain, letters":   {DomainID("az"), DomainID("aZ")},
		"domain, digits":    {DomainID("09"), DomainID("0:")},
		"domain key":        {key, key + "A"},
		"domain key, short": {key, NewDomainKey(make([]byte, domainKeyBytes-1))},
		"domain key, long":  {key, NewDomainKey(make([]byte, domainKeyBytes+1))},
		"domain key, word":  {key, key[1:]},
		"domain key, text":  {key, key[:len(key)-1] + "!"},
		"cid":               {CID(long(maxIDBytes)), CID(long(maxIDBytes + 1))},
		"no cid":            {CID("a"), CID("")},
		"cid, letters":      {CID("az"), CID("a{")},
		"cid, digits":       {CID("09"), CID("/0")},
	}
}

func limitsOfSpecs() map[string]limit {
	of := func(last, first func(*Spec)) limit { return limit{validSpec(last), validSpec(first)} }
	texts := MaxSpecText - maxName
	return map[string]limit{
		"name": of(
			func(s *Spec) { s.Name = long(maxName) }, func(s *Spec) { s.Name = long(maxName + 1) }),
		"arguments": of(
			func(s *Spec) { s.Args = make([]string, maxArgs) },
			func(s *Spec) { s.Args = make([]string, maxArgs+1) }),
		"variables": of(
			func(s *Spec) { s.Env = make([]EnvVar, maxArgs) },
			func(s *Spec) { s.Env = make([]EnvVar, maxArgs+1) }),
		"outputs": of(
			func(s *Spec) { s.Outputs = slices.Repeat([]Output{{Path: "/o"}}, maxArgs) },
			func(s *Spec) { s.Outputs = slices.Repeat([]Output{{Path: "/o"}}, maxArgs+1) }),
		"inputs": of(
			func(s *Spec) { s.Inputs = slices.Repeat([]Input{{Path: "/i", CID: someCID}}, maxArgs) },
			func(s *Spec) { s.Inputs = slices.Repeat([]Input{{Path: "/i", CID: someCID}}, maxArgs+1) }),
		"text of arguments": of(
			func(s *Spec) { s.Name, s.Args = long(maxName), []string{long(texts)} },
			func(s *Spec) { s.Name, s.Args = long(maxName), []string{long(texts + 1)} }),
		"text of variables": of(
			func(s *Spec) { s.Env = []EnvVar{{Name: long(1), Value: long(MaxSpecText - 1)}} },
			func(s *Spec) { s.Env = []EnvVar{{Name: long(2), Value: long(MaxSpecText - 1)}} }),
		"map": of(func(s *Spec) { s.Map = mapKinds }, func(s *Spec) { s.Map = mapKinds + 1 }),
		"unattended": of(
			func(s *Spec) { s.Unattended = unattendedKinds },
			func(s *Spec) { s.Unattended = unattendedKinds + 1 }),
		"overrun": of(
			func(s *Spec) { s.Overrun = overrunKinds }, func(s *Spec) { s.Overrun = overrunKinds + 1 }),
		"runtime": of(
			func(s *Spec) { s.Runtime = MaxRuntime }, func(s *Spec) { s.Runtime = MaxRuntime + 1 }),
		"no runtime": of(func(s *Spec) { s.Runtime = 1 }, func(s *Spec) { s.Runtime = 0 }),
		"time limit": of(
			func(s *Spec) { s.TimeLimit = MaxRuntime }, func(s *Spec) { s.TimeLimit = MaxRuntime + 1 }),
		"no time limit": of(func(s *Spec) { s.TimeLimit = 0 }, func(s *Spec) { s.TimeLimit = -1 }),
		"no command": of(
			func(s *Spec) { s.Kind, s.Args = KindCommand, []string{"x"} },
			func(s *Spec) { s.Kind = KindCommand }),
		"path": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/" + long(maxPath-1)}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/" + long(maxPath)}} }),
		"relative path": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "aa"}} }),
		"root": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/"}} }),
		"way out": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a/..b"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/a/.."}} }),
		"dot": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a/.b"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/a/./b"}} }),
		"empty part": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a/b"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/a//b"}} }),
		"zero byte": of(
			func(s *Spec) { s.Outputs = []Output{{Path: "/a\x01"}} },
			func(s *Spec) { s.Outputs = []Output{{Path: "/a\x00"}} }),
	}
}

func limitsOfJobs() map[string]limit {
	of := func(last, first func(*Job)) limit { return limit{validJob(last), validJob(first)} }
	return map[string]limit{
		"tasks": of(
			func(j *Job) { j.Count = MaxTasks }, func(j *Job) { j.Count = MaxTasks + 1 }),
		"no task": of(func(j *Job) { j.Count = 1 }, func(j *Job) { j.Count = 0 }),
		"items": of(
			func(j *Job) { j.Items = make([]Item, 2) }, func(j *Job) { j.Items = make([]Item, 3) }),
		"few items": of(
			func(j *Job) { j.Items = nil }, func(j *Job) { j.Items = make([]Item, 1) }),
		"value": of(
			func(j *Job) { j.Count, j.Items = 1, []Item{{Value: long(maxPath)}} },
			func(j *Job) { j.Count, j.Items = 1, []Item{{Value: long(maxPath + 1)}} }),
		"short ttl": of(func(j *Job) { j.TTL = MinTTL }, func(j *Job) { j.TTL = MinTTL - 1 }),
		"long ttl":  of(func(j *Job) { j.TTL = MaxTTL }, func(j *Job) { j.TTL = MaxTTL + 1 }),
	}
}

func limitsOfPlacing() map[string]limit {
	spec := func(last, first func(*Spec)) limit { return limit{validSpec(last), validSpec(first)} }
	job := func(last, first func(*Job)) limit { return limit{validJob(last), validJob(first)} }
	after := func(ids ...JobID) func(*Job) { return func(j *Job) { j.After = ids } }
	many := slices.Repeat([]JobID{someJob}, MaxAfter)
	held := func(change func(*Spec)) func(*Spec) {
		return func(s *Spec) {
			*s = Spec{Kind: KindReservation, Runtime: 1, Window: Window{At: time.Unix(1, 0)}}
			change(s)
		}
	}
	nothing := held(func(*Spec) {})
	flood := func(change func(*Job)) func(*Job) {
		return func(j *Job) {
			j.Flood = true
			change(j)
		}
	}
	alone := flood(func(*Job) {})
	priority := func(n int) func(*Spec) { return func(s *Spec) { s.Priority = n } }
	comm := func(n int64) func(*Job) { return func(j *Job) { j.CommBytes = n } }
	return map[string]limit{
		"highest priority": spec(priority(MaxPriority), priority(MaxPriority+1)),
		"lowest priority":  spec(priority(-MaxPriority), priority(-MaxPriority-1)),
		"spec's project": spec(func(s *Spec) { s.Project = long(maxProject) },
			func(s *Spec) { s.Project = long(maxProject + 1) }),
		"in a reservation": spec(func(s *Spec) { s.Reservation = someJob },
			func(s *Spec) { s.Reservation = someJob[1:] }),
		"one inside another":  spec(nothing, held(func(s *Spec) { s.Reservation = someJob })),
		"one with arguments":  spec(nothing, held(func(s *Spec) { s.Args = []string{"a"} })),
		"one with inputs":     spec(nothing, held(func(s *Spec) { s.Inputs = make([]Input, 1) })),
		"one with outputs":    spec(nothing, held(func(s *Spec) { s.Outputs = []Output{{Path: "/o"}} })),
		"one with a module":   spec(nothing, held(func(s *Spec) { s.Module.CID = someCID })),
		"one without a start": spec(nothing, held(func(s *Spec) { s.Window = Window{} })),
		"without a module":    spec(func(*Spec) {}, func(s *Spec) { s.Module.CID = "" }),
		"after":               job(after(many...), after(append(many, someJob)...)),
		"after none":          job(after(someJob), after(someJob, "")),
		"split": job(
			func(j *Job) { j.Split = splitKinds },
			func(j *Job) { j.Split = splitKinds + 1 }),
		"flood of parts":     job(alone, flood(func(j *Job) { j.Split = SplitNever })),
		"flood with a start": job(alone, flood(func(j *Job) { j.Spec.Window.At = time.Unix(1, 0) })),
		"flood with an end": job(
			alone, flood(func(j *Job) { j.Spec.Window.Deadline = time.Unix(1, 0) })),
		"communication":    job(comm(maxBytes), comm(maxBytes+1)),
		"no communication": job(comm(0), comm(-1)),
		"an item's input": job(
			func(*Job) {},
			func(j *Job) { j.Items = []Item{{}, {Inputs: make([]Input, 1)}} }),
		"a job's specification": job(func(*Job) {}, func(j *Job) { j.Spec.Runtime = 0 }),
	}
}

func limitsOfWindows() map[string]limit {
	one, two := time.Unix(0, 1), time.Unix(0, 2)
	weights := func(k float64, field int) Weights {
		w := DefaultWeights()
		*[]*float64{&w.C, &w.M, &w.F, &w.P}[field] = k
		return w
	}
	table := map[string]limit{
		"fixed start": {Window{At: one, Deadline: two}, Window{At: one, Deadline: one}},
		"earliest":    {Window{NotBefore: one, Deadline: two}, Window{NotBefore: one, Deadline: one}},
		"two starts":  {Window{At: one}, Window{At: one, NotBefore: one}},
	}
	for i, name := range []string{"computation", "memory", "disk", "potential"} {
		table["weight of "+name] = limit{weights(math.MaxFloat32, i), weights(math.MaxFloat64, i)}
		table["no weight of "+name] = limit{weights(0, i), weights(-math.SmallestNonzeroFloat64, i)}
		table["weightless "+name] = limit{weights(1, i), weights(math.NaN(), i)}
	}
	return table
}

func limitsOfKinds() map[string]limit {
	input := func(n int64) Item { return Item{Inputs: []Input{{Path: "/i", CID: someCID, Bytes: n}}} }
	wait := func(d Dimension, v float64) Coordinate { return Coordinate{Dimension: d, Value: v} }
	amount := func(want, have int64) Refusal {
		return Refusal{Reason: ReasonKind, Want: want, Have: have}
	}
	return map[string]limit{
		"system":       {Capability{OS: long(32)}, Capability{OS: long(33)}},
		"architecture": {Capability{Arch: long(32)}, Capability{Arch: long(33)}},
		"total":        {Capability{}, Capability{Total: Resources{MilliCPUs: -1}}},
		"kinds": {
			Capability{Kinds: []WorkKind{KindWasm, workKinds}},
			Capability{Kinds: []WorkKind{KindWasm, workKinds + 1}},
		},
		"first kind":       {KindWasm, KindWasm - 1},
		"last kind":        {workKinds, workKinds + 1},
		"first cause":      {CauseExited, CauseExited - 1},
		"last cause":       {exitCauses, exitCauses + 1},
		"first reason":     {Refusal{Reason: ReasonNone + 1}, Refusal{Reason: ReasonNone}},
		"last reason":      {Refusal{Reason: reasons}, Refusal{Reason: reasons + 1}},
		"wanted":           {amount(maxBytes, 0), amount(maxBytes+1, 0)},
		"nothing wanted":   {amount(0, 0), amount(-1, 0)},
		"available":        {amount(0, maxBytes), amount(0, maxBytes+1)},
		"none available":   {amount(0, 0), amount(0, -1)},
		"input's size":     {input(maxBytes), input(maxBytes + 1)},
		"empty input":      {input(0), input(-1)},
		"source's size":    {DataSource{Bytes: maxBytes}, DataSource{Bytes: maxBytes + 1}},
		"empty source":     {DataSource{}, DataSource{Bytes: -1}},
		"upload":           {DataSource{UploadBps: maxBytes}, DataSource{UploadBps: maxBytes + 1}},
		"no upload":        {DataSource{}, DataSource{UploadBps: -1}},
		"source's peers":   {DataSource{PotentialBps: maxBytes}, DataSource{PotentialBps: maxBytes + 1}},
		"no peers":         {DataSource{}, DataSource{PotentialBps: -1}},
		"first coordinate": {wait(QueueWait, 0), wait(Availability, 0)},
		"last coordinate":  {wait(lastDimension, 0), wait(lastDimension+1, 0)},
		"far coordinate":   {wait(Price, math.MaxFloat64), wait(Price, math.Inf(1))},
		"negative place":   {wait(Price, 0), wait(Price, -math.SmallestNonzeroFloat64)},
	}
}

func limitsOfRequirements() map[string]limit {
	of := func(last, first func(*Requirement)) limit {
		return limit{validRequirement(last), validRequirement(first)}
	}
	axes := func(a ...Axis) func(*Requirement) { return func(r *Requirement) { r.Axes = a } }
	source := func(change func(*DataSource)) DataSource {
		s := DataSource{Digest: someCID.Digest("home"), Holders: []SiteID{"a"}}
		change(&s)
		return s
	}
	return map[string]limit{
		"requirement's runtime": of(
			func(r *Requirement) { r.Runtime = MaxRuntime },
			func(r *Requirement) { r.Runtime = MaxRuntime + 1 }),
		"requirement's no runtime": of(
			func(r *Requirement) { r.Runtime = 1 }, func(r *Requirement) { r.Runtime = 0 }),
		"os": of(
			func(r *Requirement) { r.OS = long(32) }, func(r *Requirement) { r.OS = long(33) }),
		"arch": of(
			func(r *Requirement) { r.Arch = long(32) }, func(r *Requirement) { r.Arch = long(33) }),
		"requirement's map": of(
			func(r *Requirement) { r.Map = mapKinds }, func(r *Requirement) { r.Map = mapKinds + 1 }),
		"project": of(
			func(r *Requirement) { r.Project = long(maxProject) },
			func(r *Requirement) { r.Project = long(maxProject + 1) }),
		"sources": of(
			func(r *Requirement) { r.Sources = make([]DataSource, maxArgs) },
			func(r *Requirement) { r.Sources = make([]DataSource, maxArgs+1) }),
		"a source": of(
			func(r *Requirement) { r.Sources = []DataSource{{}, {Bytes: maxBytes}} },
			func(r *Requirement) { r.Sources = []DataSource{{}, {Bytes: maxBytes + 1}} }),
		"holders": {
			source(func(s *DataSource) { s.Holders = slices.Repeat([]SiteID{"a"}, MaxHolders) }),
			source(func(s *DataSource) { s.Holders = slices.Repeat([]SiteID{"a"}, MaxHolders+1) }),
		},
		"holder": {
			source(func(s *DataSource) { s.Holders = []SiteID{"a", "b"} }),
			source(func(s *DataSource) { s.Holders = []SiteID{"a", ""} }),
		},
		"unnamed data": {
			source(func(s *DataSource) { s.Digest = "" }),
			source(func(s *DataSource) { s.Digest = "a" }),
		},
		"data's digest": {
			source(func(s *DataSource) { s.Digest = DataDigest(strings.Repeat("a", digestChars)) }),
			source(func(s *DataSource) { s.Digest = DataDigest(strings.Repeat("A", digestChars)) }),
		},
		"last axis":  of(axes(Axis{lastDimension, 1}), axes(Axis{lastDimension + 1, 1})),
		"first axis": of(axes(Axis{Computation, 1}), axes(Axis{Computation - 1, 1})),
		"axis twice": of(
			axes(Axis{lastDimension, 1}, Axis{Computation, 1}),
			axes(Axis{lastDimension, 1}, Axis{lastDimension, 1})),
		"weight": of(
			axes(Axis{Computation, math.MaxFloat32}), axes(Axis{Computation, math.MaxFloat64})),
		"no weight": of(axes(Axis{Computation, 0}), axes(Axis{Computation, -1})),
	}
}

func limitsOfOffers() map[string]limit {
	of := func(last, first func(*Offer)) limit { return limit{validOffer(last), validOffer(first)} }
	further := func(n int) func(*Offer) {
		return func(o *Offer) {
			o.Parts.Further = slices.Repeat([]Coordinate{{Dimension: lastDimension}}, n)
		}
	}
	table := map[string]limit{
		"number": of(func(o *Offer) { o.ID = 1 }, func(o *Offer) { o.ID = 0 }),
		"tasks now": of(
			func(o *Offer) { o.TasksNow = MaxTasks }, func(o *Offer) { o.TasksNow = MaxTasks + 1 }),
		"no task now": of(func(o *Offer) { o.TasksNow = 1 }, func(o *Offer) { o.TasksNow = 0 }),
		"validity": of(
			func(o *Offer) { o.Validity = MaxRuntime }, func(o *Offer) { o.Validity = MaxRuntime + 1 }),
		"no validity": of(func(o *Offer) { o.Validity = 1 }, func(o *Offer) { o.Validity = 0 }),
		"latest start": of(
			func(o *Offer) { o.LatestStart = 0 }, func(o *Offer) { o.LatestStart = -1 }),
		"finish": of(func(o *Offer) { o.Finish = 0 }, func(o *Offer) { o.Finish = -1 }),
		"core": of(
			func(o *Offer) { o.CoreMFLOPS = maxAmount }, func(o *Offer) { o.CoreMFLOPS = maxAmount + 1 }),
		"risk": of(
			func(o *Offer) { o.Parts.Z = 1 }, func(o *Offer) { o.Parts.Z = math.Nextafter(1, 2) }),
		"wait":     of(func(o *Offer) { o.Parts.Wait = 0 }, func(o *Offer) { o.Parts.Wait = -1 }),
		"stage in": of(func(o *Offer) { o.Parts.StageIn = 0 }, func(o *Offer) { o.Parts.StageIn = -1 }),
		"run":      of(func(o *Offer) { o.Parts.Run = 0 }, func(o *Offer) { o.Parts.Run = -1 }),
		"further":  of(further(int(lastDimension)), further(int(lastDimension)+1)),
		"coordinate": of(further(1), func(o *Offer) {
			o.Parts.Further = []Coordinate{{Dimension: Availability}}
		}),
	}
	for name, field := range map[string]func(*Offer) *float64{
		"x": func(o *Offer) *float64 { return &o.Parts.X },
		"y": func(o *Offer) *float64 { return &o.Parts.Y },
		"d": func(o *Offer) *float64 { return &o.Parts.Distance },
	} {
		table[name+" infinite"] = of(
			func(o *Offer) { *field(o) = math.MaxFloat64 }, func(o *Offer) { *field(o) = math.Inf(1) })
		table[name+" negative"] = of(func(o *Offer) { *field(o) = 0 }, func(o *Offer) { *field(o) = -1 })
		table[name+" no number"] = of(func(*Offer) {}, func(o *Offer) { *field(o) = math.NaN() })
	}
	return table
}

func limitsOfExits() map[string]limit {
	of := func(last, first func(*Exit)) limit { return limit{validExit(last), validExit(first)} }
	left := func(n int) func(*Exit) {
		return func(e *Exit) { e.Outputs = slices.Repeat([]Produced{{Path: "/o", CID: someCID}}, n) }
	}
	return map[string]limit{
		"exit's text": of(
			func(e *Exit) { e.Text = long(1 << 10) }, func(e *Exit) { e.Text = long(1<<10 + 1) }),
		"exit's time":    of(func(e *Exit) { e.Wall = 0 }, func(e *Exit) { e.Wall = -1 }),
		"exit's outputs": of(left(maxArgs), left(maxArgs+1)),
		"exit's path": of(left(1), func(e *Exit) {
			e.Outputs = []Produced{{Path: "o", CID: someCID}}
		}),
		"exit's data": of(left(1), func(e *Exit) { e.Outputs = []Produced{{Path: "/o"}} }),
	}
}

func limitsOfResources() map[string]limit {
	table := map[string]limit{}
	for name, f := range resourceFields() {
		most := int64(maxBytes)
		if name == "cores" || name == "computation" {
			most = maxAmount
		}
		table[name+" most"] = limit{f(most), f(most + 1)}
		table[name+" least"] = limit{f(0), f(-1)}
	}
	return table
}

// resourceFields make amounts of one thing each.
func resourceFields() map[string]func(int64) Resources {
	return map[string]func(int64) Resources{
		"cores":       func(n int64) Resources { return Resources{MilliCPUs: n} },
		"memory":      func(n int64) Resources { return Resources{MemoryBytes: n} },
		"disk":        func(n int64) Resources { return Resources{DiskBytes: n} },
		"computation": func(n int64) Resources { return Resources{MFLOPS: n} },
		"bandwidth":   func(n int64) Resources { return Resources{NetBps: n} },
	}
}

// Each field of an amount is reckoned with, and none with another.
func TestResourcesAreReckonedFieldByField(t *testing.T) {
	for name, f := range resourceFields() {
		if got := f(5).Add(f(3)); got != f(8) {
			t.Errorf("%s: 5 + 3 = %+v", name, got)
		}
		if got := f(5).Sub(f(3)); got != f(2) {
			t.Errorf("%s: 5 - 3 = %+v", name, got)
		}
		if got, turned := f(5).Min(f(3)), f(3).Min(f(5)); got != f(3) || turned != f(3) {
			t.Errorf("%s: the smaller of 5 and 3 is %+v, %+v", name, got, turned)
		}
		if !f(5).Fits(f(5)) || f(5).Fits(f(6)) {
			t.Errorf("%s: 5 fits 5 = %t, 6 = %t", name, f(5).Fits(f(5)), f(5).Fits(f(6)))
		}
		if f(1).IsZero() || !f(0).IsZero() {
			t.Errorf("%s: 1 is nothing = %t, 0 is nothing = %t", name, f(1).IsZero(), f(0).IsZero())
		}
	}
	want := Resources{MilliCPUs: 10, MemoryBytes: 16 << 20, DiskBytes: 1 << 20}
	if got := (Resources{}).Counted(); got != want {
		t.Errorf("nothing counts as %+v, want %+v", got, want)
	}
	more := want.Add(Resources{MilliCPUs: 1, MemoryBytes: 1, DiskBytes: 1, MFLOPS: 1, NetBps: 1})
	large := Resources{DiskBytes: 64 << 30}
	if got := large.MayLeave(); got != 65<<30+64<<20 {
		t.Errorf("a task that may write %d bytes may leave %d", large.DiskBytes, got)
	}
	if got := more.Counted(); got != more {
		t.Errorf("%+v counts as %+v", more, got)
	}
}

func TestTaskIDsAreReadBack(t *testing.T) {
	for text, want := range map[string]TaskID{
		string(someJob):                 {Job: someJob},
		string(someJob) + ".7":          {Job: someJob, Index: 7},
		string(someJob) + ".4294967295": {Job: someJob, Index: math.MaxUint32},
	} {
		if got, err := ParseTaskID(text); got != want || err != nil {
			t.Errorf("ParseTaskID(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "short", string(someJob) + ".", string(someJob) + ".4294967296",
	} {
		if got, err := ParseTaskID(text); !errors.Is(err, ErrInvalid) || got != (TaskID{}) {
			t.Errorf("ParseTaskID(%q) = %v, %v, want an error and nothing", text, got, err)
		}
	}
}

func TestWordsOfPlacing(t *testing.T) {
	if s, e := OverrunStop.String(), OverrunSuspend.String(); s != "stop" || e != "suspend" {
		t.Errorf("overrun: %q and %q", s, e)
	}
	for s, want := range map[Split]string{
		SplitNone: "", SplitNever: "never", SplitIfNeeded: "if-needed", SplitGreedy: "greedy",
		splitKinds + 1: "",
	} {
		if got := s.String(); got != want {
			t.Errorf("split %d is %q, want %q", s, got, want)
		}
	}
}

func TestSizesHaveTheUnitThatSuits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1024.0 KiB",
		1 << 20: "1.0 MiB", 1 << 30: "1.0 GiB", 1 << 40: "1.0 TiB", 1 << 50: "1.0 PiB",
		1 << 60: "1024.0 PiB",
	} {
		if got := FormatBytes(n); got != want {
			t.Errorf("FormatBytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// A task is named in decimal, and its attempts count up to a million.
func TestNamesOfAttempts(t *testing.T) {
	for index, want := range map[uint32]string{
		0: ".0", 9: ".9", 10: ".10", 4294967295: ".4294967295",
	} {
		id := TaskID{Job: someJob, Index: index}
		if got := id.String(); got != string(someJob)+want {
			t.Errorf("task %d is %q", index, got)
		}
		if back, err := ParseTaskID(id.String()); back != id || err != nil {
			t.Errorf("%q is read as %v, %v", id, back, err)
		}
	}
	attempt := AttemptID{Task: TaskID{Job: someJob}, Token: 12}
	if got := attempt.String(); got != string(someJob)+".0#12" {
		t.Errorf("an attempt is %q", got)
	}
	for _, run := range []uint64{0, 1, 1 << 33} {
		for _, number := range []Token{1, 2, 1<<tokenBits - 1} {
			token := TokenOf(run, number)
			if token.Number() != number || token>>tokenBits != Token(run) {
				t.Errorf("token %d of run %d is %d", number, run, token)
			}
		}
	}
}

func TestAttemptIDsAreReadBack(t *testing.T) {
	for _, id := range []AttemptID{
		{Task: TaskID{Job: someJob}, Token: 1},
		{Task: TaskID{Job: someJob, Index: 4294967295}, Token: math.MaxUint64},
	} {
		if got, err := ParseAttemptID(id.String()); got != id || err != nil {
			t.Errorf("ParseAttemptID(%q) = %v, %v", id, got, err)
		}
	}
	for _, text := range []string{
		"", "#1", string(someJob) + ".0", string(someJob) + ".0#", string(someJob) + ".0#0",
		string(someJob) + ".0#x", string(someJob) + ".0#18446744073709551616", "short.0#1",
		string(someJob) + ".x#1", string(someJob) + ".0#-1",
	} {
		if got, err := ParseAttemptID(text); !errors.Is(err, ErrInvalid) || got != (AttemptID{}) {
			t.Errorf("ParseAttemptID(%q) = %v, %v, want an error and nothing", text, got, err)
		}
	}
}

// SAA refuses jobs for too many nodes, NAA orders by who stays, NSA does both.
func TestWhatAvailabilityDoes(t *testing.T) {
	for p, want := range map[AvailPolicy]struct {
		word           string
		admits, orders bool
	}{
		AvailNone: {"none", false, false}, AvailSAA: {"saa", true, false},
		AvailNAA: {"naa", false, true}, AvailNSA: {"nsa", true, true},
		AvailNSA + 1: {"unknown", false, false},
	} {
		if p.String() != want.word || p.Admits() != want.admits || p.Orders() != want.orders {
			t.Errorf("%s: admits %t, orders %t", p, p.Admits(), p.Orders())
		}
		if back, err := ParseAvailPolicy(want.word); p <= AvailNSA && (back != p || err != nil) ||
			p > AvailNSA && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is read as %d, %v", want.word, back, err)
		}
	}
}
