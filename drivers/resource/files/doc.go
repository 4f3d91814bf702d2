// Package files keeps files and directories: it takes snapshots of them into a
// store of its own, and makes them again from there.
//
// A snapshot is a manifest: all files, directories and links of the tree, with
// mode, owner, time and, of a file, size and sha256. The contents lie beside
// it, each once, under that digest. Where the file system can share
// blocks (FICLONE) those of files above 1 MiB are shared, else contents are copied.
//
// Before each call all names are looked at, and no more than what changed since the
// snapshot before is read and written: a file with the same inode, times and size has
// the content that it had, the time of an inode being none that a program sets. A
// manifest is written as what it adds to the one before, and named by the digest of all.
//
// Git would keep a tree in fewer lines, but not the times of files and what is in .git of
// repositories in the tree; and it takes several times as long for the state before a call.
//
// A tree is hostile. Directories are walked by their descriptors, so that no
// link is ever followed, whoever changes what meanwhile; a link is kept as the
// text it is. Pipes, sockets and devices are left out and counted, as is what
// lies on another file system. What a .gitignore names, by gitignore(5), and files that
// are too large are left out by rule: the notes of a snapshot name them, and a restore in
// the tree's place leaves them as they are. Names may hold any byte. Files, bytes and depth
// are bounded, and a tree beyond is refused before it fills the disk.
//
// A tree is made again beside its place, synced, and put there by one rename:
// in place of nothing, or in exchange for what was there. Whoever looks sees
// the tree before or the tree after. Setuid and setgid of files are not
// restored.
package files
