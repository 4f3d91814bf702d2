package postgrestest

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"swarmdeck/store/postgres"
)

// Open opens the store that stands in a database for a path: the tables of each
// are in a schema of its own.
func Open(dsn, path string, opt postgres.Options) (*postgres.DB, error) {
	schema := NameOf(path)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create schema if not exists "+schema); err != nil {
		return nil, err
	}
	return postgres.Open(ctx, dsn+"&search_path="+schema, opt)
}

// NameOf is the name of a database or schema that stands for a path.
func NameOf(path string) string {
	sum := fnv.New64a()
	sum.Write([]byte(path))
	return fmt.Sprintf("d%x", sum.Sum64())
}
