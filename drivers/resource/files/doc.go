// Package files keeps files and directories: it takes snapshots of them into a
// store of its own, and makes them again from there.
//
// A snapshot is a manifest: a line for each file, directory and link of the
// tree, with mode, owner, time and, of a file, size and sha256. The contents
// lie beside it, each once, under that digest. Where the file system can share
// blocks (FICLONE) contents are shared, else copied. A file that has not
// changed since the snapshot before is not read again.
//
// A tree is hostile. Directories are walked by their descriptors, so that no
// link is ever followed, whoever changes what meanwhile; a link is kept as the
// text it is. Pipes, sockets and devices are left out and counted, as is what
// lies on another file system. Names may hold any byte. Files, bytes and depth
// are bounded, and a tree beyond is refused before it fills the disk.
//
// A tree is made again beside its place, synced, and put there by one rename:
// in place of nothing, or in exchange for what was there. Whoever looks sees
// the tree before or the tree after. Setuid and setgid of files are not
// restored.
package files
