package main

import "github.com/spf13/pflag"

// placingFlags are the flags of run that say when, after what, in what and beside
// whom a job runs.
type placingFlags struct {
	at, notBefore, deadline, priority, reservation, project, overrun, split, communication string

	checkpoint, retries, maxFailures string
	replicas, agreement, verify      string
	after                            []string
	flood, encrypt                   bool
}

func (f *placingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.at, "at", "", `start exactly then, such as 14:00, "tomorrow 09:00" or +30s`)
	flags.StringVar(&f.notBefore, "not-before", "", "earliest start, such as 14:00")
	flags.StringVar(&f.deadline, "deadline", "", "latest end, such as 18:00")
	flags.StringVar(&f.priority, "priority", "",
		"among your own jobs, higher goes first, -1000 to 1000")
	flags.StringSliceVar(&f.after, "after", nil, "start when these jobs are done")
	flags.StringVar(&f.reservation, "reservation", "", "run in this reservation")
	flags.StringVar(&f.project, "project", "", "whose share of a site it counts against")
	flags.StringVar(&f.overrun, "overrun", "",
		"when it runs for too long and its place is promised: suspend or stop")
	flags.StringVar(&f.checkpoint, "checkpoint", "",
		"when its state is saved to go on from elsewhere: auto, off, every 5m, "+
			"lfca every 5m, mfca every 5m or transparent")
	flags.StringVar(&f.split, "split", "",
		"the tasks are parts that run together: never, if-needed or greedy")
	flags.StringVar(&f.communication, "communication", "",
		"what each part exchanges with the others, such as 10MiB")
	flags.StringVar(&f.retries, "retries", "",
		"how often a task that fails by itself runs again, elsewhere where it can")
	flags.StringVar(&f.maxFailures, "max-failures", "",
		"stop the job when so many of its tasks have failed")
	flags.StringVar(&f.replicas, "replicas", "",
		"run each task in so many copies on different sites, 1 to 8; auto: two until "+
			"a site is trusted")
	flags.StringVar(&f.agreement, "agreement", "",
		"how many of the replicas have to give the same result; default 1: the first "+
			"that ends well")
	flags.StringVar(&f.verify, "verify", "",
		"compare that part of the results, such as .02, with those of another site")
	encryptFlag(flags, &f.encrypt)
	flags.BoolVar(&f.flood, "flood", false,
		"queue it at several sites; the first whose turn it is runs it")
}

// encryptFlag is for commands that make a job file of flags.
func encryptFlag(flags *pflag.FlagSet, encrypt *bool) {
	flags.BoolVar(encrypt, "encrypt", false,
		"encrypt what it reads and leaves, so that only the sites that run it can read that")
}

// given is a flag's value and where it belongs in a job file.
type given struct {
	into        map[string]any
	name, value string
}

// writeGiven writes the values that are not empty.
func writeGiven(flags []given) {
	for _, g := range flags {
		if g.value != "" {
			g.into[g.name] = g.value
		}
	}
}

// write adds the flags that were given to a job file.
func (f *placingFlags) write(doc map[string]any) {
	start := map[string]any{}
	writeGiven([]given{
		{start, "at", f.at},
		{start, "notBefore", f.notBefore},
		{doc, "deadline", f.deadline},
		{doc, "priority", f.priority},
		{doc, "reservation", f.reservation},
		{doc, "project", f.project},
		{doc, "overrun", f.overrun},
		{doc, "checkpoint", f.checkpoint},
		{doc, "split", f.split},
		{doc, "communication", f.communication},
		{doc, "retries", f.retries},
		{doc, "max-failures", f.maxFailures},
		{doc, "replicas", f.replicas},
		{doc, "agreement", f.agreement},
		{doc, "verify", f.verify},
	})
	if len(start) > 0 {
		doc["start"] = start
	}
	if len(f.after) > 0 {
		doc["after"] = f.after
	}
	if f.encrypt {
		doc["encrypt"] = "true"
	}
	if f.flood {
		doc["placing"] = "flood"
	}
}
