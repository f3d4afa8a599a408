package jobfile

import (
	"go.yaml.in/yaml/v3"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// keyEncrypt says in a job file that its content is encrypted.
const keyEncrypt = "encrypt"

// encrypt reads the key, and reports whether it is the one.
func (p *parser) encrypt(key string, node *yaml.Node) bool {
	if key != keyEncrypt {
		return false
	}
	p.file.Encrypt = p.oneOf(node, key, "false", "true") == 1 || p.file.Encrypt
	p.file.lines[key] = node.Line
	return true
}

// checkEncrypt refuses what an encrypted job cannot have.
func (p *parser) checkEncrypt(seen map[string]int) {
	if !p.file.Encrypt || p.file.Spec.Kind == grid.KindReservation {
		return
	}
	for _, key := range []string{"replicas", "agreement", "verify"} {
		if line, given := seen[key]; given {
			p.fail(line, key, "remove it, or encrypt",
				"results are encrypted differently by each site, and cannot be compared")
		}
	}
	for _, key := range []string{keySignature, keyModuleSignature} {
		if line, given := seen[key]; given {
			p.fail(line, key, "remove it, or encrypt",
				"sites compare what was signed with what is sent, and that is encrypted")
		}
	}
	for _, in := range p.file.Inputs {
		if in.isTaken() {
			p.fail(p.file.lines[in.Take.Job.Field], in.Take.Job.Field,
				"fetch it with submit get and name the file, or remove encrypt",
				"what another job leaves is in the clear, or has another key")
		}
	}
}

// checkEncrypt refuses content that was stored before, in the clear or for another job.
func (r *resolver) checkEncrypt() {
	if !r.file.Encrypt {
		return
	}
	for _, source := range r.plan.Sources {
		if source.CID != "" {
			r.fail(keyEncrypt, "name the file instead of cid:"+string(source.CID),
				"content that is stored already is in the clear, or has another key")
			return
		}
	}
}

// checkEncrypted refuses to take what an encrypted job of the flow leaves.
func (r *flowReader) checkEncrypted(j *FlowJob, in InputRef, of *FlowJob) {
	if of.Plan.File.Encrypt {
		r.failIn(j, in.Take.Job.Field, "put both into one job, or remove encrypt from "+of.Name,
			"%s is encrypted, and no other job has its key", of.Name)
	}
}
