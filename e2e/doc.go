// Package e2e tries the whole program as its users do: the test binary is the
// program too, started with a home of its own. Commands that end by themselves are
// the program as go build makes it.
package e2e
