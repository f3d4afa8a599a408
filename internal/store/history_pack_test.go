package store

import (
	"bytes"
	"compress/flate"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

var update = flag.Bool("update", false, "pack the record of testdata anew")

const (
	soundRecord  = "testdata/record.json"   // of a job of a mesh of five sites
	packedRecord = "testdata/record.packed" // the same, as histories hold it
)

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	return text
}

func packOne(t *testing.T, h *History, record []byte) []byte {
	t.Helper()
	packed, err := h.packer.pack([]HistoryJob{{ArchivedJob: step.ArchivedJob{Record: record}}})
	must(t, err)
	return packed[0]
}

// The words that records share make them less than half as large as they are without, and are
// those with which the histories that there are were packed.
func TestRecordsArePackedWithTheirWords(t *testing.T) {
	record := readTestdata(t, soundRecord)
	packed := packOne(t, &History{}, record)
	if *update {
		must(t, os.WriteFile(packedRecord, packed, 0o600))
	}
	if alone := flated(t, record); 2*len(packed) > len(alone) {
		t.Errorf("packed with its words a record has %d bytes, without them %d", len(packed), len(alone))
	}
	if got, err := unpack(readTestdata(t, packedRecord)); err != nil || !bytes.Equal(got, record) {
		t.Errorf("what histories hold is read as %q, %v: the words must not change", got, err)
	}
}

// One packer packs one record after the other, each on its own.
func TestEachRecordIsPackedOnItsOwn(t *testing.T) {
	h := &History{}
	rng := rand.New(rand.NewPCG(3, 1))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for _, record := range [][]byte{
		readTestdata(t, soundRecord), nil, noise, []byte("x"), bytes.Repeat(noise[:50], 2_000),
		readTestdata(t, soundRecord), recordWords,
	} {
		packed := packOne(t, h, record)
		if got, err := unpack(packed); err != nil || !bytes.Equal(got, record) {
			t.Errorf("of %d bytes %d come back: %v", len(record), len(got), err)
		}
		for cut := range min(len(packed), 50) {
			if got, err := unpack(packed[:cut]); err == nil {
				t.Errorf("%d of %d bytes are read as %q", cut, len(packed), got)
			}
		}
	}
}

// What earlier versions packed without words is read as it was; what a later one may have packed
// is not taken for it.
func TestHowARecordWasPacked(t *testing.T) {
	h := openHistory(t, t.TempDir())
	j := ended(1)
	must(t, h.Add([]HistoryJob{j}))
	replace := func(packed []byte) {
		must(t, h.update(func(tx *bolt.Tx) error {
			return tx.Bucket(byEnd).Put(timeKey(j.Ended, j.Job), packed)
		}))
	}
	for _, record := range [][]byte{readTestdata(t, soundRecord), j.Record, {}} {
		replace(flated(t, record))
		if got, _, err := h.Record(j.Job); err != nil || !bytes.Equal(got, record) {
			t.Errorf("record %q, %v, want %q", got, err, record)
		}
	}
	for first := range 256 {
		later := first&unknownBlock == unknownBlock && first != withWords
		_, err := unpack([]byte{byte(first), 0, 0, 0xff, 0xff})
		if told := err != nil && err.Error() == "a later version of the agent packed it"; told != later {
			t.Errorf("%#x: %v", first, err)
		}
	}
}

// flated is a text as flate makes it alone.
func flated(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	must(t, err)
	_, err = w.Write(text)
	must(t, err)
	must(t, w.Close())
	return out.Bytes()
}
