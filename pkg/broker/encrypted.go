package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// An encrypted job's content is opened by the sites that are awarded alone. This machine has the
// job's key among its facts, as who acts for the owner has to award anew. It never says it in a
// message: the driver encrypts it for the site that an award goes to.

// checkKey refuses an encrypted job that comes from another domain, or that no agent has given a
// key. An enquiry awards nothing and needs none.
func checkKey(job grid.Job, by step.Ordered) error {
	switch {
	case !job.Spec.Encrypted:
		return nil
	case by.Foreign():
		return fmt.Errorf("%w: encrypt: encrypted jobs stay in their domain", grid.ErrInvalid)
	default:
		return nil
	}
}

// needsKey refuses to keep a job that no site could open.
func needsKey(job grid.Job) error {
	if job.Spec.Encrypted && job.Encryption.Key == "" {
		return fmt.Errorf("%w: encrypt: the job has no key; "+
			"its agent makes one when it is submitted", grid.ErrInvalid)
	}
	return nil
}

// decrypts reports whether a site that offers so can be given the job.
func (e *enquiry) decrypts(o grid.Offer) bool { return !e.traits.encrypted || o.Decrypts }

// mostSaved bounds a checkpoint: a program cannot have saved more than it may write.
func (e *enquiry) mostSaved() int64 {
	most := e.spec.Spec.Need.Counted().DiskBytes + protocol.MaxSealBytes
	if e.traits.encrypted {
		most = grid.EncryptedBytes(most)
	}
	return most
}

// mostLeft bounds the outputs and logs of a task, in bytes as they are stored.
func (e *enquiry) mostLeft() int64 {
	if e.traits.encrypted {
		return e.spec.Spec.Need.MayLeaveEncrypted()
	}
	return e.spec.Spec.Need.MayLeave()
}
