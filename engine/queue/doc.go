// Package queue keeps which tasks may be claimed, in which order, and when the
// others are due. It knows tasks by their numbers only.
//
// Tasks that are ready lie in lanes, one for each session and agent: a session
// that is paused or an agent that is busy closes its lanes, so a claim never
// walks over tasks it can't have. Tasks that wait for a time lie in Times.
//
// What is in memory is changed only after commits, so it never runs ahead of
// the disk. Functions given to Lanes and Alone are called with a lock held: they
// must not call the queue.
package queue
