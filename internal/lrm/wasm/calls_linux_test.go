package wasm

import (
	"errors"
	"math"
	"os"
	"syscall"
	"testing"
	"time"

	wasi "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

const (
	ro      = wasi.O_RDONLY
	wo      = wasi.O_WRONLY
	creates = wasi.O_CREAT
	cuts    = wasi.O_TRUNC
	appends = wasi.O_APPEND
)

// furnished is a jail with a file, a directory that is not empty, a link to each, a pipe, and
// inputs: a file and a directory, on places of their own and below another.
func furnished(t *testing.T) (j *jail, scratch string) {
	t.Helper()
	scratch = t.TempDir()
	input := t.TempDir()
	err := errors.Join(
		os.WriteFile(scratch+"/file", []byte("0123456789"), 0o600),
		os.MkdirAll(scratch+"/dir/sub", 0o700), os.MkdirAll(scratch+"/in", 0o700),
		os.Mkdir(scratch+"/empty", 0o700),
		os.WriteFile(scratch+"/dir/file", []byte("x"), 0o600),
		os.Symlink("file", scratch+"/link"), os.Symlink("dir", scratch+"/dirlink"),
		syscall.Mkfifo(scratch+"/pipe", 0o600),
		os.WriteFile(input+"/data", []byte("input"), 0o600), os.Mkdir(input+"/tree", 0o700),
		os.WriteFile(input+"/tree/leaf", []byte("leaf"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	j = openJail(t, scratch, 1000, bindOf("/in/data", input+"/data"),
		lrm.Bind{SandboxPath: "/in/tree/", HostPath: input + "/tree", Dir: true})
	j.quota.used, j.quota.entries = 11, 7
	return j, scratch
}

// Each call answers as a file system does, changes what it should, and counts what it changed;
// a call that is refused changes and counts nothing.
func TestWhatCallsAnswer(t *testing.T) {
	t.Parallel()
	type no = wasi.Errno
	open := func(name string, flag wasi.Oflag) func(*jail) no {
		return func(j *jail) no {
			f, wrong := j.OpenFile(name, flag, 0)
			if wrong == 0 {
				return f.Close()
			}
			return wrong
		}
	}
	mkdir := func(name string) func(*jail) no { return func(j *jail) no { return j.Mkdir(name, 0) } }
	rmdir := func(name string) func(*jail) no { return func(j *jail) no { return j.Rmdir(name) } }
	unlink := func(name string) func(*jail) no { return func(j *jail) no { return j.Unlink(name) } }
	rename := func(from, to string) func(*jail) no {
		return func(j *jail) no { return j.Rename(from, to) }
	}
	utimens := func(name string) func(*jail) no {
		return func(j *jail) no { return j.Utimens(name, 5, 6) }
	}
	for name, c := range map[string]struct {
		call           func(*jail) no
		want           no
		bytes, entries int // more than before
	}{
		"mkdir":                   {mkdir("new"), 0, 0, 1},
		"mkdir with a slash":      {mkdir("new//"), 0, 0, 1},
		"mkdir of what is there":  {mkdir("dir"), wasi.EEXIST, 0, 0},
		"mkdir below nothing":     {mkdir("none/x"), wasi.ENOENT, 0, 0},
		"mkdir below a file":      {mkdir("file/x"), wasi.ENOTDIR, 0, 0},
		"mkdir through a link":    {mkdir("dirlink/x"), wasi.ELOOP, 0, 0},
		"mkdir in an input":       {mkdir("in/tree/x"), wasi.EROFS, 0, 0},
		"rmdir":                   {rmdir("empty"), 0, 0, -1},
		"rmdir of one that holds": {rmdir("dir"), wasi.ENOTEMPTY, 0, 0},
		"rmdir of a file":         {rmdir("file"), wasi.ENOTDIR, 0, 0},
		"rmdir of nothing":        {rmdir("none"), wasi.ENOENT, 0, 0},
		"rmdir of an input":       {rmdir("in/tree"), wasi.EROFS, 0, 0},
		"rmdir around an input":   {rmdir("in"), wasi.ENOTEMPTY, 0, 0},
		"rmdir of all":            {rmdir("/"), wasi.ENOTEMPTY, 0, 0},
		"unlink":                  {unlink("file"), 0, -10, -1},
		"unlink of a directory":   {unlink("empty"), wasi.EISDIR, 0, 0},
		"unlink of nothing":       {unlink("none"), wasi.ENOENT, 0, 0},
		"unlink of an input":      {unlink("in/data"), wasi.EROFS, 0, 0},
		"unlink through a link":   {unlink("dirlink/file"), wasi.ELOOP, 0, 0},
		"rename":                  {rename("file", "new"), 0, 0, 0},
		"rename onto itself":      {rename("file", "./file"), 0, 0, 0},
		"rename onto a file":      {rename("file", "dir/file"), 0, -1, -1},
		"rename onto a directory": {rename("file", "empty"), wasi.EISDIR, 0, 0},
		"rename of a directory":   {rename("dir", "new/"), 0, 0, 0},
		"rename of it onto file":  {rename("empty", "file"), wasi.ENOTDIR, 0, 0},
		"rename of it onto empty": {rename("dir", "empty"), 0, 0, -1},
		"rename of it onto full":  {rename("empty", "dir"), wasi.ENOTEMPTY, 0, 0},
		"rename of it into it":    {rename("dir", "dir/sub"), wasi.EINVAL, 0, 0},
		"rename of nothing":       {rename("none", "new"), wasi.ENOENT, 0, 0},
		"rename below nothing":    {rename("file", "none/x"), wasi.ENOENT, 0, 0},
		"rename below a file":     {rename("empty", "file/x"), wasi.ENOTDIR, 0, 0},
		"rename from an input":    {rename("in/data", "new"), wasi.EROFS, 0, 0},
		"rename into an input":    {rename("file", "in/tree/x"), wasi.EROFS, 0, 0},
		"rename around an input":  {rename("in", "new"), wasi.EPERM, 0, 0},
		"rename of all":           {rename("/", "new"), wasi.EPERM, 0, 0},
		"utimens":                 {utimens("file"), 0, 0, 0},
		"utimens of nothing":      {utimens("none"), wasi.ENOENT, 0, 0},
		"utimens of an input":     {utimens("in/data"), wasi.EROFS, 0, 0},
		"utimens of a link":       {utimens("link"), wasi.ELOOP, 0, 0},
		"open":                    {open("file", ro), 0, 0, 0},
		"open with a slash":       {open("file/", ro), wasi.ENOTDIR, 0, 0},
		"open a directory":        {open("dir/", ro), 0, 0, 0},
		"open it to create it":    {open("dir", creates), wasi.EISDIR, 0, 0},
		"open it to write":        {open("dir", wo), wasi.EISDIR, 0, 0},
		"open a link":             {open("link", ro), wasi.ELOOP, 0, 0},
		"open a pipe":             {open("pipe", ro), wasi.EPERM, 0, 0},
		"open to cut":             {open("file", cuts), 0, -10, 0},
		"open to write and cut":   {open("file", wo|cuts), 0, -10, 0},
		"create":                  {open("new", creates|wo), 0, 0, 1},
		"create with a slash":     {open("new/", creates|wo), wasi.EISDIR, 0, 0},
		"create what is there":    {open("file", creates|wo), 0, 0, 0},
		"create it first": {
			open("file", creates|wo|wasi.O_EXCL), wasi.EEXIST, 0, 0,
		},
		"only first":          {open("file", wo|wasi.O_EXCL), 0, 0, 0},
		"create below":        {open("none/new", creates|wo), wasi.ENOENT, 0, 0},
		"create in an input":  {open("in/tree/new", creates|wo), wasi.EROFS, 0, 0},
		"write an input":      {open("in/data", wo), wasi.EROFS, 0, 0},
		"cut an input":        {open("in/data", cuts), wasi.EROFS, 0, 0},
		"read an input":       {open("in/data", ro), 0, 0, 0},
		"a file as directory": {open("file", wasi.O_DIRECTORY), wasi.ENOTDIR, 0, 0},
		"below an input file": {open("in/data/x", ro), wasi.ENOTDIR, 0, 0},
		"link":                {func(j *jail) no { return j.Link("file", "new") }, wasi.EPERM, 0, 0},
		"symlink":             {func(j *jail) no { return j.Symlink("file", "new") }, wasi.EPERM, 0, 0},
		"chmod":               {func(j *jail) no { return j.Chmod("file", 0o777) }, wasi.EPERM, 0, 0},
		"readlink": {
			func(j *jail) no { _, wrong := j.Readlink("link"); return wrong }, wasi.EINVAL, 0, 0,
		},
		"stat of a link": {
			func(j *jail) no { _, wrong := j.Stat("link"); return wrong }, wasi.ELOOP, 0, 0,
		},
		"lstat of a link": {func(j *jail) no { _, wrong := j.Lstat("link"); return wrong }, 0, 0, 0},
		"stat of a file":  {func(j *jail) no { _, wrong := j.Stat("file"); return wrong }, 0, 0, 0},
		"stat of nothing": {
			func(j *jail) no { _, wrong := j.Stat("none"); return wrong }, wasi.ENOENT, 0, 0,
		},
	} {
		j, scratch := furnished(t)
		if got := c.call(j); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got, want := j.quota.used, int64(11+c.bytes); got != want {
			t.Errorf("%s: %d bytes are used, want %d", name, got, want)
		}
		if got, want := j.quota.entries, 7+c.entries; got != want || j.quota.denied.Load() {
			t.Errorf("%s: there are %d entries, want %d", name, got, want)
		}
		if info, err := os.Stat(scratch + "/file"); name == "utimens" && (err != nil ||
			!info.ModTime().Equal(time.Unix(0, 6))) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if len(j.open) != 0 {
			t.Errorf("%s: open are %v", name, j.open)
		}
	}
	if !fileTime(wasi.UTIME_OMIT).IsZero() || !fileTime(7).Equal(time.Unix(0, 7)) {
		t.Error("a time that is left out is one")
	}
}

// A full quota refuses one more entry and one more byte, says so, and counts neither.
func TestAFullQuota(t *testing.T) {
	t.Parallel()
	j, _ := furnished(t)
	j.quota.entries = maxEntries
	if _, no := j.OpenFile("new", creates|wo, 0); no != wasi.EIO ||
		j.Mkdir("newdir", 0) != wasi.EIO || j.quota.entries != maxEntries ||
		!j.quota.denied.Load() {
		t.Errorf("%v with %d entries", no, j.quota.entries)
	}
	q := &quota{limit: 10}
	for _, c := range []struct {
		n    int64
		want bool
		used int64
	}{
		{10, true, 10},
		{1, false, 10},
		{0, true, 10},
		{-3, true, 7},
		{4, false, 7},
		{3, true, 10},
		{math.MaxInt64, false, 10},
	} {
		q.denied.Store(false)
		if q.take(c.n) != c.want || q.used != c.used || q.denied.Load() == c.want {
			t.Errorf("took %d: used %d, denied %v", c.n, q.used, q.denied.Load())
		}
	}
	q.entries = maxEntries - 1
	q.denied.Store(false)
	if !q.enter() || q.denied.Load() || q.enter() || !q.denied.Load() || q.entries != maxEntries {
		t.Errorf("%d entries", q.entries)
	}
}
