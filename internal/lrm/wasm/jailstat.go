package wasm

import (
	"hash/fnv"
	"io/fs"

	"github.com/tetratelabs/wazero/sys"
)

// What a guest can learn of its files is the same on every machine: where they lie on the host,
// when the host wrote them and how large it makes a directory would differ between two attempts.

// device is the number of the one device that all files are on.
const device = 1

// inodeOf is the number of the file of that path: 0 is none, as some C libraries take it for a
// deleted file.
func inodeOf(path string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	return max(h.Sum64(), 1)
}

// describe tells of a file what the guest may know. One that the guest has not written is as old
// as the guest's time.
func (j *jail) describe(path string, info fs.FileInfo) sys.Stat_t {
	at, written := j.times[identify(info)]
	if !written {
		at = clockStart
	}
	st := sys.Stat_t{
		Dev: device, Ino: inodeOf(path), Mode: info.Mode(), Nlink: 1, Size: info.Size(),
		Atim: at, Mtim: at, Ctim: at,
	}
	if info.IsDir() {
		st.Size = 0
	}
	return st
}
