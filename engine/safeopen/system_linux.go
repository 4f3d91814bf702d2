package safeopen

import "golang.org/x/sys/unix"

// atPath opens a directory as a place to go on from, which asks for no more than
// leave to pass through it.
const atPath = unix.O_PATH

// renameNew renames a file of a directory unless the other name is taken.
func renameNew(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}
