package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What a command sees of the world: files, processes, shared memory, sockets, locks, variables.
// The locks of its own /etc are free already; one of the machine's may be another command's, of
// some other agent, for a moment.
const lookAround = `
find / -path /usr -prune -o -path /proc -prune -o -print | sort
ls -ld /etc /etc/passwd /dev/shm /tmp /work | cut -c1-10
cat /etc/passwd /etc/group /etc/hosts
cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg
echo /proc/[0-9]*
cut -d' ' -f8 /proc/net/unix
flock -n /etc/passwd echo nobody holds it
flock -w 60 /usr/bin/env echo nobody holds it
ls /proc/self/fd
env | sort; ulimit -a; umask; pwd; hostname; cat`

// What a command tries to leave behind. Whatever of it is refused is not left.
const leaveAll = `
exec 2>/dev/null
for dir in / /tmp /dev /dev/shm /etc /etc/alternatives /usr /proc; do
	echo left > $dir/left; mkdir $dir/left.d; done
mkdir /work/left.d; ln -s /etc/passwd /tmp/link
echo left >> /etc/passwd; mv /etc/group /etc/left; rm -f /etc/hosts; touch -d 2001-01-01 /etc/passwd
chmod 777 /etc /etc/passwd /tmp /work
ipcmk -M 4096; ipcmk -S 1; ipcmk -Q
export LEFT=left; hostname left; umask 0; ulimit -n 20
setsid sh -c 'exec 7</etc/passwd 8</usr/bin/env 9<>/work/held
	flock 7; flock -w 60 8; flock 9; touch /work/left; sleep 1000' </dev/null >/dev/null &
until [ -e /work/left ]; do sleep 0.01; done
exit 0`

// The next command, under the same supervisor, sees a world as new as the first did: nothing
// of the one before is there, whatever that has tried to leave.
func TestNothingIsSeenOfTheTaskBefore(t *testing.T) {
	eachWay(t, bubblewrapWays(), func(t *testing.T, adapter lrm.Adapter) {
		record := filepath.Join(t.TempDir(), "runs.jsonl")
		var seen []string
		for _, script := range []string{lookAround, leaveAll, lookAround} {
			a := attempt(t, "sh", "-c", script)
			a.RecordPath = record
			r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
			if r.Exit.Cause != grid.CauseExited || r.Exit.Code != 0 {
				t.Fatalf("exit = %+v, it said %q", r.Exit, lrmtest.Text(t, r.Stderr))
			}
			seen = append(seen, lrmtest.Text(t, r.Stdout))
		}
		if seen[0] == "" || strings.Count(seen[0], "nobody holds it") != 2 {
			t.Errorf("the first command saw %q", seen[0])
		}
		if seen[2] != seen[0] {
			t.Errorf("after another one a command sees\n%s\nand before\n%s", seen[2], seen[0])
		}
		records, err := lrm.ReadRecords(record)
		if err != nil {
			t.Fatal(err)
		}
		by := make(map[lrm.Identity]bool)
		for _, rec := range records {
			if rec.Event == lrm.RecordStarted {
				by[rec.Supervisor] = true
			}
		}
		if len(by) != 1 {
			t.Errorf("%d supervisors, want the same for all: %+v", len(by), records)
		}
	})
}
