// Package session keeps the sessions of each tenant: time-bounded contexts in
// which tasks run, with their states, names and ends.
//
// A session says whether its tasks may run; it knows no task. Who runs them
// follows State, and cancels what a stopped session still holds.
//
// Lock order: nothing is called with Sessions.mu held, so State and Named may
// be asked under any lock.
package session
