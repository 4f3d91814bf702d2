// Package policy runs policies that are programs, in a jail of the kernel's
// own making: no other binary and no right of root is needed.
//
// The program runs as nobody in user, network, process, mount, IPC and host
// name spaces of its own. It reads the system's programs and libraries and its
// own file, writes nowhere, opens no socket of any kind, gains no right, and
// has bounds on memory, processor, processes and files. It gets one JSON
// document and must answer one judge.Reply within the deadline. Whatever else
// it does is a fault, and a fault asks a person.
//
// Where a system forbids any of this the program runs with a deadline and a
// clean environment only, and every reply says that it was not jailed.
//
// Programs of root are nobody outside their name space too: RLIMIT_NPROC does
// not bind root, and root owns too many files. Where nobody can't read this
// program they stay root, without its rights; a storm of processes then ends
// only with the deadline, when the kernel ends all of the name space.
package policy
