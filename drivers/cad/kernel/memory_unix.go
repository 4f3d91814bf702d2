//go:build linux || darwin

package kernel

import "golang.org/x/sys/unix"

// reserve takes addresses without memory behind them.
func reserve(size uint64) ([]byte, bool) {
	all, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	return all, err == nil // not where memory is promised strictly
}

// release gives the memory behind addresses back; reading them gives zeros.
func release(all []byte) { _ = unix.Madvise(all, unix.MADV_DONTNEED) } // an advice

func unreserve(all []byte) { _ = unix.Munmap(all) } // of addresses that were mapped, whole
