package grid_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const secret = grid.JobKey("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

func encryptedJob() grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Kind: grid.KindCommand, Args: []string{"true"}, Runtime: time.Second, Encrypted: true,
			Weights: grid.DefaultWeights(),
		},
		Count: 1, TTL: time.Second,
		Encryption: grid.Encryption{Name: "ABCDEFGHIJKLMNOP", Key: secret},
	}
}

// What an encrypted job cannot be is refused, by a sentence that names it and says what to do.
func TestWhatAnEncryptedJobCannotBe(t *testing.T) {
	t.Parallel()
	if err := encryptedJob().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*grid.Job)
		want   string
	}{
		"no name": {
			func(j *grid.Job) { j.Encryption.Name = "" }, "16 to 64 letters and digits",
		},
		"a short one": {func(j *grid.Job) { j.Encryption.Name = "ABCDEFGHIJKLMNO" }, "have 15"},
		"a long one": {
			func(j *grid.Job) { j.Encryption.Name = strings.Repeat("a", 65) }, "have 65",
		},
		"a path": {
			func(j *grid.Job) { j.Encryption.Name = "../../../../etc/passwd" },
			"letters and digits",
		},
		"no key": {
			func(j *grid.Job) { j.Encryption.Key = secret[1:] }, "64 hexadecimal digits",
		},
		"a key alone": {func(j *grid.Job) { j.Spec.Encrypted = false }, "name both or none"},
		"copies": {
			func(j *grid.Job) { j.Redundancy.Replicas = 2 }, "replicas, agreement and verify",
		},
		"verified": {
			func(j *grid.Job) { j.Redundancy.Verify = .5 }, "replicas, agreement and verify",
		},
		"what another one leaves": {func(j *grid.Job) {
			j.After = []grid.JobID{"mfrggzdfmztwq2lk"}
			j.Takes = []grid.Take{{Path: "/in", Job: "mfrggzdfmztwq2lk", Output: "/out"}}
		}, "what another job leaves"},
		"signed": {func(j *grid.Job) {
			j.Spec.Signature = grid.Signature{
				Of: grid.SignedTemplate, Digest: strings.Repeat("0f", 64), Text: "x",
			}
		}, "leave out encrypt, or the signature"},
		"a reservation": {func(j *grid.Job) {
			j.Spec.Kind, j.Spec.Args = grid.KindReservation, nil
			j.Spec.Window.At = time.Unix(1e9, 0)
		}, "a reservation has no content"},
	} {
		j := encryptedJob()
		c.change(&j)
		err := j.Validate()
		if !errors.Is(err, grid.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), string(secret[1:])) {
			t.Errorf("%s: the message has the key", name)
		}
	}
}

// A key shows in no way in which values are printed or logged, and facts keep it.
func TestAKeyIsNotPrinted(t *testing.T) {
	t.Parallel()
	j := encryptedJob()
	var log bytes.Buffer
	fmt.Fprintln(&log, "x", j.Encryption.Key, j)
	for _, text := range []string{
		fmt.Sprint(j), fmt.Sprintf("%v %+v %#v", j, j, j),
		fmt.Sprintf("%s %q %x", j.Encryption, j.Encryption, j.Encryption),
		log.String(), j.Encryption.Key.GoString(),
	} {
		hidden := fmt.Sprintf("%x", string(secret))
		if strings.Contains(text, string(secret)) || strings.Contains(text, hidden) {
			t.Errorf("printed: %s", text)
		}
	}
	if !strings.Contains(log.String(), "(secret)") || grid.JobKey("").String() != "" {
		t.Errorf("logged: %s", log.String())
	}
	var back grid.Job
	text, err := json.Marshal(j)
	if err = errors.Join(err, json.Unmarshal(text, &back)); err != nil ||
		back.Encryption != j.Encryption {
		t.Errorf("kept as %+v, %v", back.Encryption.Name, err)
	}
}

// What an encrypted task leaves is bounded by more than what it leaves in the clear: by 3 KiB for
// each of many files without a byte.
func TestEncryptedSizes(t *testing.T) {
	t.Parallel()
	need := grid.Resources{DiskBytes: 1 << 30}
	if plain, more := need.MayLeave(), need.MayLeaveEncrypted(); more < 2*plain || more > 3*plain {
		t.Errorf("%d in the clear, %d encrypted", plain, more)
	}
	if got := grid.EncryptedBytes(1 << 20); got < 1<<20+16*16 || got > 1<<20+2<<10 {
		t.Errorf("1 MiB takes %d bytes", got)
	}
}

// An announcement says that a job is encrypted, and no more of it.
func TestTheRequirementOfAnEncryptedJob(t *testing.T) {
	t.Parallel()
	req := encryptedJob().Requirement("home", "me", grid.Capability{}, 0)
	text, err := json.Marshal(req)
	if err != nil || !req.Encrypted || bytes.Contains(text, []byte(secret)) ||
		bytes.Contains(text, []byte("ABCDEFGHIJKLMNOP")) {
		t.Errorf("%s, %v", text, err)
	}
}
