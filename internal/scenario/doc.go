// Package scenario is the one format in which a story about a mesh is told:
// which sites there are, what the network does to messages, what happens when,
// and what must be true at the end. The same text is played in the simulation
// and on the real stack; both give an Outcome, and the same expectations judge
// it.
//
// A scenario is a text of lines; # begins a comment. Sites are named s0, s1, ...
// in the order in which they are written.
//
//	sites   n=8 cores=2..9 gflops=8..36 mem=4GiB uplink=10Mbps domain=a
//	link    a=a b=b give=50 tasks=4 hops=1      # the gateway of each is its first site
//	link    a=b b=c cut=1m for=30s              # nothing crosses for a while
//	link    a=a b=c beside=yes                  # each is asked together with the other's members
//	net     latency=2ms jitter=1ms loss=.1 duplicate=.1 reorder=.1
//	clock   site=s3 skew=5m
//	submit  job=j1 at=1s by=s0 count=10 gflops=4 mem=256MiB run=20s data=8MiB ttl=1s
//	submit  job=j0 at=1s by=s0 run=20s takes=5m             # estimated at 20 s, and wrong
//	submit  job=j2 at=2s by=s0 run=20s start=1m             # starts then, at no other time
//	submit  job=j3 at=2s by=s0 run=20s notbefore=30s deadline=2m
//	submit  job=r at=3s by=s0 cpus=2 start=1m reserve=30s   # holds capacity, runs nothing
//	submit  job=j4 at=4s by=s0 run=5s reservation=r
//	submit  job=j5 at=4s by=s0 run=5s after=j1,j2
//	submit  job=j6 at=5s by=s0 count=9 split=if-needed      # its tasks are parts that run together
//	submit  job=j7 at=5s by=s0 map=seconds placing=flood    # several sites queue it
//	submit  job=j8 at=5s by=s0 jobs=100 disk=2GiB           # so many jobs, named j8#1 and up
//	submit  job=j9 at=5s by=s0 unattended=finish            # goes on while its submitter is away
//	submit  job=j10 at=5s by=s0 wait=no                     # is refused if it has no place now
//	crash   site=s3 at=95s for=10s              # kill -9, restarted after 10 s
//	crash   site=s3 at=95s for=10s amid=step    # killed before it has done all it decided
//	isolate site=s2 at=30s for=60s              # cut off from all others, runs on
//	silent  site=s1 at=30s for=10s              # hears everything, answers nothing
//	pause   site=s1 at=0s for=20s               # its owner wants no work
//	busy    site=s1 at=30s for=60s              # its owner uses the machine: jobs are suspended
//	cancel  job=j1 at=40s
//	migrate job=j1 at=40s
//	suspend site=s2 at=30s for=5m               # a laptop that is shut
//	cut     site=s1 at=30s for=1m to=s2         # one way; further words: see Troubles
//	liar    site=s4 at=0s how=hold              # accepts, renews and runs nothing
//	run     for=30m seed=42
//	expect  lost=0 doubled=0 done=10 cache_hits>0
//	expect  job=j1 within=2m moves>=1 token=2 first=s3 site!=s3
//	expect  at=s3 awards<=2 faults>=1
//	expect  order=j1,j2
//
// All times count from the scenario's beginning. A range a..b spreads a value evenly
// over the sites of its line. An event without for lasts to the end. A submission's
// net=2Mbps is of the link that each task's data may take; limit=2m stops a task that
// runs longer, and with output=yes it declares what it leaves. What can be expected is
// listed at Measures.
//
//	scenario.go    Scenario: sites, network, events
//	submission.go  jobs, and when they are submitted
//	trouble.go     what else can be wrong with a site
//	parse.go       the text read, a line at a time
//	link.go        Link: domains that are linked
//	parsejob.go    the lines that submit
//	line.go        one line: its keys, and errors with their place
//	words.go       what the words mean, for people
//	value.go       times, sizes, rates and ranges
//	format.go      the text written
//	expect.go      what can be expected, and whether it came so
//	outcome.go     the outcome of a run: counters, jobs, tasks
//	experiment.go  Experiment: grids and jobs drawn for each seed, strategies compared
//	experiment_mesh.go ... what its mesh is told, cores of several speeds, bursts
//	failing.go     ... and rules for checkpoints on resources that fail
//	remapping.go   ... and rules for reservations on machines that fail
//	logpart.go     ... jobs from the log of a real machine
//	setting.go     ... its text with other values
//	forecast.go    Forecast: strategies that forecast how many sites will be up
//	failures.go    FailureSetting: how sites fail in an experiment, and what strategies do about it
package scenario
