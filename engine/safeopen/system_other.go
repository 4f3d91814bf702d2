//go:build !linux

package safeopen

import "golang.org/x/sys/unix"

const atPath = unix.O_RDONLY

func renameNew(int, string, string) error { return unix.ENOSYS }
