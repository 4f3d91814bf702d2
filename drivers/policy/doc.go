// Package policy runs policies that are programs, each in a cell of its own.
//
// The program is a reader: it reads the system's programs and libraries and its
// own file, writes nothing that lasts, opens no socket of any kind, gains no
// right, and has bounds on memory, processor, processes and files. It gets one
// JSON document and must answer one judge.Reply within the deadline. Whatever
// else it does is a fault, and a fault asks a person.
//
// Where a system holds no reader the program runs with a deadline and a clean
// environment only, and every reply says that it was not jailed.
package policy
