// Package rules has the tests of what holds for the whole repository: who may
// import whom, who starts processes, what a file may be.
package rules
