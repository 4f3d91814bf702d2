package postgres

import "context"

// OpenNext is Open by a program that knows one step more.
func OpenNext(ctx context.Context, dsn string, opt Options, sql string, alone bool) (*DB, error) {
	return openBy(ctx, dsn, opt, append(layouts(), step{sql: sql, alone: alone}))
}
