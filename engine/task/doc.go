// Package task is what a task is and how it is kept: its header, input and
// result, the lists that tasks are found by, what is counted of them, and the
// lines they log. A Table holds those of all tenants.
//
// It moves a task as it is told to and says so in the audit log; whether and
// when a task may move is for its callers. Retention takes finished tasks and
// old lines out again.
package task
