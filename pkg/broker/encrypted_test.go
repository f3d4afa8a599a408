package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const testKey = grid.JobKey("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

func encryptedJob() grid.Job {
	job := testJob(1)
	job.Spec.Encrypted = true
	job.Encryption = grid.Encryption{Name: "ABCDEFGHIJKLMNOP", Key: testKey}
	return job
}

// opens lets a site offer, and say whether it opens encrypted content.
func (b *bench) opens(id grid.JobID, site grid.SiteID, distance float64, does bool) []step.Effect {
	b.Helper()
	o := offer(uint64(distance), distance, 1)
	o.Decrypts = does
	return b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
}

// An encrypted job is awarded to no site that does not say that it opens the content, however near
// it is, and a person reads why. With the award goes the key, outside of the message.
func TestEncryptedJobsGoWhereTheyAreOpened(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(encryptedJob())
	if _, said := one[protocol.Announce](t, b.last); !said.Req.Encrypted {
		t.Error("the announcement does not say it")
	}
	b.opens(id, "a", 1, false)
	b.opens(id, "b", 2, true)
	to, given := sent[protocol.Award](b.refusal(id, self, true))
	if len(to) != 1 || to[0] != "b" || len(given[0].Key) != 0 {
		t.Fatalf("awarded to %v: %+v", to, given)
	}
	for _, e := range only[step.Send](b.last) {
		_, award := e.Message.(protocol.Award)
		if award != (e.Key == testKey) || !award && e.Key != "" {
			t.Errorf("%T is sent with a key of %d bytes", e.Message, len(e.Key))
		}
	}
	why := b.m.jobs.all[id].answers["a"].Refusal
	if why.Reason != grid.ReasonEncrypted || !why.Never ||
		!strings.Contains(why.Explain(), "too old to open encrypted jobs") {
		t.Errorf("why a does not have it: %s", why.Explain())
	}
}

// A site that declines and quotes anew has to say it again.
func TestARequoteThatDoesNotOpen(t *testing.T) {
	for _, does := range []bool{true, false} {
		b := newBench(t, nil, "a")
		id := b.submit(encryptedJob())
		b.opens(id, "a", 1, true)
		_, given := one[protocol.Award](t, b.refusal(id, self, true))
		quote := offer(9, 2, 1)
		quote.Decrypts = does
		b.hear("a", protocol.Declined{
			Attempts: []grid.AttemptID{attemptOf(id, 0, given.Tasks[0].Token)},
			Refusal:  grid.Refusal{Reason: grid.ReasonWorse}, Quote: &quote,
		})
		if to, _ := sent[protocol.Award](b.last); (len(to) == 1) != does {
			t.Errorf("opens it: %t, awarded to %v", does, to)
		}
	}
}

// running brings an encrypted job to run on a.
func (b *bench) runsEncrypted() (grid.JobID, grid.AttemptID) {
	b.Helper()
	job := encryptedJob()
	job.Spec.Outputs = []grid.Output{{Path: "/out", To: "out"}}
	id := b.submit(job)
	b.opens(id, "a", 1, true)
	b.refusal(id, "b", false)
	_, given := sent[protocol.Award](b.refusal(id, self, true))
	if len(given) != 1 {
		b.Fatalf("%d awards", len(given))
	}
	at := attemptOf(id, 0, given[0].Tasks[0].Token)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{at}, Renewal: 1})
	b.hear("a", protocol.Progress{Attempt: at, Phase: grid.PhaseRunning})
	return id, at
}

// What comes back is opened with the key, by a machine that was restarted, too. An output that does
// not open is a breach right away, and the task goes elsewhere.
func TestWhatComesBackIsOpened(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, at := b.runsEncrypted()
	c := checkpoint(1)
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: c})
	if pulls := only[step.Pull](b.last); len(pulls) != 1 || pulls[0].Key != testKey {
		t.Errorf("pulls %+v", pulls)
	}
	b.do(step.Pulled{Attempt: at, Number: 1, CID: c.CID})
	b.restart("a", "b")
	b.hear("a", ended(at, "/out"))
	got := only[step.Collect](b.last)
	if len(got) != 1 || got[0].Key != testKey ||
		got[0].MostBytes != testJob(1).Spec.Need.MayLeaveEncrypted() {
		t.Fatalf("collects %+v", got)
	}
	b.do(step.Collected{Attempt: at, Problem: "it is damaged", Forged: true})
	if b.m.peers.breaches["a"].row != 1 || b.phase(id, 0) == grid.PhaseCollecting {
		t.Errorf("%+v, and the task is %s", b.m.peers.breaches["a"], b.phase(id, 0))
	}
}

// A checkpoint is a little larger once it is encrypted, and is not taken for too much.
func TestEncryptedCheckpointsMayBeLarger(t *testing.T) {
	b := newBench(t, nil, "a")
	_, at := b.runsEncrypted()
	c := checkpoint(1)
	most := testJob(1).Spec.Need.Counted().DiskBytes + protocol.MaxSealBytes
	c.Bytes = grid.EncryptedBytes(most)
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: c})
	if len(only[step.Pull](b.last)) != 1 {
		t.Error("it is refused")
	}
	c.Number, c.Bytes = 2, c.Bytes+1
	b.hear("a", protocol.Checkpointed{Attempt: at, Checkpoint: c})
	if len(only[step.Pull](b.last)) != 0 {
		t.Error("one that is larger is taken")
	}
}

// Encrypted jobs that no site could open, or that come from another domain, are refused, and so is
// who wants what one leaves.
func TestEncryptedJobsThatAreRefused(t *testing.T) {
	refused := func(b *bench, in step.Submit, want string) {
		t.Helper()
		reply := only[step.Reply](b.do(in))
		if len(reply) != 1 || !errors.Is(reply[0].Err, grid.ErrInvalid) ||
			!strings.Contains(reply[0].Err.Error(), want) {
			t.Errorf("%+v, want %q", reply, want)
		}
	}
	b := newBench(t, nil, "a")
	keyless := encryptedJob()
	keyless.Encryption.Key = ""
	refused(b, step.Submit{Job: keyless}, "the job has no key")
	refused(b, step.Submit{
		Job: encryptedJob(), Ordered: step.Ordered{Domain: "next", Ref: "x"},
	}, "stay in their domain")
	first := encryptedJob()
	first.Spec.Outputs = []grid.Output{{Path: "/out", To: "out"}}
	id := b.submit(first)
	taker := testJob(1)
	taker.After = []grid.JobID{id}
	taker.Takes = []grid.Take{{Path: "/in", Job: id, Output: "/out"}}
	refused(b, step.Submit{Job: taker}, "is encrypted, and no other job has its key")
	b.do(step.Probe{Command: 2, Job: keyless})
	if _, asked := sent[protocol.Announce](b.last); len(asked) != 1 {
		t.Error("it cannot be asked about")
	}
	if !b.m.jobs.all[id].traits.home {
		t.Error("it may cross a border")
	}
}
