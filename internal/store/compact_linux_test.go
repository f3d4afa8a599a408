package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// halfFree makes a file of 8 MiB, of which more than half is free, with a table of some rows.
func halfFree(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), factsFile)
	db, err := openDB(path, false)
	must(t, err)
	db.NoSync = true
	must(t, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket(factsBucket)
		for i := range 100 {
			err = errors.Join(err, b.Put(fmt.Append(nil, i), make([]byte, 100)))
		}
		return errors.Join(err, b.Put([]byte("large"), make([]byte, compactAbove*5/8)))
	}))
	must(t, db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket(factsBucket).Delete([]byte("large"))
	}))
	must(t, db.Close())
	return path
}

// A file is worth making shorter that is larger than 8 MiB and more than half free, not at the
// bounds.
func TestWhichFilesAreSparse(t *testing.T) {
	t.Parallel()
	path := halfFree(t)
	db, err := openDB(path, false)
	must(t, err)
	defer db.Close()
	free := int64(db.Stats().FreePageN) * int64(db.Info().PageSize)
	if size := fileSize(path); size != compactAbove || 2*free <= size {
		t.Fatalf("%d of %d bytes are free, want more than half of %d", free, size, compactAbove)
	}
	for _, c := range []struct {
		size int64
		want bool
	}{{compactAbove, false}, {compactAbove + 1, true}, {2*free - 1, true}, {2 * free, false}} {
		must(t, os.Truncate(path, c.size))
		if got := sparse(db); got != c.want {
			t.Errorf("%d of %d bytes are free: sparse %t, want %t", free, c.size, got, c.want)
		}
	}
	if size := fileSize(path + ".none"); size != 0 {
		t.Errorf("a file that is not there has %d bytes", size)
	}
}

// A sparse file is made shorter, with what it holds, and both sizes are logged; where that cannot
// be it is used as it is, and that is logged, too.
func TestAFileIsMadeShorterOrUsedAsItIs(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		path := halfFree(t)
		before := int64(compactAbove + 1)
		must(t, os.Truncate(path, before))
		if damaged {
			damageTable(t, path)
		}
		var log bytes.Buffer
		db, err := openCompacted(path, slog.New(slog.NewTextHandler(&log, nil)))
		must(t, err)
		after := fileSize(path)
		want := fmt.Sprintf("level=INFO msg=\"a file was made shorter\" file=%s before=%d after=%d\n",
			path, before, after)
		if damaged {
			want = `level=WARN msg="a file was not made shorter" file=` + path + ` error="` +
				ErrCorrupt.Error()
		}
		_, text, _ := strings.Cut(log.String(), " ") // the time
		if !strings.HasPrefix(text, want) || damaged != (after == before) {
			t.Errorf("damaged %t: %d bytes became %d, logged %q, want %q",
				damaged, before, after, text, want)
		}
		if _, err := os.Lstat(path + newSuffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("damaged %t: left behind: %v", damaged, err)
		}
		if !damaged {
			must(t, db.View(func(tx *bolt.Tx) error {
				if n := tx.Bucket(factsBucket).Stats().KeyN; n != 100 {
					t.Errorf("%d rows are left, want 100", n)
				}
				return nil
			}))
		}
		must(t, db.Close())
	}
}

// damageTable overwrites the first page of the table of facts.
func damageTable(t *testing.T, path string) {
	t.Helper()
	db, err := openDB(path, true)
	must(t, err)
	var at int64
	must(t, db.View(func(tx *bolt.Tx) error {
		at = int64(tx.Bucket(factsBucket).Root()) * int64(db.Info().PageSize)
		return nil
	}))
	size := db.Info().PageSize
	must(t, db.Close())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, size), at)
	must(t, errors.Join(err, f.Close()))
	if at == 0 {
		t.Fatal("the table has no page of its own")
	}
}

// What hinders a file from being made shorter is told, and leaves the file and nothing beside it.
func TestWhatHindersMakingAFileShorter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, factsFile)
	db, err := openDB(path, false)
	must(t, err)
	must(t, db.Update(makeTables))
	if err = compactTo(filepath.Join(dir, "none", factsFile), db); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	taken := filepath.Join(dir, "taken")
	must(t, os.MkdirAll(filepath.Join(taken, "below"), dirMode))
	if err = compactTo(taken, db); !errors.Is(err, os.ErrExist) {
		t.Errorf("in the place of a directory: %v", err)
	}
	must(t, db.Close())
	if err = compactTo(path, db); !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		t.Errorf("what is closed: %v", err)
	}
	if _, err = os.Lstat(path + newSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(path+newSuffix, "below"), dirMode))
	_, err = openCompacted(path, quiet())
	want := "remove what is left of an earlier start: remove " + path + newSuffix + ": " +
		syscall.ENOTEMPTY.Error()
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
