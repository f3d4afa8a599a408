package wasm

import "golang.org/x/sys/unix"

// reserve takes address space that costs memory only where it is touched, so
// that growing never copies. It is nil where the system refuses.
func reserve(bytes uint64) []byte {
	if bytes == 0 || bytes > maxMemory {
		return nil
	}
	pages, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return pages
}

func release(pages []byte) {
	if pages != nil {
		_ = unix.Munmap(pages)
	}
}
