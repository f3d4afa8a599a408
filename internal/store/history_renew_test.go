package store

import (
	"errors"
	"os"
	"testing"

	bolterrors "go.etcd.io/bbolt/errors"
)

// addMany adds jobs one by one, as fast as the disk of the test allows.
func (h *History) addMany(t *testing.T, from, to int) {
	t.Helper()
	h.db.NoSync = true
	for n := from; n < to; n++ {
		must(t, h.Add([]HistoryJob{ended(n)}))
	}
}

// A history's file is opened anew after many writes, and not after each, while it is read.
func TestAHistoryIsOpenedAnewNowAndThen(t *testing.T) {
	h := openHistory(t, t.TempDir())
	stop, read := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				read <- nil
				return
			default:
				_, err = h.Sums()
			}
		}
		read <- err
	}()
	first := h.db
	h.addMany(t, 0, renewAfter)
	if h.db != first {
		t.Errorf("opened anew after %d writes, want later", renewAfter)
	}
	h.addMany(t, renewAfter, renewAfter+1)
	second := h.db
	if second == first {
		t.Errorf("not opened anew after %d writes", renewAfter+1)
	}
	h.addMany(t, renewAfter+1, 2*renewAfter)
	if h.db != second {
		t.Error("opened anew again, want later")
	}
	close(stop)
	if err := <-read; err != nil {
		t.Errorf("reading meanwhile: %v", err)
	}
	if sums, err := h.Sums(); err != nil || sums.Jobs != 2*renewAfter {
		t.Errorf("%d jobs, %v, want all %d", sums.Jobs, err, 2*renewAfter)
	}
}

// Where the file cannot be opened anew the write fails and is made when the file is back.
func TestAHistoryThatCannotBeOpenedAnew(t *testing.T) {
	h := openHistory(t, t.TempDir())
	h.addMany(t, 0, renewAfter)
	aside := h.path + ".aside"
	must(t, os.Rename(h.path, aside))
	must(t, os.Mkdir(h.path, 0o700))
	for range 2 {
		if err := h.Add([]HistoryJob{ended(renewAfter)}); err == nil {
			t.Error("written into a directory")
		}
	}
	if _, err := h.Sums(); !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		t.Errorf("read: %v, want %v", err, bolterrors.ErrDatabaseNotOpen)
	}
	must(t, os.Remove(h.path))
	must(t, os.Rename(aside, h.path))
	must(t, h.Add([]HistoryJob{ended(renewAfter)}))
	if sums, err := h.Sums(); err != nil || sums.Jobs != renewAfter+1 {
		t.Errorf("%d jobs, %v, want all %d", sums.Jobs, err, renewAfter+1)
	}
}

// One that its owner has closed stays closed.
func TestAClosedHistoryStaysClosed(t *testing.T) {
	h := openHistory(t, t.TempDir())
	must(t, h.Close())
	h.writes = renewAfter
	if err := h.Add([]HistoryJob{ended(1)}); !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		t.Errorf("written: %v, want %v", err, bolterrors.ErrDatabaseNotOpen)
	}
}
