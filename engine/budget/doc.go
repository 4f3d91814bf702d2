// Package budget keeps what a tenant, a session or an agent may spend and what
// it has spent: tokens, cost, tasks and running time.
//
// A budget that is used up opens an approval, and says by Spent and Full that
// nothing more may start; it knows no task. Who runs tasks asks before it claims,
// freezes what is Spent, and tells what was used.
//
// Lock order: nothing is called with a lock of Budgets held, so Spent and
// Reached may be asked under any lock.
package budget
