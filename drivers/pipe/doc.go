// Package pipe speaks with a child process through its pipes, line by line,
// without ever waiting for it: lines from it are bounded, lines to it queue.
package pipe
