// Package estop is the emergency stop of each tenant: whether it is on, who
// must freeze then, and what has not acknowledged it.
//
// The stop is on disk before anybody freezes. On a disk with no room for its
// record it holds all the same, and is written down later. Whoever runs tasks
// freezes them by On; everything else with processes is a Freezer.
//
// Lock order: nothing is called with Stops.mu held, so On may be asked under
// any lock.
package estop
