package config

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// The headings that settings stand under in help.
const (
	topicSite       = "this site"
	topicMembers    = "who takes part"
	topicController = "reservations when a site of the domain fails"
	topicNetwork    = "how sites reach each other"
	topicGiven      = "what you give"
	topicOwner      = "your own work comes first"
	topicPlanning   = "jobs of others, and what they are promised"
	topicPlacing    = "your own jobs"
	topicInterface  = "interface and log"
)

// agentSettings is the table of all settings of an agent, in the order of files and
// of help.
func agentSettings() []setting[Agent] {
	return slices.Concat(
		under(topicSite, siteSettings()...),
		under(topicMembers, memberSettings()...),
		under(topicController, controlSettings()...),
		under(topicNetwork, networkSettings()...),
		under(topicGiven, givenSettings()...),
		under(topicOwner, ownerSettings()...),
		under(topicPlanning, planningSettings()...),
		under(topicPlacing, placingSettings()...),
		under(topicInterface, interfaceSettings()...),
	)
}

func siteSettings() []setting[Agent] {
	return []setting[Agent]{
		key("preset", "where the other defaults come from; wan is made for a site behind a router",
			func(a *Agent) *string { return &a.Preset },
			asWord(PresetLAN, PresetWAN, PresetTest)).documented(),
		key("name", "the site's name, for people",
			func(a *Agent) *string { return &a.Name }, asText[string]()).documented(),
		key("state", "directory of identity, jobs and data",
			func(a *Agent) *string { return &a.StateDir }, asText[string]()),
	}
}

func memberSettings() []setting[Agent] {
	return []setting[Agent]{
		key("domain", "the domain to be a member of",
			func(a *Agent) *grid.DomainID { return &a.Domain }, asText[grid.DomainID]()).documented(),
		key("domain-key", "public key of the domain, whose list of members is believed; join writes it",
			func(a *Agent) *grid.DomainKey { return &a.DomainKey }, asText[grid.DomainKey]()).documented(),
		key("peers", "IDs of sites that may take part without an invitation",
			func(a *Agent) *[]grid.SiteID { return &a.Peers }, asList[grid.SiteID]()).documented(),
		key("accept", "who may take part; anyone implies that only WASM is run",
			func(a *Agent) *string { return &a.Accept }, asWord(acceptListed, acceptAnyone)).documented(),
	}
}

func controlSettings() []setting[Agent] {
	return []setting[Agent]{
		key("controller.found", "with the domain's key: have three members run a controller",
			func(a *Agent) *bool { return &a.Control.Found }, asBool()),
		key("controller.accept", "whether this site may be one of these three",
			func(a *Agent) *string { return &a.Control.Accept },
			asWord(StandbyDomain, standbyNone)),
		key("controller.weight", "by which the load of failed sites counts more (zeta)",
			func(a *Agent) *int64 { return &a.Control.WeightMilli }, asMilli()),
		key("controller.share", "part of full load from which on the domain is busy, 0 to 1 (eta)",
			func(a *Agent) *float64 { return &a.Control.Share }, asPart()),
		key("controller.slot", "time in which load is looked at",
			func(a *Agent) *time.Duration { return &a.Control.Slot }, asSpan()),
		key("controller.all-nodes", "full load is that of all sites, the failed ones included",
			func(a *Agent) *bool { return &a.Control.AllNodes }, asBool()),
		key("controller.fines", "SITE=NUMBER of submitters whose places are saved first",
			func(a *Agent) *map[grid.SiteID]float64 { return &a.Control.Fines }, asFines()),
		key("controller.prices", "what leaves goes to the cheapest site that has space for it",
			func(a *Agent) *bool { return &a.Control.Prices }, asBool()),
	}
}

func networkSettings() []setting[Agent] {
	return []setting[Agent]{
		key("listen", "multiaddrs to listen on; 127.0.0.1 is this machine alone",
			func(a *Agent) *[]string { return &a.Listen }, asList[string]()).documented(),
		key("bootstrap", "multiaddrs, each with /p2p/ID, of sites to dial first",
			func(a *Agent) *[]string { return &a.Bootstrap }, asList[string]()).documented(),
		key("mdns", "find members on the local network by multicast",
			func(a *Agent) *bool { return &a.MDNS }, asBool()).documented(),
		key("nat.relay", "behind a router: use relays of members, or serve as one",
			func(a *Agent) *string { return &a.NAT.Relay },
			asWord(relayOff, relayUse, relayServe, relayAuto)).documented(),
		key("nat.punch", "make relayed connections direct",
			func(a *Agent) *bool { return &a.NAT.Punch }, asBool()),
		key("nat.map-port", "ask the router by UPnP or NAT-PMP to forward the port",
			func(a *Agent) *bool { return &a.NAT.MapPort }, asBool()),
		key("nat.reachability", "whether others can dial this site; auto finds out",
			func(a *Agent) *string { return &a.NAT.Reachability },
			asWord(reachAuto, reachPublic, reachPrivate)),
		key("dht", "ask members for the addresses of members that cannot be reached",
			func(a *Agent) *bool { return &a.DHT }, asBool()),
		key("lease.length", "how long a site runs on without hearing from the submitter",
			func(a *Agent) *time.Duration { return &a.Lease.Length }, asSpan()),
		key("lease.margin", "what the submitter adds to a lease before a task moves",
			func(a *Agent) *time.Duration { return &a.Lease.Margin }, asSpan()),
		key("lease.reserved", "how long a site that is away keeps reservations before they move",
			func(a *Agent) *time.Duration { return &a.Lease.Reserved }, asSpan()),
	}
}

func givenSettings() []setting[Agent] {
	return []setting[Agent]{
		key("ceilings.cpus", "cores that jobs get at most; 0 = three quarters of all",
			func(a *Agent) *int64 { return &a.Ceilings.MilliCPUs }, asMilli()).documented().live(),
		key("ceilings.memory", "memory that jobs get at most; 0B = half of it",
			func(a *Agent) *int64 { return &a.Ceilings.MemoryBytes }, asSize()).documented().live(),
		key("ceilings.disk", "scratch space that jobs get at most; 0B = a quarter of what is free",
			func(a *Agent) *int64 { return &a.Ceilings.DiskBytes }, asSize()).documented().live(),
		key("ceilings.gflops", "computation that jobs get at most, in GFLOPS; 0 = what is measured",
			func(a *Agent) *int64 { return &a.Ceilings.MFLOPS }, asMilli()).live(),
		key("rates.down", "most that data takes of your line, towards this site",
			func(a *Agent) *int64 { return &a.Rates.DownBps }, asRate()).documented().live(),
		key("rates.up", "most that data takes of your line, away from this site",
			func(a *Agent) *int64 { return &a.Rates.UpBps }, asRate()).documented().live(),
		key("rates.disk", "rate of the local disk; 0bit/s = measure it",
			func(a *Agent) *int64 { return &a.Rates.DiskBps }, asRate()),
		key("rates.probe", "measure links that carried no data yet; 1.25 MiB a minute at most",
			func(a *Agent) *bool { return &a.Rates.Probe }, asBool()),
		key("data.quota", "most data that is kept on disk",
			func(a *Agent) *int64 { return &a.Data.QuotaBytes }, asSize()).documented(),
		key("data.keep", "how long results of own jobs are kept after a job's end",
			func(a *Agent) *time.Duration { return &a.Data.Keep }, asSpan()),
		key("kinds", "work that this site runs: wasm, or wasm,command",
			func(a *Agent) *[]grid.WorkKind { return &a.Kinds }, asKinds()).documented(),
		key("signers", "run only work that one of these has signed: NAME=KEY, then wasm, command "+
			"or neither; empty = signed or not",
			func(a *Agent) *[]grid.Signer { return &a.Signers }, asSigners()).live(),
		key("sandbox", "what commands run in",
			func(a *Agent) *string { return &a.Sandbox },
			asWord(sandboxAuto, sandboxBubblewrap, sandboxGVisor)),
		key("commands", "bounded: only where the kernel holds all they take, files in memory; "+
			"unbounded: what it does not hold is watched by looking, files on the disk",
			func(a *Agent) *string { return &a.Commands },
			asWord(CommandsBounded, CommandsUnbounded)),
		key("price", "asked for an hour of a core, in your domain's unit; empty = none",
			func(a *Agent) *price { return &a.Price }, asPrice()).live(),
	}
}

func ownerSettings() []setting[Agent] {
	return []setting[Agent]{
		key("owner.yield", "freeze jobs while you use the machine",
			func(a *Agent) *bool { return &a.Owner.Yield }, asBool()).documented().live(),
		key("owner.hours", `share only then: "mon-fri 18:00-08:00, `+
			`mon-fri 08:00-18:00 25%"; empty = always`,
			func(a *Agent) *yield.Hours { return &a.Owner.Hours }, asHours()).documented().live(),
		key("owner.battery", "share the machine also while it runs on battery",
			func(a *Agent) *bool { return &a.Owner.Battery }, asBool()).documented().live(),
		key("owner.metered",
			"share the machine also while data costs money, as NetworkManager tells",
			func(a *Agent) *bool { return &a.Owner.Metered }, asBool()).live(),
		key("owner.heat",
			"degrees Celsius of the processors from which on jobs are frozen; 0 = any",
			func(a *Agent) *int64 { return &a.Owner.Heat }, asCount[int64]("number")).live(),
		key("owner.input", "pause while keyboard or mouse are in use, as logind or X tell",
			func(a *Agent) *bool { return &a.Owner.Input }, asBool()).live(),
		key("in-use.cpus", "instead: percent of the cores while keyboard or mouse are in use",
			func(a *Agent) *int64 { return &a.Owner.InUse.CPUs }, asCount[int64]("percent")).live(),
		key("in-use.memory", "likewise, of the memory; what does not fit is frozen and moves",
			func(a *Agent) *int64 { return &a.Owner.InUse.Memory },
			asCount[int64]("percent")).live(),
		key("in-use.down", "likewise, most that data takes towards this site; 0bit/s = as always",
			func(a *Agent) *int64 { return &a.Owner.InUse.DownBps }, asRate()).live(),
		key("in-use.up", "likewise, away from this site; 0bit/s = as always",
			func(a *Agent) *int64 { return &a.Owner.InUse.UpBps }, asRate()).live(),
		key("owner.hook", "program of yours and arguments, asked each 10 s: "+
			"exit 0 shares, 1 pauses, and it prints why",
			func(a *Agent) *[]string { return &a.Owner.Hook }, asList[string]()).live(),
		key("owner.remote", "IDs of the sites that may look at this one from afar, "+
			"pause it and end that pause",
			func(a *Agent) *[]grid.SiteID { return &a.Owner.Remote }, asList[grid.SiteID]()).live(),
		key("owner.reserve", "cores that stay free beside what you use",
			func(a *Agent) *int64 { return &a.Owner.ReserveMilli }, asMilli()).live(),
		key("owner.free-disk",
			"disk that stays free; with less nothing starts, and running jobs are frozen",
			func(a *Agent) *int64 { return &a.Owner.FreeDisk }, asSize()).live(),
		key("owner.patience", "jobs that are frozen for so long move to another site",
			func(a *Agent) *time.Duration { return &a.Owner.Patience }, asSpan()).live(),
		key("owner.move-after",
			"the same for jobs that go on from a checkpoint, where another site offers",
			func(a *Agent) *time.Duration { return &a.Owner.MoveAfter }, asSpan()).live(),
		key("owner.priority", "of jobs: idle = only what nobody else wants, low = a small share",
			func(a *Agent) *string { return &a.Owner.Priority }, asWord(PriorityIdle, priorityLow)),
		key("owner.name", "who owns this machine: copies of a task go to different owners; "+
			"empty = it is your only one",
			func(a *Agent) *string { return &a.Owner.Name }, asText[string]()),
		key("owner.look", "pause between two looks at what other programs leave; 0s = never look",
			func(a *Agent) *time.Duration { return &a.Owner.Look }, asSpan()),
		key("owner.root", "where the machine's proc and sys are, for an agent in a container",
			func(a *Agent) *string { return &a.Owner.Root }, asText[string]()),
	}
}

func planningSettings() []setting[Agent] {
	return []setting[Agent]{
		key("jobs.max-runtime", "longest estimated run time that is accepted",
			func(a *Agent) *time.Duration { return &a.Jobs.MaxRuntime }, asSpan()).documented().live(),
		key("planning.policy", "order in which waiting jobs move up",
			func(a *Agent) *string { return &a.Planning.Policy },
			asWord(grid.Policies()...)).live(),
		key("planning.backfill",
			"how gaps are filled: nobody is delayed, the first is not, or not at all",
			func(a *Agent) *string { return &a.Planning.Backfill },
			asWord(grid.Backfills()...)).live(),
		key("planning.ahead", "how far ahead others are promised anything",
			func(a *Agent) *time.Duration { return &a.Planning.Ahead }, asSpan()).live(),
		key("planning.longest", "longest reservation of others",
			func(a *Agent) *time.Duration { return &a.Planning.Longest }, asSpan()).live(),
		key("planning.horizon", "what is planned beyond it is not displaced by an outage",
			func(a *Agent) *time.Duration { return &a.Planning.Horizon }, asSpan()),
		key("planning.promised", "percent of what is given that promises hold together at most",
			func(a *Agent) *int64 { return &a.Planning.Promised }, asCount[int64]("percent")),
		key("planning.strangers", "percent for promises to others where accept is anyone; 0 = no limit",
			func(a *Agent) *int64 { return &a.Planning.Strangers }, asCount[int64]("percent")),
		key("planning.submitter", "percent that one other submitter holds at one time; 0 = no limit",
			func(a *Agent) *int64 { return &a.Planning.Submitter }, asCount[int64]("percent")),
		key("planning.project", "percent that one project holds at one time; 0 = no limit",
			func(a *Agent) *int64 { return &a.Planning.Project }, asCount[int64]("percent")),
		key("planning.fairshare", "promises begin behind everything that waits already",
			func(a *Agent) *bool { return &a.Planning.Fairshare }, asBool()),
		key("planning.overestimate", "part by which run times are known to be overestimated, 0 to 0.9",
			func(a *Agent) *float64 { return &a.Planning.Overestimate }, asPart()),
		key("placing.hold-all", "every offer of this site holds its capacity",
			func(a *Agent) *bool { return &a.Placing.HoldAll }, asBool()),
	}
}

func placingSettings() []setting[Agent] {
	return []setting[Agent]{
		key("placing.choice", "which offer is taken: the nearest, or by chance among the nearest eight",
			func(a *Agent) *string { return &a.Placing.Choice }, asWord(choiceNearest, ChoiceSoftMin)),
		key(
			"placing.failover",
			"site on which failed tasks go on: lowest risk, or lowest fault index",
			func(a *Agent) *string { return &a.Placing.Failover },
			asWord(failoverRisk, FailoverFIBR),
		),
		key("placing.statements",
			"faults of sites: also those heard from other submitters, or own ones only",
			func(a *Agent) *string { return &a.Placing.Statements },
			asWord(statementsShare, StatementsOwn)),
		key("placing.fault-half-life", "time in which a fault counts for half",
			func(a *Agent) *time.Duration { return &a.Placing.FaultHalfLife }, asSpan()),
		key("placing.replies", "answers asked for in a mesh of hundreds of sites; 0 = all",
			func(a *Agent) *int { return &a.Placing.Replies }, asCount[int]("number")),
		key("placing.policy", "what availability does to your jobs, beyond its share in distance",
			func(a *Agent) *string { return &a.Placing.Policy },
			asWord(grid.AvailPolicies()...)),
		key("standby.count", "other agents, 0 or 2, that go on with your jobs if this one is lost",
			func(a *Agent) *int { return &a.Standby.Count }, asCount[int]("number")).documented(),
		key("standby.accept", "whose jobs this site goes on with if their agent is lost",
			func(a *Agent) *string { return &a.Standby.Accept },
			asWord(StandbyDomain, standbyNone)),
		key("standby.data", "most that is kept here of the inputs of one other owner's jobs",
			func(a *Agent) *int64 { return &a.Standby.DataBytes }, asSize()),
		key("history.keep", "how long own jobs are kept after their end; submit list shows them",
			func(a *Agent) *time.Duration { return &a.History.Keep }, asSpan()),
		key("history.size", "most that is kept of own jobs that have ended, their data left out",
			func(a *Agent) *int64 { return &a.History.SizeBytes }, asSize()),
	}
}

func interfaceSettings() []setting[Agent] {
	return []setting[Agent]{
		key("api.listen", "loopback TCP address of the agent's interface; empty = none",
			func(a *Agent) *string { return &a.API.Listen }, asText[string]()).documented(),
		key("tes.images", "images of workflow engines' tasks whose programs the sites have, such as "+
			`"python:3*"; * = any text; empty = no tasks`,
			func(a *Agent) *[]string { return &a.TES.Images }, asList[string]()),
		key("tes.files", "directories whose files workflow engines' tasks may read and write",
			func(a *Agent) *[]string { return &a.TES.Files }, asList[string]()),
		key("tes.mounts", "directories in those of tes.files in which a task may also change and "+
			"delete what its inputs are",
			func(a *Agent) *[]string { return &a.TES.Mounts }, asList[string]()),
		key("tes.urls", "beginnings of the addresses that workflow engines' tasks may read, "+
			"such as https://data.example.org/public/",
			func(a *Agent) *[]string { return &a.TES.URLs }, asList[string]()),
		key("log.level", "how much the agent logs",
			func(a *Agent) *string { return &a.Log.Level },
			asWord("debug", "info", "warn", "error")).documented().live(),
		key("log.format", "how log lines are written",
			func(a *Agent) *string { return &a.Log.Format }, asWord("text", "json")),
		key("api.socket", "Unix socket of the agent's interface; off = none",
			func(a *Agent) *string { return &a.API.Socket }, asText[string]()),
		key("api.token-file", "file of the bearer token for TCP; empty = api.token below state",
			func(a *Agent) *string { return &a.API.TokenFile }, asText[string]()),
		key("api.debug", "serve /debug/pprof",
			func(a *Agent) *bool { return &a.API.Debug }, asBool()),
	}
}

func submitSettings() []setting[Submit] {
	return []setting[Submit]{
		key("addr", "agent to talk to: a socket's path or http://HOST:PORT",
			func(s *Submit) *string { return &s.Addr }, asText[string]()),
		key("token", "bearer token for a TCP address",
			func(s *Submit) *Secret { return &s.Token }, asText[Secret]()),
		key("domain", "domain the agent must belong to",
			func(s *Submit) *string { return &s.Domain }, asText[string]()),
		key("output", "table, wide, json, yaml or name",
			func(s *Submit) *string { return &s.Output }, asText[string]()),
		key("runtime", "estimate for jobs that give none",
			func(s *Submit) *time.Duration { return &s.Runtime }, asSpan()),
	}
}
