package standby

import (
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// schedules are those of "What must be shown" in the design of standbys.
func schedules() []schedule {
	return []schedule{
		{
			name: "a follower deaf to the leader, then the leader isolated", safeguard: "rule 6",
			out: noConfirm,
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				w.part(m.host, w.others(m)[0].host, true)
				w.run(1500 * time.Millisecond)
				w.splitWith(m, busy)
				w.run(12 * time.Second)
			},
		},
		{
			name: "the same with a higher term of a third member in between", safeguard: "rule 6",
			out: noConfirm,
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				rest := w.others(m)
				for _, other := range rest {
					w.part(m.host, other.host, true)
				}
				w.drops = func(_, _ *host, payload any) bool {
					r := raftMessage(payload)
					return r != nil && r.GetType() == pb.MsgVote
				}
				w.run(1600 * time.Millisecond)
				w.drops = nil
				w.part(m.host, rest[0].host, false)
				w.run(20 * time.Millisecond)
				w.splitWith(m, busy)
				w.run(12 * time.Second)
			},
		},
		{
			name: "restart of a voter just before the vote", safeguard: "rule 6",
			out: noConfirm,
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				voter := w.others(m)[0]
				w.splitWith(m, busy)
				w.run(950 * time.Millisecond)
				voter.crash()
				voter.start()
				w.run(12 * time.Second)
			},
		},
		{
			name: "suspend of the leader, requests in its queue", safeguard: "rule 6",
			out: noConfirm,
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				w.splitWith(m, busy)
				m.suspend(2500 * time.Millisecond)
				w.run(12 * time.Second)
			},
		},
		{
			name:      "a token handed out whose entry reaches nobody, while heartbeats do",
			safeguard: "rule 2", out: func(w *world) { w.cfg.off.commit = true },
			play: func(w *world) {
				m := w.leader()
				w.drops = func(from, _ *host, payload any) bool {
					return from == m.host && bearsEntries(payload)
				}
				w.user.tasks++
				w.user.submit(w.user.tasks - 1)
				w.splitWith(m, w.busy())
				w.run(12 * time.Second)
			},
		},
		{
			name: "transfer, then cut", safeguard: "rule 14 (machine thrown away), rule 6 out",
			both: noConfirm,
			out:  func(w *world) { w.cfg.off.throwAway = true },
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				w.hand(m)
				w.run(5 * time.Millisecond)
				w.splitWith(m, busy)
				w.run(12 * time.Second)
			},
		},
		{
			name:      "an aborted transfer whose MsgTimeoutNow comes late",
			safeguard: "rule 14 (raft rebuilt), rule 6 out", both: noConfirm,
			out: func(w *world) { w.cfg.off.rebuild = true },
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				w.lags = func(_, _ *host, payload any) time.Duration {
					if r := raftMessage(payload); r != nil && r.GetType() == pb.MsgTimeoutNow {
						return 3 * time.Second
					}
					return 0
				}
				w.hand(m)
				w.run(2500 * time.Millisecond)
				w.splitWith(m, busy)
				w.run(12 * time.Second)
			},
		},
		{
			name:      "suspend of the leader between check and send, messages stuck",
			safeguard: "leases count from the request",
			out:       func(w *world) { w.off.fromAsk = true },
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				w.lags = func(from, _ *host, payload any) time.Duration {
					if from == m.host && isLease(payload) {
						return 7 * time.Second
					}
					return 0
				}
				w.run(1100 * time.Millisecond)
				w.splitWith(m, busy)
				m.suspend(8 * time.Second)
				w.run(12 * time.Second)
			},
		},
		{
			name:      "suspend of a site with queued grants",
			safeguard: "leases count from the request",
			out:       func(w *world) { w.off.fromAsk = true },
			play: func(w *world) {
				w.leader()
				busy := w.busy()
				// The site's request is out, its answer finds it suspended.
				w.onFirst(isLease, func(_, to *host) {
					for _, s := range busy {
						if s.host == to {
							w.after(0, func() { s.suspend(6 * time.Second) })
						}
					}
				})
				w.run(12 * time.Second)
			},
		},
		{
			name: "drift: leader slow, members fast", safeguard: "rule 6 (margin)",
			both: func(w *world) {
				for _, s := range w.sites {
					s.rate = .95
				}
				for _, m := range w.members {
					m.rate = 1.05
				}
			},
			out: func(w *world) { w.jobs.margin = time.Millisecond },
			play: func(w *world) {
				m := w.leader()
				m.drift(.95)
				busy := w.busy()
				w.onFirst(isLease, func(_, _ *host) {
					w.after(20*time.Millisecond, func() { w.hand(m) })
					w.after(25*time.Millisecond, func() { w.split(hostsOf(busy)...) })
				})
				w.run(12 * time.Second)
			},
		},
		{
			name: "a lost disk under the old ID", safeguard: "rule 12",
			out: func(w *world) { w.off.newID = true },
			play: func(w *world) {
				m := w.leader()
				rest := w.others(m)
				w.isolate(rest[1], true)
				w.user.tasks++
				w.user.submit(w.user.tasks - 1)
				busy := w.busy()
				rest[0].loseDisk()
				w.isolate(rest[1], false)
				w.splitWith(m, busy)
				rest[0].start()
				w.run(12 * time.Second)
			},
		},
		{
			name: "boot before the own term's entry is applied", safeguard: "rule 7",
			both: func(w *world) { w.jobs.rivals = true },
			out:  func(w *world) { w.cfg.off.applied = true },
			play: func(w *world) {
				m := w.leader()
				w.onFirst(isLease, func(_, to *host) { w.split(m.host, to) })
				first := w.drops
				w.drops = func(from, to *host, payload any) bool { // nobody hears what is committed
					return first(from, to, payload) || from == m.host && saysOnlyCommit(payload)
				}
				w.run(12 * time.Second)
			},
		},
		{
			name: "a forwarded proposal", safeguard: "rule 3",
			both: func(w *world) { w.cfg.MaxWaiting, w.cfg.BatchBytes = time.Hour, 1 },
			out:  func(w *world) { w.cfg.off.crash = true },
			play: func(w *world) {
				m := w.leader()
				w.busy()
				w.split(m.host)
				w.runUntil(40*time.Second, w.allDone)
				w.isolate(m, false)
				w.run(3 * time.Second)
				if next := w.acting(); next != nil && next != m {
					w.hand(next)
				}
				w.run(8 * time.Second)
			},
		},
		{
			name: "torn writes", safeguard: "rule 1", out: func(w *world) { w.off.oneSave = true },
			play: func(w *world) {
				m := w.leader()
				torn := w.others(m)[0]
				for range 12 {
					w.user.tasks++
					w.user.submit(w.user.tasks - 1)
					w.runUntil(time.Second, func() bool { return len(torn.writing) > 1 })
					torn.crash()
					torn.start()
					w.run(300 * time.Millisecond)
				}
				m.crash()
				w.run(12 * time.Second)
			},
		},
		{
			name: "MayStart of rivals", safeguard: "rule 2",
			both: func(w *world) { w.jobs.rivals = true },
			out:  func(w *world) { w.cfg.off.commit = true },
			play: func(w *world) {
				m := w.leader()
				w.onFirst(isLease, func(_, to *host) { w.split(m.host, to) })
				w.run(12 * time.Second)
			},
		},
		{
			name: "leases of hours", safeguard: "rule 8 (durations are facts)",
			both: func(w *world) { w.jobs.long = 30 * time.Second },
			out:  func(w *world) { w.jobs.noLongFact = true },
			play: func(w *world) {
				m := w.leader()
				busy := w.busy()
				w.run(1500 * time.Millisecond)
				w.splitWith(m, busy)
				w.run(12 * time.Second)
			},
		},
		{
			name: "now read before a suspend", safeguard: "rule 9", members: 1,
			out: func(w *world) { w.off.freshNow = true },
			play: func(w *world) {
				m, busy := w.leader(), w.busy()
				m.suspend(2800 * time.Millisecond)
				w.run(2820 * time.Millisecond)
				w.split(hostsOf(busy)...)
				w.run(8 * time.Second)
			},
		},
	}
}
